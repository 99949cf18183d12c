#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""exporter.py EXPORTER FAKE_ASYMD: what asymd-exporter serves, over HTTP: its errors, its socket from systemd, clients that do
wrong, and its text in the older format. test-service-verbs.c has the text of OpenMetrics."""
import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

from top import Fake, LIMIT

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# What Prometheus 2.42 sends.
PROMETHEUS = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
              "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(\{{(?:{LABEL}(?:,{LABEL})*)?\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|NaN|[+-]Inf)")
UNITS = ("seconds", "bytes")


def promtool_faults(text, without_help=()):
    """The faults of a text in the format 0.0.4: what promtool check metrics of Debian 12 (2.42) refuses and complains about."""
    told, done, samples = {}, [], set()
    for line in text.splitlines():
        head = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        sample = SAMPLE.fullmatch(line)
        if not head and not sample:
            yield f"no line of the format: {line!r}"
            continue
        name = head[2] if head else sample[1]
        if name in done[:-1]:
            yield f"{name}: its lines are apart"
        if name not in done:
            done.append(name)
        if head:
            if (head[1], name) in told or any(sample[0] == name for sample in samples):
                yield f"{name}: {head[1]} twice, or behind a sample"
            told[head[1], name] = head[3]
        elif sample.groups()[:2] in samples:
            yield f"{name}: twice"
        else:
            samples.add(sample.groups()[:2])
    for name in done:
        yield from promtool_complaints(name, told.get(("TYPE", name)), ("HELP", name) in told or name in without_help)


def promtool_complaints(name, kind, has_help):
    """The rules that promtool calls lint."""
    words = name.split("_")
    if not has_help:
        yield f"{name}: no help text"
    if (kind == "counter") != name.endswith("_total"):
        yield f"{name}: only counters end in _total"
    if kind == "gauge" and name.endswith(("_count", "_sum", "_bucket")):
        yield f"{name}: the end of its name is that of a histogram"
    if {"counter", "gauge", "histogram", "summary", "untyped"} & set(words[1:]):
        yield f"{name}: names its type"
    if ":" in name or re.search("[a-z][A-Z]", name):
        yield f"{name}: a colon or camelCase"
    if {"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"} & set(words[1:]):
        yield f"{name}: an abbreviated unit"
    units = r"(kilo|mega|giga|tera|peta|milli|micro|nano|deci|centi)?(seconds|bytes)|minutes|hours|days|weeks"
    if any(re.fullmatch(units, word) and word not in UNITS for word in words):
        yield f"{name}: no base unit"


def test_promtool():
    good = ("# HELP asymd_x_seconds_total X.\n# TYPE asymd_x_seconds_total counter\nasymd_x_seconds_total{a=\"b\"} 1.5\n"
            "# HELP asymd_y Y.\n# TYPE asymd_y gauge\nasymd_y 2\n")
    assert not list(promtool_faults(good)), list(promtool_faults(good))
    for old, new in (("# HELP asymd_y Y.\n", ""), ("_total", ""), ("_y", "_y_total"), ("_y", "_y_count"), ("_y", "_gauge_y"),
                     ("_y", "_fooBar"), ("_y", "_ms"), ("_y", "_milliseconds"), ("asymd_y 2\n", "asymd_y 2\nasymd_y 3\n"),
                     ("_y 2\n", "_y 2\nasymd_x_seconds_total 3\n"), ("_y 2\n", "_y 2\n# EOF\n"), (" 2\n", "  2\n"),
                     ("# TYPE asymd_y gauge\nasymd_y 2\n", "asymd_y 2\n# TYPE asymd_y gauge\n")):
        assert list(promtool_faults(good.replace(old, new))), (old, new)


class Exporter:
    """A running exporter."""

    def __init__(self, command, kept=None, **variables):
        self.child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables},
                                      pass_fds=[kept.fileno()] if kept else [])
        self.said = self.child.stderr.readline()
        address = re.search(r"http://(\S+):(\d+)/metrics", self.said)
        assert address, self.said
        self.host, self.port = address[1].strip("[]"), int(address[2])

    def get(self, path="/metrics", method="GET", body=None, accepts=PROMETHEUS):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT)
        connection.request(method, path, body=body, headers={"Accept": accepts} if accepts else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status != 405 or answer.getheader("Allow") == "GET, HEAD"
        return answer.status, answer.getheader("Content-Type"), text

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.child.terminate()
        status = self.child.wait(timeout=LIMIT)
        self.child.stderr.close()
        assert kind or status == 0, status


def good_text(exporter):
    status, kind, text = exporter.get()
    assert (status, kind) == (200, TYPE), (status, kind, text)
    assert text.endswith("\n# EOF\n"), text
    return text


def serves_openmetrics(exporter):
    text = good_text(exporter)
    assert "\nasymd_cycles_total" in text and "# HELP asymd_cycles " in text, text
    assert "asymd_unknown_things NaN\n" in text, text
    assert "label" not in text and "a name" not in text and "0name" not in text, text


def serves_the_older_format(exporter):
    """A client that does not ask for OpenMetrics gets the same samples in the format that it can read."""
    def samples(text):
        return [line.split()[0] for line in text.splitlines() if not line.startswith("#")]

    openmetrics = samples(good_text(exporter))
    for accepts in (None, "*/*", "text/plain", "text/html,application/xhtml+xml,*/*;q=0.8"):
        status, kind, text = exporter.get(accepts=accepts)
        assert (status, kind) == (200, PLAIN_TYPE), (status, kind, text)
        found = list(promtool_faults(text, without_help=("asymd_unknown_things",)))
        assert not found, "\n".join(found)
        assert samples(text) == openmetrics, text
        assert "# HELP asymd_cycles_total " in text and "# TYPE asymd_cycles_total counter\nasymd_cycles_total " in text, text


def answers_only_metrics(exporter):
    for path in ("/", "/metrics/", "/metric", "/../metrics", "/%2e%2e/etc/passwd", "//metrics"):
        status, kind, text = exporter.get(path)
        assert (status, kind) == (404, "text/plain; charset=utf-8") and "/metrics" in text, (path, status, text)
    assert exporter.get("/metrics?a=b")[0] == 200
    for method, body in (("POST", "x" * 100000), ("PUT", "x"), ("DELETE", None)):
        assert exporter.get(method=method, body=body)[0] == 405, method
    status, kind, text = exporter.get(method="HEAD")
    assert (status, kind, text) == (200, TYPE, "")


def survives_bad_clients(exporter):
    """Silent clients, half a request, and bytes that are no HTTP: the next client is served."""
    silent = [socket.create_connection((exporter.host, exporter.port), timeout=LIMIT) for _ in range(20)]
    silent[0].sendall(b"GET /metr")
    silent[1].sendall(b"\x00\xff" * 4000)
    good_text(exporter)
    for connection in silent:
        connection.close()
    good_text(exporter)


def drops_the_oldest_of_many_clients(exporter):
    """Clients that never end their request, and send a byte now and then, do not shut others out."""
    slow = []
    start = time.monotonic()
    for _ in range(200):
        slow.append(socket.create_connection((exporter.host, exporter.port), timeout=LIMIT))
        slow[-1].sendall(b"GET /metr")
    good_text(exporter)
    elapsed = time.monotonic() - start
    assert elapsed < 15, f"{elapsed:.1f} s: a client waited for the timeout of others"
    # The oldest had to go. The youngest still has its connection, and gets its answer.
    assert slow[0].recv(1) == b""
    slow[-1].sendall(b"ics HTTP/1.1\r\nHost: here\r\n\r\n")
    assert slow[-1].recv(12) == b"HTTP/1.1 200"
    for connection in slow:
        connection.close()
    good_text(exporter)


def keeps_a_late_answer(program, variables, exporter_command):
    """An answer that took longer than it counts answers the next scrape, too."""
    with Fake(program, variables["ASYMD_BUS"], 4, 4, 1500) as fake, Exporter(exporter_command, **variables) as exporter:
        good_text(exporter)
        good_text(exporter)
        assert fake.calls("counters") == 1, fake.calls("counters")


def leaves_the_socket_of_systemd(exporter, variables):
    """systemd keeps the socket that it hands over: the exporter serves on it again after its end and a new start."""
    with socket.create_server(("127.0.0.1", 0)) as kept:
        script = f'exec 3<&{kept.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0"'
        command = ["bash", "-c", script, exporter]
        for _ in range(3):
            with Exporter(command, kept, **variables) as running:
                good_text(running)
        # A client that comes while no exporter runs waits for the next one.
        with socket.create_connection(kept.getsockname(), timeout=LIMIT) as early:
            early.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
            with Exporter(command, kept, **variables):
                assert early.recv(12) == b"HTTP/1.1 200"


def asks_once_a_second(program, variables, exporter_command):
    with Fake(program, variables["ASYMD_BUS"], 4, 4) as fake, Exporter(exporter_command, **variables) as exporter:
        start = time.monotonic()
        for _ in range(50):
            good_text(exporter)
        elapsed = time.monotonic() - start
        fake.stop()
        assert 1 <= fake.calls("counters") <= elapsed + 2, (fake.calls("counters"), elapsed)
        # The text stays for a second. Then the exporter says that asymd is gone.
        end = time.monotonic() + LIMIT
        while (answer := exporter.get())[0] == 200:
            assert time.monotonic() < end
            time.sleep(0.1)
        status, kind, text = answer
        assert (status, kind) == (503, "text/plain; charset=utf-8"), answer
        assert text.startswith("asymd is not running. Start it") and text.count("\n") == 1, text
        with Fake(program, variables["ASYMD_BUS"], 4, 4):
            while exporter.get()[0] != 200:
                assert time.monotonic() < end
                time.sleep(0.1)
            good_text(exporter)


def takes_the_socket_of_systemd(exporter, variables):
    """systemd-socket-activate listens, and starts the exporter at the first connection."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    starter = subprocess.Popen(["systemd-socket-activate", f"--listen=127.0.0.1:{port}", "--setenv=ASYMD_BUS", exporter],
                               env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True)
    try:
        assert "Listening on" in starter.stderr.readline()
        client = Exporter.__new__(Exporter)
        client.host, client.port = "127.0.0.1", port
        good_text(client)
    finally:
        starter.terminate()
        said = starter.communicate(timeout=LIMIT)[1]
    assert f"serves http://127.0.0.1:{port}/metrics" in said and starter.returncode == 0, (starter.returncode, said)


