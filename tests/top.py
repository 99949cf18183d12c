#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""top.py ASYMCTL FAKE_ASYMD: asymctl top in a pseudo-terminal: sizes, resize, colours, keys, the end."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata

LIMIT = 30  # seconds until a screen must show what a test waits for
SEQUENCE = re.compile(r"\x1b\[([?>]?)([0-9;]*)([@-~])|\x1b[()][A-Z0-9]|\x1b[=>78M]|\x1b\][^\x07]*\x07")


class Screen:
    """The part of a terminal that ncurses uses with TERM=xterm-256color, xterm-mono and vt100."""

    def __init__(self, columns, rows):
        self.row = self.column = 0
        self.columns, self.rows, self.cells = columns, rows, []
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        old = self.cells
        self.cells = [[old[r][c] if r < len(old) and c < len(old[r]) else " " for c in range(columns)] for r in range(rows)]
        self.top, self.bottom = 0, rows - 1

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

    def put(self, character):
        width = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if self.column + width > self.columns:
            self.line_feed()
            self.column = 0
        self.cells[self.row][self.column] = character
        for i in range(1, width):
            self.cells[self.row][self.column + i] = ""
        self.column += width
        self.last = character

    def line_feed(self):
        if self.row == self.bottom:
            self.delete_lines(self.top, 1)
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def blank(self):
        return [" "] * self.columns

    def delete_lines(self, at, n):
        for _ in range(n):
            del self.cells[at]
            self.cells.insert(self.bottom, self.blank())

    def insert_lines(self, at, n):
        for _ in range(n):
            del self.cells[self.bottom]
            self.cells.insert(at, self.blank())

    def erase(self, row, first, last):
        self.cells[row][first:last] = [" "] * (last - first)

    def control(self, letter, numbers):
        n = (numbers or [1])[0] or 1
        if letter == "H":
            row, column = (numbers + [1, 1])[:2] if len(numbers) != 1 else (numbers[0], 1)
            self.row, self.column = min((row or 1), self.rows) - 1, min((column or 1), self.columns) - 1
        elif letter in "ABCD":
            self.row = max(0, min(self.rows - 1, self.row + {"A": -n, "B": n}.get(letter, 0)))
            self.column = max(0, min(self.columns - 1, self.column + {"C": n, "D": -n}.get(letter, 0)))
        elif letter == "G":
            self.column = n - 1
        elif letter == "d":
            self.row = n - 1
        elif letter == "J":
            what = (numbers or [0])[0]
            for row in range(0 if what == 2 else self.row + 1, self.rows):
                self.erase(row, 0, self.columns)
            if what != 2:
                self.erase(self.row, self.column, self.columns)
        elif letter == "K":
            first, last = {0: (self.column, self.columns), 1: (0, self.column + 1)}[(numbers or [0])[0]]
            self.erase(self.row, first, last)
        elif letter == "X":
            self.erase(self.row, self.column, min(self.columns, self.column + n))
        elif letter == "P":
            row = self.cells[self.row]
            row[self.column:] = (row[self.column + n:] + [" "] * n)[:self.columns - self.column]
        elif letter == "@":
            row = self.cells[self.row]
            row[self.column:] = ([" "] * n + row[self.column:])[:self.columns - self.column]
        elif letter == "L":
            self.insert_lines(self.row, n)
        elif letter == "M":
            self.delete_lines(self.row, n)
        elif letter == "S":
            self.delete_lines(self.top, n)
        elif letter == "T":
            self.insert_lines(self.top, n)
        elif letter == "b":
            for _ in range(n):
                self.put(self.last)
        elif letter == "r":
            self.top, self.bottom = ((numbers[0] or 1) - 1, numbers[1] - 1) if len(numbers) == 2 else (0, self.rows - 1)
            self.row = self.column = 0
        elif letter not in "mhlt":
            sys.exit(f"top.py: a control sequence that the test does not know: {letter} {numbers}")

    def feed(self, text):
        """Acts on text. Returns the rest, which begins with an incomplete sequence."""
        at = 0
        while at < len(text):
            character = text[at]
            if character == "\x1b":
                match = SEQUENCE.match(text, at)
                if not match:
                    return text[at:]
                if match[3] and not match[1]:
                    self.control(match[3], [int(n or 0) for n in match[2].split(";")] if match[2] else [])
                elif match[0] == "\x1bM":
                    self.row -= self.row > 0
                at = match.end()
                continue
            if character == "\r":
                self.column = 0
            elif character == "\n":
                self.line_feed()
            elif character == "\b":
                self.column -= self.column > 0
            elif character >= " ":
                self.put(character)
            at += 1
        return ""


