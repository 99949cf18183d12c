#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""hosts.py ASYMD NAME: what ASYMD says of the machine tests/data/hosts/NAME.host, against NAME.golden.
hosts.py ASYMD verdicts: the verdict of asymd --check on every machine there, one a line, against verdicts.golden.

With UPDATE=1 in the environment the golden file is written instead: read the difference before you commit it."""
import difflib
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, check=False)
    return result.stdout + result.stderr, result.returncode


def describe(asymd, root):
    plan, status = run(asymd, "--root", root, "--dry-run")
    check, check_status = run(asymd, "--root", root, "--check")
    text, json_status = run(asymd, "--root", root, "--dry-run", "--json")
    machine = json.loads(text)["machine"] if json_status == 0 else text
    auto, _ = run(asymd, "--root", root, "--dry-run", "--json", "--policy=auto")
    return "$ asymd --dry-run --policy=auto (the policy)\n%s\n\n$ asymd --dry-run (the machine)\n%s\n$ asymd --check\n%s\n$ asymd --dry-run --json (the machine)\n%s\n%s\n" % (
        json.loads(auto)["policy"]["name"] if json_status == 0 else auto, plan.split("\n\n")[0], check, json.dumps(machine, indent=1, sort_keys=True),
        "exit status %d, %d, %d" % (status, check_status, json_status))


def verdict(asymd, root):
    text, _ = run(asymd, "--root", root, "--check", "--json")
    check = json.loads(text)
    return "%s: %s" % (check["situation"], check["verdict"])


def of_host(host, asymd, say):
    with tempfile.TemporaryDirectory() as root:
        made, status = run(sys.executable, os.path.join(HERE, "mkhost.py"), host, root)
        if status != 0:
            sys.exit(made)
        return say(asymd, root).replace(root, "ROOT")


def verdicts(asymd):
    hosts = sorted(glob.glob(os.path.join(HERE, "data/hosts/*.host")))
    return "".join("%s: %s\n" % (os.path.basename(h)[:-5], of_host(h, asymd, verdict)) for h in hosts)


def main():
    asymd, name = sys.argv[1:]
    golden = os.path.join(HERE, "data/hosts", name + ".golden")
    found = verdicts(asymd) if name == "verdicts" else of_host(golden[:-7] + ".host", asymd, describe)
    if os.environ.get("UPDATE") == "1":
        with open(golden, "w", encoding="utf-8") as f:
            f.write(found)
        return
    with open(golden, encoding="utf-8") as f:
        wanted = f.read()
    if found != wanted:
        sys.stdout.writelines(difflib.unified_diff(wanted.splitlines(True), found.splitlines(True), name + ".golden",
                                                   "found"))
        sys.exit("%s is not as it was; if that is right: UPDATE=1 tests/hosts.py ASYMD %s" % (name, name))


if __name__ == "__main__":
    main()
