#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bus.py BUILD_DIR: what asking costs a running asymd. Starts programs, a bus daemon, and an asymd that steers these programs
only. Prints the CPU time that asymd spends on one asymctl status and on one asymctl why, beside that of one sample; how late its
samples are while 100 clients ask ten times a second each, beside 100 clients that ask the bus daemon itself. Ends with 1 if a
figure misses its bar."""
import contextlib
import os
import pathlib
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROUNDS, CALLS = 10, 20
# A stretch has 400 samples, so that one sample more or less in it is 0.1 ms of lateness.
CLIENTS, ASK_EVERY, SECONDS, INTERVAL = 100, 0.1, 20, 0.05
# The bars: ms of asymd's CPU time, and ms that a sample comes later than with clients of the bus daemon.
STATUS, WHY, LATER = 1, 2, 1
NAME, OBJECT, INTERFACE = "org.asymd", "/org/asymd/Manager", "org.asymd.Manager"
BUS = """<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_type="signal"/>
<allow send_requested_reply="true" send_type="method_return"/><allow send_requested_reply="true" send_type="error"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/><allow receive_type="error"/>
<allow receive_type="signal"/></policy></busconfig>"""
ASYMD = {"name": NAME, "path": OBJECT, "interface": INTERFACE}
BUS_DAEMON = {"name": "org.freedesktop.DBus", "path": "/org/freedesktop/DBus", "interface": "org.freedesktop.DBus"}
CALL, RETURN, ERROR = 1, 2, 3


def pad(data, n):
    return data + bytes(-len(data) % n)


class Client:
    """Just enough of D-Bus to call a method without arguments and to read what comes."""

    def __init__(self, path, on_bus):
        self.on_bus, self.serial, self.bytes = on_bus, 0, b""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\nBEGIN\r\n")
        while b"\r\n" not in self.bytes:
            self.read()
        said, self.bytes = self.bytes.split(b"\r\n", 1)
        assert said.startswith(b"OK "), said
        if on_bus:
            self.ask("Hello", **BUS_DAEMON)

    def read(self):
        got = self.socket.recv(1 << 16)
        assert got, "the connection was closed"
        self.bytes += got

    def call(self, member, name, path, interface, topic=None):
        self.serial += 1
        fields, body = (b"\x08\1g\0\2st\0", pad(struct.pack("<I", len(topic)) + topic + b"\0", 8) + bytes(8)) if topic else (b"", b"")
        for code, kind, text in ((1, b"o", path), (2, b"s", interface), (3, b"s", member), (6, b"s", name)):
            if code == 6 and not self.on_bus:
                continue
            fields = pad(fields, 8) + bytes([code, 1]) + kind + b"\0" + struct.pack("<I", len(text)) + text.encode() + b"\0"
        head = b"l" + bytes([CALL, 0, 1]) + struct.pack("<III", len(body), self.serial, len(fields)) + fields
        self.socket.sendall(pad(head, 8) + body)

    def messages(self):
        """Take the whole messages out of the bytes that have come: (type, body)."""
        while len(self.bytes) >= 16:
            body, _, fields = struct.unpack("<III", self.bytes[4:16])
            start = 16 + fields + -(16 + fields) % 8
            if len(self.bytes) < start + body:
                return
            kind, text = self.bytes[1], self.bytes[start:start + body]
            self.bytes = self.bytes[start + body:]
            yield kind, text

    def ask(self, member, **to):
        """Call a method, and wait until it has succeeded."""
        self.call(member, **to)
        while True:
            for kind, text in self.messages():
                assert kind != ERROR, (member, text)
                if kind == RETURN:
                    return
            self.read()


def cpu_time(pid):
    """CPU time in seconds of all threads of a process."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in tasks) / 1e9


def stolen():
    """CPU time in seconds that the host has taken from all CPUs."""
    return int(pathlib.Path("/proc/stat").read_text().split(maxsplit=9)[8]) / os.sysconf("SC_CLK_TCK")