class Terminal:
    """A program in a pseudo-terminal of its own."""

    def __init__(self, command, columns, rows, **variables):
        self.screen, self.rest, self.raw = Screen(columns, rows), "", b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # The parent sets the size first.
            os.read(0, 1)
            os.execve(command[0], command, {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, **variables})
        self.set_size(columns, rows)
        os.write(self.fd, b"\n")

    def set_size(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.screen.resize(columns, rows)
        self.set_size(columns, rows)

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def read(self, timeout):
        """Read what the program has written. Returns False at the end of the terminal."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            part = os.read(self.fd, 65536)
        except OSError:  # EIO: the last process closed the terminal
            return False
        self.raw += part
        # An incomplete character stays for the next time, as bytes.
        whole = part if not isinstance(self.rest, bytes) else self.rest + part
        if isinstance(self.rest, str) and self.rest:
            whole = self.rest.encode() + part
        text = whole.decode(errors="ignore") if whole[-1] < 0x80 else None
        if text is None:
            self.rest = whole
            return True
        self.rest = self.screen.feed(text)
        return True

    def until(self, what, condition):
        end = time.monotonic() + LIMIT
        while not condition(self.screen.text()):
            if not self.read(0.1) or time.monotonic() > end:
                sys.exit(f"top.py: {what}: not within {LIMIT} s:\n{self.screen.text()}")

    def shows(self, *parts):
        self.until(f"shows {parts}", lambda text: all(part in text for part in parts))

    def hides(self, part):
        self.until(f"does not show {part!r}", lambda text: part not in text)

    def end(self):
        """Returns the exit status."""
        while self.read(LIMIT):
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Fake:
    """A running fake-asymd."""

    def __init__(self, program, socket, cpus, apps, delay=0):
        self.log = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen([program, socket, str(cpus), str(apps), str(delay)], stdout=self.log)
        self.wait("ready", 1)

    def calls(self, name):
        self.log.seek(0)
        return self.log.read().split("\n").count(name)

    def wait(self, name, n):
        end = time.monotonic() + LIMIT
        while self.calls(name) < n:
            assert time.monotonic() < end, f"{name} was not called {n} times"
            time.sleep(0.02)

    def stop(self):
        self.child.kill()
        self.child.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Test:
    def __init__(self, asymctl, fake, socket):
        self.asymctl, self.program, self.socket = asymctl, fake, socket
        self.variables = {"ASYMD_BUS": socket, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}

    def fake(self, cpus=8, apps=40):
        return Fake(self.program, self.socket, cpus, apps)

    def top(self, columns, rows, *options, **variables):
        return Terminal([self.asymctl, "top", *options], columns, rows, **{**self.variables, **variables})

    def quit(self, terminal):
        terminal.press("q")
        assert terminal.end() == 0

    def each_size(self):
        with self.fake():
            for columns, rows, parts in ((80, 24, ["P-core, fast 2.00x, 4 CPUs 0-3", "] stockfish", "REASON", "1 of 40"]),
                                         (200, 60, ["THREADS", "highly parallel", "auto chose it"]),
                                         (40, 10, ["P-core  ", "4 CPUs", "FAST", "1 of 40"])):
                terminal = self.top(columns, rows)
                terminal.shows("policy pa", "q quit", *parts)
                lines = terminal.screen.text().split("\n")
                assert lines[0].startswith("policy pa") and "q quit" in lines[rows - 1], terminal.screen.text()
                assert columns == 40 or "gzip\\x1b[2J" in terminal.screen.text(), terminal.screen.text()
                # The wide name moves no column: the class stands where its heading does.
                row = next(line for line in terminal.screen.cells if "漢" in line)
                heading = next(line for line in lines if "COMMAND" in line)
                at = heading.index("CLASS")
                assert "".join(row[at:at + 6]) == "serial", row
                self.quit(terminal)

    def resize(self):
        with self.fake():
            terminal = self.top(80, 24, "--interval=3600s")
            terminal.shows("1 of 40")
            for columns, rows in ((40, 10), (120, 50), (20, 4), (1, 1), (80, 24)):
                terminal.resize(columns, rows)
                wanted = "q quit" if columns >= 10 else "p"
                terminal.until(f"draws {columns}x{rows}",
                               lambda text, n=rows, part=wanted: part in text.split("\n")[n - 1] and text.startswith("p"))
            self.quit(terminal)

    def colours(self):
        coloured = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7])(?:;\d+)*m")
        with self.fake():
            for variables, colours in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True),
                                       ({"TERM": "xterm-mono"}, False), ({"TERM": "vt100"}, False)):
                terminal = self.top(80, 24, **variables)
                terminal.shows("policy pa", "1 of 40")
                self.quit(terminal)
                assert bool(coloured.search(terminal.raw)) == colours, (variables, terminal.raw)
                assert b"\x1b[7m" in terminal.raw or b"\x1b[0;7m" in terminal.raw or colours, (variables, terminal.raw)
            terminal = self.top(80, 24, LC_ALL="C")
            terminal.shows("policy pa", "????????")
            self.quit(terminal)
            assert all(byte < 0x80 for byte in terminal.raw), "bytes that the locale C does not have"

    def keys(self):
        with self.fake() as fake:
            terminal = self.top(80, 24, "--interval=3600s")
            terminal.shows("RUN*", "1 of 40")
            # An arrow key, as a terminal sends it.
            terminal.press("\x1bOB")
            terminal.shows("2 of 40")
            terminal.press("/gzip")
            terminal.shows("filter (Esc clears): gzip_")
            terminal.press("\r")
            terminal.shows("filter gzip: 10 of 40")
            terminal.hides("make")
            terminal.press("<<<<<")
            terminal.shows("PID*")
            terminal.press("\x1bOHj\r")
            terminal.shows("(1005) has 8 runnable threads", "rule: none")
            terminal.press("q")
            terminal.shows("filter gzip")
            terminal.press("\x1b")
            terminal.shows("of 40")
            terminal.press("g\r")
            terminal.shows("asymd does not know process 1000")
            terminal.press("?")
            terminal.shows("pause asymd, or resume")
            terminal.press("q")
            terminal.shows("enter why")
            self.pause(terminal, fake)
            self.orders(terminal, fake)
            self.quit(terminal)
            assert fake.calls("why 1005") == fake.calls("why 1000") == 1

    def pause(self, terminal, fake):
        terminal.press("p")
        terminal.shows("Pause? asymd puts every thread back. y/n")
        terminal.press("n")
        terminal.shows("q quit")
        assert fake.calls("Pause 0") == 0
        terminal.press("py")
        terminal.shows("PAUSED until you resume", "asymd is paused.")
        assert fake.calls("Pause 0") == 1
        terminal.press("py")
        terminal.hides("PAUSED")
        assert fake.calls("Resume") == 1

    def orders(self, terminal, fake):
        """Keys change the process under the cursor, after a question."""
        terminal.press("gf")
        terminal.shows("Keep stockfish (1000) on fast CPUs until it ends? y/n")
        terminal.press("nfy")
        terminal.shows("Process 1000 is on fast CPUs until it ends")
        terminal.press("iy")
        terminal.shows("Process 1000 is left alone")
        terminal.press("jiy")
        terminal.shows("Not permitted here: sudo asymctl top, or an asymctl verb in another terminal.")
        terminal.press("korr\ry")
        terminal.shows("The policy is rr now.")
        for call in ("SetProgram 1000 fast", "SetProgram 1000 ignore", "SetPolicy rr 0"):
            assert fake.calls(call) == 1, call

    def asymd_ends_and_returns(self):
        with self.fake():
            terminal = self.top(80, 24, "--interval=100ms")
            terminal.shows("policy pa", "make")
        terminal.shows("asymd is not running", "make")
        with self.fake(apps=3):
            terminal.shows("policy pa", "stockfish")
            terminal.hides("asymd is not running")
            self.quit(terminal)

    def endings(self):
        with self.fake():
            for end in (lambda t: t.press("\x03"), lambda t: os.kill(t.pid, signal.SIGTERM), lambda t: t.press("q")):
                terminal = self.top(80, 24)
                terminal.shows("1 of 40")
                assert not termios.tcgetattr(terminal.fd)[3] & termios.ECHO
                terminal.raw = b""
                end(terminal)
                while b"\x1b[?1049l" not in terminal.raw:
                    assert terminal.read(LIMIT), terminal.raw
                assert terminal.end() == 0

    def stream_of_keys(self):
        """A signal ends top also while keys keep coming."""
        with self.fake():
            for end in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                terminal = self.top(80, 24, "--interval=3600s")
                terminal.shows("1 of 40")
                os.set_blocking(terminal.fd, False)
                start, sent = time.monotonic(), False
                while not (done := os.waitpid(terminal.pid, os.WNOHANG))[0]:
                    elapsed = time.monotonic() - start
                    if elapsed > 0.5 and not sent:
                        os.kill(terminal.pid, end)
                        sent = True
                    if elapsed > LIMIT:
                        os.kill(terminal.pid, signal.SIGKILL)
                    try:
                        os.write(terminal.fd, b"j" * 4096)
                    except BlockingIOError:
                        pass
                    terminal.read(0.01)
                status = os.waitstatus_to_exitcode(done[1])
                os.close(terminal.fd)
                assert sent and status == 0, f"{end}: exit status {status}"

    def sockets(self, terminal):
        """How many sockets top holds open. It may close one while the test looks."""
        folder, n = f"/proc/{terminal.pid}/fd", 0
        for fd in os.listdir(folder):
            try:
                n += os.readlink(f"{folder}/{fd}").startswith("socket:")
            except FileNotFoundError:
                pass
        return n

    def stop(self, terminal):
        """Ctrl-S, until top has closed its connection."""
        terminal.press("\x13")
        end = time.monotonic() + LIMIT
        while self.sockets(terminal) > 0:
            assert time.monotonic() < end, "top holds a connection while its terminal is stopped"
            terminal.read(0.05)

    def stopped(self):
        """While Ctrl-S stops the terminal, top asks asymd nothing and holds no connection; after Ctrl-Q it goes on."""
        with self.fake() as fake:
            terminal = self.top(80, 24, "--interval=100ms")
            terminal.shows("1 of 40")
            self.stop(terminal)
            calls = fake.calls("status")
            terminal.press("?")
            time.sleep(0.5)
            assert fake.calls("status") == calls
            assert "pause asymd, or resume" not in terminal.screen.text()
            terminal.press("\x11")
            terminal.shows("pause asymd, or resume")
            fake.wait("status", calls + 2)
            terminal.press("q")
            self.quit(terminal)

    def ends_while_stopped(self):
        """A signal and q end top while Ctrl-S stops the terminal, and give the terminal back."""
        with self.fake():
            for end in (lambda t: os.kill(t.pid, signal.SIGTERM), lambda t: t.press("q"), lambda t: t.press("\x03")):
                terminal = self.top(80, 24, "--interval=100ms")
                terminal.shows("1 of 40")
                self.stop(terminal)
                terminal.raw = b""
                end(terminal)
                assert terminal.end() == 0
                assert b"\x1b[?1049l" in terminal.raw, terminal.raw

    def ends_while_not_read(self):
        """SIGTERM ends top while it is blocked in a write to a terminal that does not read."""
        with self.fake():
            terminal = self.top(80, 24, "--interval=3600s")
            terminal.shows("1 of 40")
            for i in range(200):
                terminal.set_size(150 + i % 50, 60)
                time.sleep(0.01)
            os.kill(terminal.pid, signal.SIGTERM)
            end = time.monotonic() + LIMIT
            while not (done := os.waitpid(terminal.pid, os.WNOHANG))[0]:
                if time.monotonic() > end:
                    os.kill(terminal.pid, signal.SIGKILL)
                time.sleep(0.02)
            os.close(terminal.fd)
            assert os.waitstatus_to_exitcode(done[1]) == 0, done

    def hang_up(self):
        """top ends when its terminal goes away, whether the kernel sends SIGHUP (it is top's controlling terminal) or not."""
        with self.fake():
            for controlling in (True, False):
                master, slave = pty.openpty()
                fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
                take = ["setsid", "--ctty"] if controlling else ["setsid"]
                child = subprocess.Popen([*take, self.asymctl, "top"], env={**os.environ, **self.variables}, stdin=slave,
                                         stdout=slave, stderr=subprocess.DEVNULL)
                os.close(slave)
                shown = b""
                while b"1 of 40" not in shown:
                    assert select.select([master], [], [], LIMIT)[0], shown
                    shown += os.read(master, 65536)
                os.close(master)
                try:
                    assert child.wait(timeout=LIMIT) == 0, controlling
                finally:
                    child.kill()

    def end_of_file(self):
        """A terminal that is at its end, without a hang-up, ends top. A byte that is no character does not."""
        with self.fake():
            terminal = self.top(80, 24, "--interval=3600s")
            terminal.shows("1 of 40")
            os.write(terminal.fd, b"\xff")
            time.sleep(0.3)  # ncurses takes bytes that arrive together for one character
            terminal.press("?")
            terminal.shows("pause asymd, or resume")
            attributes = termios.tcgetattr(terminal.fd)
            attributes[3] |= termios.ICANON
            termios.tcsetattr(terminal.fd, termios.TCSANOW, attributes)
            terminal.press("\x04")
            assert terminal.end() == 0

    def what_is_no_terminal(self):
        """test-verb-parts.c has the terminals that cannot."""
        done = self.run("top")
        assert done.returncode == 2 and "--once" in done.stderr, done

    def run(self, *arguments):
        return subprocess.run([self.asymctl, *arguments], env={**os.environ, **self.variables}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT, check=False)

    def once(self):
        done = self.run("top", "--once")
        assert done.returncode == 5 and "asymd is not running" in done.stderr and not done.stdout, done
        with self.fake():
            done = self.run("top", "--once")
            lines = done.stdout.split("\n")
            assert done.returncode == 0 and len(lines) == 1 + 2 + 4 + 1 + 40 + 1 - 1 + (lines[-1] == ""), done.stdout
            assert "\x1b" not in done.stdout and max(map(len, lines)) <= 80 and "REASON" in done.stdout, done.stdout
            self.variables["COLUMNS"] = "120"
            lines = self.run("top", "--once").stdout.split("\n")
            assert 100 < max(map(len, lines)) <= 120, lines
            del self.variables["COLUMNS"]
            terminal = self.top(160, 5, "--once", TERM="dumb")
            assert terminal.end() == 0 and b"THREADS" in terminal.raw, terminal.raw
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([self.asymctl, "top", "--once"], env={**os.environ, **self.variables}, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
            assert done.returncode == 1 and "cannot write to standard output" in done.stderr, done
            done = self.run("top", "--interval=5ms")
            assert done.returncode == 2 and "--interval" in done.stderr, done

    def steady_frames(self):
        """Frames with the same values draw nothing, and each asks asymd for the CPUs and the applications once."""
        with self.fake(cpus=64, apps=500) as fake:
            terminal = self.top(200, 60, "--interval=100ms")
            terminal.shows("1 of 500")
            fake.wait("status", 3)
            while select.select([terminal.fd], [], [], 0)[0]:
                terminal.read(0)
            terminal.raw = b""
            before = fake.calls("status")
            fake.wait("status", before + 3)
            terminal.read(0)
            frames = fake.calls("status")
            # A frame can say that frames come less often, and how often; it draws nothing else.
            assert len(terminal.raw) <= 200 * (frames - before + 1), (frames - before, terminal.raw)
            self.quit(terminal)


def main(asymctl, fake):
    with tempfile.TemporaryDirectory() as folder:
        test = Test(asymctl, fake, f"{folder}/bus")
        for check in (test.once, test.each_size, test.resize, test.colours, test.keys, test.asymd_ends_and_returns, test.endings,
                      test.stream_of_keys, test.stopped, test.ends_while_stopped, test.ends_while_not_read, test.hang_up,
                      test.end_of_file, test.what_is_no_terminal, test.steady_frames):
            check()


if __name__ == "__main__":
    main(*sys.argv[1:])
