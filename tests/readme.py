#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""readme.py BUILD: runs the commands of each block of README.md after a line "<!-- check: N -->", and checks that the block
shows the first N paragraphs of their output. A line "[...]" ends the block if there are more.

With --renew as a second argument the script writes the blocks instead: read the difference before you commit it."""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(TOP, "README.md")
BLOCK = re.compile(r"<!-- check: (?P<n>\d) -->\n\n(?P<commands>(?:    \$ .*\n)+)(?P<output>(?:    .*\n|\n(?=    ))*)")
N_BLOCKS = 3


def typed(commands, build, folder):
    """What the commands print. In place of build/release they use BUILD, and they write below the folder in place of build."""
    script = re.sub(r"\bbuild/(release/)?", lambda m: (build if m[1] else folder) + "/", commands.replace("    $ ", ""))
    result = subprocess.run(["sh", "-ec", script], stdout=subprocess.PIPE, text=True, cwd=TOP, check=False,
                            env={**os.environ, "NO_COLOR": "1", "COLUMNS": ""})
    if result.returncode:
        sys.exit(f"README.md: status {result.returncode} from these commands:\n{script}")
    return result.stdout


def renewed(block, build):
    """The block with the present output of its commands."""
    with tempfile.TemporaryDirectory() as folder:
        paragraphs = typed(block["commands"], build, folder).rstrip("\n").split("\n\n")
    n = int(block["n"])
    text = "\n\n".join(paragraphs[:n]) + ("\n[...]" if len(paragraphs) > n else "")
    output = "".join(f"    {line}".rstrip() + "\n" for line in text.split("\n"))
    return block[0][:block.start("output") - block.start()] + output


def main():
    build = os.path.abspath(sys.argv[1])
    with open(README, encoding="utf-8") as f:
        there = f.read()
    wanted, n = BLOCK.subn(lambda block: renewed(block, build), there)
    if n != N_BLOCKS:
        sys.exit(f"README.md has {n} blocks to check, not {N_BLOCKS}")
    if sys.argv[2:] == ["--renew"]:
        with open(README, "w", encoding="utf-8") as f:
            f.write(wanted)
    elif there != wanted:
        sys.exit("README.md does not show what the programs print: tests/readme.py BUILD --renew")


if __name__ == "__main__":
    main()
