#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""readme.py BUILD: runs the commands of each block of README.md and docs/policies.md after a line "<!-- check: N -->", and checks
that the block shows the first N paragraphs of their output. A line "[...]" ends the block if there are more. After a line
"<!-- laptop: N -->" the commands ask a service that steers the simulated laptop of tests/data/screens (fake-asymd/sim-asymd.c).

With --renew as a second argument the script writes the blocks instead: read the difference before you commit it."""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# How many blocks each document has.
DOCUMENTS = {"README.md": 3, "docs/policies.md": 2}
BLOCK = re.compile(r"<!-- (?P<kind>check|laptop): (?P<n>\d) -->\n\n(?P<commands>(?:    \$ .*\n)+)(?P<output>(?:    .*\n|\n(?=    ))*)")
SECONDS = 66
# What the simulator does not know, or what differs from run to run.
VOLATILE = re.compile(r"(?<=running since ).*|(?<=asymd: )[\d.]+% CPU \| [\d.]+ MiB|(?<=Costs      ).*")


@contextlib.contextmanager
def laptop(build):
    """Yields the variables with which asymctl asks the simulated laptop."""
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([f"{build}/tests/sim-asymd", f"{TOP}/tests/data/screens/laptop.ini", folder, str(SECONDS)],
                              stdout=subprocess.PIPE, text=True) as service:
            try:
                if service.stdout.readline() != "ready\n":
                    sys.exit("sim-asymd does not answer")
                yield {"ASYMD_BUS": f"{folder}/bus", "PATH": f"{build}/daemon:{os.environ['PATH']}", "COLUMNS": "112"}
            finally:
                service.terminate()


def typed(commands, build, folder, variables):
    """What the commands print. In place of build/release they use BUILD, and they write below the folder in place of build."""
    script = re.sub(r"\bbuild/(release/)?", lambda m: (build if m[1] else folder) + "/", commands.replace("    $ ", ""))
    result = subprocess.run(["sh", "-ec", script], stdout=subprocess.PIPE, text=True, cwd=TOP, check=False,
                            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "", "LC_ALL": "C", **variables})
    if result.returncode:
        sys.exit(f"status {result.returncode} from these commands:\n{script}")
    return VOLATILE.sub("[...]", result.stdout) if variables else result.stdout


def renewed(block, build, asked):
    """The block with the present output of its commands. asked: the variables for the laptop."""
    with tempfile.TemporaryDirectory() as folder:
        text = typed(block["commands"], build, folder, asked if block["kind"] == "laptop" else {})
        paragraphs = text.rstrip("\n").split("\n\n")
    n = int(block["n"])
    text = "\n\n".join(paragraphs[:n]) + ("\n[...]" if len(paragraphs) > n else "")
    output = "".join(f"    {line}".rstrip() + "\n" for line in text.split("\n"))
    return block[0][:block.start("output") - block.start()] + output


def compare(name, wanted_blocks, build, asked):
    """Checks a document, or writes it anew."""
    path = os.path.join(TOP, name)
    with open(path, encoding="utf-8") as f:
        there = f.read()
    wanted, n = BLOCK.subn(lambda block: renewed(block, build, asked), there)
    if n != wanted_blocks:
        sys.exit(f"{name} has {n} blocks to check, not {wanted_blocks}")
    if sys.argv[2:] == ["--renew"]:
        with open(path, "w", encoding="utf-8") as f:
            f.write(wanted)
    elif there != wanted:
        sys.exit(f"{name} does not show what the programs print: tests/readme.py BUILD --renew")


def main():
    build = os.path.abspath(sys.argv[1])
    with laptop(build) as asked:
        for name, n in DOCUMENTS.items():
            compare(name, n, build, asked)


if __name__ == "__main__":
    main()
