#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""hosts.py ASYMD [NAME...]: compares the output of ASYMD for the machine tests/data/hosts/NAME.host with NAME.golden, and the
verdict of asymd --check with the machine's line of verdicts.golden. Without NAME: for all machines, and checks that
verdicts.golden has a line for each, and no other.
hosts.py ASYMD --renew: writes all these golden files, and names those that changed. Read the difference before you commit it.
"""
import concurrent.futures
import difflib
import glob
import json
import os
import subprocess
import sys
import tempfile

import mkhost

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1", "COLUMNS": ""}, check=False)
    return result.stdout + result.stderr, result.returncode


def describe(asymd, root):
    plan, status = run(asymd, "--root", root, "--dry-run")
    check, check_status = run(asymd, "--root", root, "--check")
    text, json_status = run(asymd, "--root", root, "--dry-run", "--json")
    machine = json.loads(text)["machine"] if json_status == 0 else text
    policy = json.loads(text)["policy"]["name"] if json_status == 0 else text
    return "$ asymd --dry-run --json (the policy)\n%s\n\n$ asymd --dry-run (the machine)\n%s\n$ asymd --check\n%s\n$ asymd --dry-run --json (the machine)\n%s\n%s\n" % (
        policy, plan.split("\n\n")[0], check, json.dumps(machine, indent=1, sort_keys=True),
        "exit status %d, %d, %d" % (status, check_status, json_status))


def verdict(asymd, root):
    text, _ = run(asymd, "--root", root, "--check", "--json")
    check = json.loads(text)
    return "%s: %s" % (check["situation"], check["verdict"])


def of_host(asymd, name):
    """Make the machine. Returns its description, and its line of verdicts.golden."""
    # A machine has thousands of files: they cost a tenth in memory.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as root:
        mkhost.make(golden_of(name)[:-7] + ".host", root)
        return describe(asymd, root).replace(root, "ROOT"), "%s: %s\n" % (name, verdict(asymd, root).replace(root, "ROOT"))


def golden_of(name):
    return os.path.join(HERE, "data/hosts", name + ".golden")


def names_of_hosts():
    return [os.path.basename(host)[:-5] for host in sorted(glob.glob(os.path.join(HERE, "data/hosts/*.host")))]


def read_golden(name):
    """Returns the golden file; "" for a machine that has none yet."""
    if not os.path.exists(golden_of(name)):
        return ""
    with open(golden_of(name), encoding="utf-8") as f:
        return f.read()


def of_hosts(asymd, names):
    """Returns of_host() of each name. asymd runs on each CPU."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(lambda name: of_host(asymd, name), names)))


def renew(asymd):
    hosts = of_hosts(asymd, names_of_hosts())
    goldens = {name: found for name, (found, _) in hosts.items()}
    for name, found in [*goldens.items(), ("verdicts", "".join(line for _, line in hosts.values()))]:
        if found == read_golden(name):
            continue
        with open(golden_of(name), "w", encoding="utf-8") as f:
            f.write(found)
        print("%s.golden changed" % name)


def compare(name, wanted, found):
    """Returns the name if found is not what was wanted, and prints the difference; else nothing."""
    if found == wanted:
        return []
    sys.stdout.writelines(difflib.unified_diff(wanted.splitlines(True), found.splitlines(True), name + ".golden", "found"))
    return [name]


def main():
    asymd, *names = sys.argv[1:]
    if names == ["--renew"]:
        return renew(asymd)
    verdicts = {line.split(":")[0]: line for line in read_golden("verdicts").splitlines(True)}
    failed = [] if names else compare("verdicts", "\n".join(verdicts), "\n".join(names_of_hosts()))
    for name, (found, line) in of_hosts(asymd, names or names_of_hosts()).items():
        failed += compare(name, read_golden(name), found) + compare("verdicts", verdicts.get(name, ""), line)
    if failed:
        sys.exit("%s: not as before; if that is right: tests/hosts.py ASYMD --renew" % ", ".join(sorted(set(failed))))


if __name__ == "__main__":
    main()
