#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""observe_verbs.py ASYMCTL: record, of a record and of a trace, in a pseudo-terminal: the bar with the time left, and what Ctrl-C keeps."""
import json
import os
import re
import subprocess
import sys
import tempfile

from top import Terminal

BAR = re.compile(r"\[[#.]+\] (\d+) of (\d+) s, (\d+) (s|min) left")
VARIABLES = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def observe(asymctl, *arguments):
    return Terminal([asymctl, *arguments], 80, 24, **VARIABLES)


def shows_bar(terminal):
    """Wait for a bar whose numbers agree. Returns the seconds in all."""
    terminal.until("shows how much is left", BAR.search)
    done, whole, left, unit = BAR.search(terminal.screen.text()).groups()
    scale, rounding = (60, 32) if unit == "min" else (1, 2)
    assert abs(int(done) + int(left) * scale - int(whole)) <= rounding, terminal.screen.text()
    return int(whole)


def check_end(asymctl, folder, pid):
    """The bar goes, and the last line says what was recorded."""
    terminal = observe(asymctl, "record", f"{folder}/a.rec", "--time=3s", f"--pid={pid}")
    assert shows_bar(terminal) == 3
    assert terminal.end() == 0
    text = terminal.screen.text()
    assert not BAR.search(text) and "recorded 3." in text, text


def check_ctrl_c(asymctl, folder, pid):
    """Ctrl-C ends a record and a trace of an hour, and both files are whole."""
    for kind in ([], ["--trace"]):
        name = f"{folder}/{'trace' if kind else 'record'}.out"
        terminal = observe(asymctl, "record", *kind, name, "--time=1h", f"--pid={pid}")
        assert shows_bar(terminal) == 3600
        terminal.press("\x03")
        assert terminal.end() == 0, terminal.screen.text()
        assert not BAR.search(terminal.screen.text()), terminal.screen.text()
        assert not os.path.exists(f"{name}.part")
    done = subprocess.run([asymctl, "replay", f"{folder}/record.out"], capture_output=True, text=True, check=True)
    assert "byte for byte" in done.stdout and "cut" not in done.stderr, done
    with open(f"{folder}/trace.out", encoding="utf-8") as trace:
        assert any(e["ph"] == "M" for e in json.load(trace)["traceEvents"])


def check_without_terminal(asymctl, folder, pid):
    done = subprocess.run([asymctl, "record", f"{folder}/b.rec", "--time=1500ms", f"--pid={pid}", "--config=/dev/null"],
                          capture_output=True, text=True, check=True)
    assert done.stderr == "", done.stderr


def main(asymctl):
    target = subprocess.Popen(["sleep", "600"])
    try:
        with tempfile.TemporaryDirectory() as folder:
            check_end(asymctl, folder, target.pid)
            check_ctrl_c(asymctl, folder, target.pid)
            check_without_terminal(asymctl, folder, target.pid)
    finally:
        target.kill()
        target.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