def refuses_other_sockets(exporter):
    with socket.create_server(("127.0.0.1", 0)) as good, socket.socket() as idle, \
            socket.socket(type=socket.SOCK_DGRAM) as datagrams, socket.socketpair()[0] as pair:
        for sockets, options, wanted in (([good, good], [], "several sockets"), ([], [], "not a number of sockets"),
                                         ([idle], [], "no listening TCP socket"),
                                         ([datagrams], [], "no listening TCP socket"), ([pair], [], "no listening TCP socket"),
                                         ([good], ["--listen=127.0.0.1:0"], "set ListenStream= in asymd-exporter.socket")):
            moves = " ".join(f"{3 + i}<&{s.fileno()}" for i, s in enumerate(sockets))
            script = f'exec {moves or "3<&-"}; LISTEN_PID=$$ LISTEN_FDS={len(sockets) or "many"} exec "$@"'
            done = subprocess.run(["bash", "-c", script, "bash", exporter, *options], capture_output=True, text=True,
                                  pass_fds=[s.fileno() for s in sockets], timeout=LIMIT, check=False)
            assert done.returncode == 2 and wanted in done.stderr and done.stderr.count("\n") == 1, done


def refuses(exporter):
    def run(*options, status=2, **variables):
        done = subprocess.run([exporter, *options], env={**os.environ, **variables}, capture_output=True, text=True,
                              timeout=LIMIT, check=False)
        assert done.returncode == status and done.stderr.count("\n") == (status != 0), (options, done)
        return done.stderr + done.stdout

    for address in ("here", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:8x", "[::1]", "[::1:80",
                    "::1:80", "localhost:80", ":80", "1.2.3.4.5:80", "127.0.0.1:\x1b[2J", "127.0.0.1:000001", "[::1]1",
                    "[127.0.0.1]:1", "1.2.3:4"):
        said = run(f"--listen={address}")
        assert "is not accepted" in said and "127.0.0.1:10642" in said and "\x1b" not in said, said
    assert "did you mean '--listen'" in run("--listne=127.0.0.1:1")
    assert "stray argument" in run("metrics")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        said = run(f"--listen={address}", status=1)
        assert "Address already in use" in said and address in said, said
    assert "127.0.0.1:10642" in run("--help", status=0)
    assert run("--version", status=0).startswith("asymd-exporter ")


def main(exporter, program):
    test_promtool()
    refuses(exporter)
    with tempfile.TemporaryDirectory() as folder:
        variables = {"ASYMD_BUS": f"{folder}/bus"}
        with Fake(program, variables["ASYMD_BUS"], 4, 4):
            with Exporter([exporter, "--listen=127.0.0.1:0"], **variables) as running:
                assert running.host == "127.0.0.1"
                serves_openmetrics(running)
                serves_the_older_format(running)
                answers_only_metrics(running)
                survives_bad_clients(running)
                drops_the_oldest_of_many_clients(running)
            takes_the_socket_of_systemd(exporter, variables)
            leaves_the_socket_of_systemd(exporter, variables)
            refuses_other_sockets(exporter)
        keeps_a_late_answer(program, variables, [exporter, "--listen=127.0.0.1:0"])
        asks_once_a_second(program, variables, [exporter, "--listen=127.0.0.1:0"])


if __name__ == "__main__":
    main(*sys.argv[1:])
