#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""terminal.py ASYMD: without a mode, asymd explains itself, at a terminal and without one."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios


def at_a_terminal(command, env, columns=0):
    """Run the command with a pseudo-terminal of that width as its streams. Returns what it printed and its exit status."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    printed = b""
    try:
        while part := os.read(master, 4096):
            printed += part
    except OSError:  # EIO: the last process closed the terminal
        pass
    os.close(master)
    return printed.decode().replace("\r\n", "\n"), child.wait(timeout=30)


def check_widths(asymd, env):
    """Lines are as wide as the terminal: its help has lines that fill any width, but for a word."""
    env = {name: value for name, value in env.items() if name != "COLUMNS"}
    for columns in (0, 80, 100, 132):
        printed, status = at_a_terminal([asymd, "--help"], env, columns)
        widest = max(len(line) for line in printed.split("\n"))
        assert status == 0 and (columns or 80) - 20 < widest <= (columns or 80), (columns, widest)
    printed, _ = at_a_terminal([asymd, "--help"], {**env, "COLUMNS": "90"}, 132)
    assert 70 < max(len(line) for line in printed.split("\n")) <= 90, printed


def main(asymd):
    target = subprocess.Popen(["sleep", "120"])
    env = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
    try:
        check_widths(asymd, env)
        with tempfile.TemporaryDirectory() as state:
            options = ["--config=/dev/null", f"--pid={target.pid}", f"--set=asymd.state_dir={state}", "--set=rtx.listen=no"]
            piped = subprocess.run([asymd, *options], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60)
            for printed, status in (at_a_terminal([asymd, *options], env), (piped.stdout, piped.returncode)):
                assert status == 2, (status, printed)
                assert "asymd did not start" in printed and "asymd --service" in printed, printed
                assert "the programs that --pid names" in " ".join(printed.split()), printed
                assert not os.listdir(state), os.listdir(state)
            printed, status = at_a_terminal([asymd, *options, "--policy=none"], env)
            assert status == 2 and "steer nothing" in printed, (status, printed)
            # A policy for the simulator only.
            printed, status = at_a_terminal([asymd, *options, "--policy=smt-icount"], env)
            assert status == 2 and "it would end at once" in printed, (status, printed)
    finally:
        target.kill()
        target.wait()


if __name__ == "__main__":
    main(sys.argv[1])