class Asymd:
    """A running asymd that steers the loads only, and a bus daemon for it."""

    def __init__(self, build, folder, loads, budget, clean):
        self.folder, self.control = folder, build / "daemon/asymctl"
        self.direct, self.system = folder / "bus", folder / "system"
        self.env = dict(os.environ, ASYMD_BUS=str(self.direct), DBUS_SYSTEM_BUS_ADDRESS=f"unix:path={self.system}")
        (folder / "bus.conf").write_text(BUS.format(path=self.system))
        self.log = clean.enter_context((folder / "log").open("w+"))
        command = ["dbus-daemon", f"--config-file={folder / 'bus.conf'}", "--nofork", "--nosyslog"]
        self.daemon = started(clean, command, stderr=subprocess.DEVNULL)
        await_socket(self.system)
        # The nice value of asymd.service.
        command = ["nice", "-n", "-5", build / "daemon/asymd", "--service", "--config=/dev/null", "--policy=pa",
                   f"--slow={cpus() // 2}", f"--interval={INTERVAL}s", f"--set=asymd.cpu_budget={budget}",
                   f"--set=asymd.state_dir={folder}"]
        self.asymd = started(clean, command + [f"--pid={load.pid}" for load in loads], env=self.env, stderr=self.log)
        await_socket(self.direct)
        self.load = loads[0].pid

    def run(self, *words):
        done = subprocess.run([self.control, *words], env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            self.log.seek(0)
            raise SystemExit(f"asymctl {' '.join(words)} ends with {done.returncode}: {done.stderr}{self.log.read()}")
        return done.stdout

    def await_steering(self):
        end = time.monotonic() + 30
        while self.counter("threads_steered") == 0:
            assert time.monotonic() < end, "asymd steers nothing"
            time.sleep(0.5)

    def counter(self, name):
        return next(float(line.split()[-1]) for line in self.run("metrics").splitlines() if line.startswith(f"asymd_{name} "))


def cpus():
    return len(os.sched_getaffinity(0))


def started(clean, command, **options):
    """Start a process that ends with the context, in a session of its own, as systemd starts a service: the kernel divides the
    CPU time among sessions first (sched_autogroup)."""
    process = subprocess.Popen([str(word) for word in command], start_new_session=True, **options)
    clean.callback(lambda: (process.terminate(), process.wait()))
    return process


def await_socket(path):
    end = time.monotonic() + 30
    while True:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(str(path)) == 0:
                return
        assert time.monotonic() < end, f"{path}: no server"
        time.sleep(0.1)


def during(asymd, work):
    """CPU time, samples and seconds of asymd during work, and what work returns. The questions for it do not count."""
    cycles = asymd.counter("cycles_total")
    begin, cpu = time.monotonic(), cpu_time(asymd.asymd.pid)
    result = work()
    cpu, seconds = cpu_time(asymd.asymd.pid) - cpu, time.monotonic() - begin
    return cpu, asymd.counter("cycles_total") - cycles, seconds, result


def costs(asymd):
    """Prints the ms of asymd's CPU time for each command, without what it spends anyway: rounds with and without, in turn."""
    commands = {"status": ["status"], "why": ["why", str(asymd.load)]}
    found, shares, samples = {name: [] for name in commands}, [], []
    for _ in range(ROUNDS):
        cpu, cycles, seconds, _ = during(asymd, lambda: time.sleep(2))
        shares.append(cpu / seconds)
        samples.append(cpu / cycles * 1000)
        for name, words in commands.items():
            begin, before = time.monotonic(), cpu_time(asymd.asymd.pid)
            for _ in range(CALLS):
                asymd.run(*words)
            spent = cpu_time(asymd.asymd.pid) - before - shares[-1] * (time.monotonic() - begin)
            found[name].append(spent / CALLS * 1000)
    sample = statistics.median(samples)
    print(f"  alone: {statistics.median(shares):.2%} of a CPU, {sample:.2f} ms a sample")
    good = True
    for name, bar in (("status", STATUS), ("why", WHY)):
        middle = statistics.median(found[name])
        good &= verdict(middle <= bar, f"asymctl {name}: {middle:.2f} ms of asymd's CPU time ({min(found[name]):.2f} to "
                                       f"{max(found[name]):.2f}), {middle / sample:.1f} times a sample; bar {bar} ms")
    return good


def verdict(good, text):
    print(f"  {'ok    ' if good else 'MISSED'}  {text}", flush=True)
    return good


def ask_all(clients, member, to):
    """Each client asks ten times a second. Returns the number of answers in a second, and of errors."""
    answers, errors, begin = 0, 0, time.monotonic()
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
    turn = begin
    while turn < begin + SECONDS:
        for client in clients:
            client.call(member, **to)
        turn += ASK_EVERY
        while (left := turn - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                key.data.read()
                for kind, _ in key.data.messages():
                    answers += kind == RETURN
                    errors += kind == ERROR
    selector.close()
    return answers / SECONDS, errors / SECONDS


def lateness(asymd):
    """Prints how late the samples are: alone, while clients ask the bus daemon, and while they ask asymd."""
    clients = [Client(asymd.system, True) for _ in range(CLIENTS)]
    rows, late = (("alone", None, None), ("clients ask the bus daemon", "GetId", BUS_DAEMON),
                  ("clients ask asymd", "GetReport", {**ASYMD, "topic": b"status"})), []
    for name, member, to in rows:
        cpu, cycles, seconds, answers = during(asymd, lambda: ask_all(clients, member, to) if to else time.sleep(SECONDS))
        late.append((seconds / cycles - INTERVAL) * 1000)
        extra = f"; {answers[0]:.0f} answers and {answers[1]:.0f} errors in a second" if to else ""
        print(f"  {name}: a sample is {late[-1]:.1f} ms late, asymd takes {cpu / seconds:.1%} of a CPU{extra}", flush=True)
    later = late[2] - late[1]
    return verdict(later <= LATER, f"{CLIENTS} clients at {1 / ASK_EVERY:.0f} Hz: samples are {later:.1f} ms later than with the "
                                   f"same clients of the bus daemon; bar {LATER} ms")


def measure(build, programs, budget, parts):
    begin, before = time.monotonic(), stolen()
    print(f"{programs} programs, cpu_budget {budget} %", flush=True)
    # The ledger of a service is below /run, which is a tmpfs, too.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name, contextlib.ExitStack() as clean:
        loads = [started(clean, [build / "tests/load-spin", threads, "600"])
                 for threads in ["8", *["1"] * (programs - 1)]]
        asymd = Asymd(build, pathlib.Path(name), loads, budget, clean)
        asymd.await_steering()
        good = all([part(asymd) for part in parts])
    share = (stolen() - before) / (time.monotonic() - begin) / cpus()
    print(f"  the host took {share:.1%} of the CPU time meanwhile")
    return good


def main(build):
    build = pathlib.Path(build).resolve()
    # With a budget of 100 % asymd answers all that is asked. With the usual one it leaves the bus alone when its share is spent.
    runs = ((2, 100, (costs, lateness)), (50, 100, (costs,)), (2, 1, (lateness,)))
    return 0 if all([measure(build, *run) for run in runs]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
