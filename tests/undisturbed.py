#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run a test, and run it again if it failed while the host of this virtual machine took CPU time.

usage: undisturbed.py [--limit=SECONDS] [--needs=NEED,...] COMMAND [ARGUMENT...]

A live test observes its own programs for some time and asserts what asymd did. If the host gives the CPUs to others in that time
(steal in /proc/stat), the programs hardly run, and the test says nothing about asymd. A test that fails on an undisturbed machine
fails here, too: it runs once. Each further run, and the stolen share that led to it, stands in the output, and so does the CPU
time. A cmocka program runs only those of its tests again that failed.
Each process of the test may use SECONDS of CPU time (200), which do not pass faster on a busy machine; five times that where a test
makes all of its rounds (ASYM_NIGHTLY, support/rounds.h): a load runs as long as they do.
Where root runs ctest for another user (ASYM_TEST_USER, UID:GID), a test runs as root only if it has one of the needs of
ASYM_TEST_ROOT.
"""
import ctypes
import os
import pwd
import re
import resource
import signal
import subprocess
import sys
import time

# A test that failed while the host took more than this share of the CPUs' time runs again.
MOST_STOLEN = 0.05
MOST_RUNS = 4
# Seconds that a run waits for a host that leaves the CPUs alone. After that it runs all the same: a test that passes on a
# disturbed machine has passed.
PATIENCE = 150
PR_SET_PDEATHSIG = 1


def stolen():
    """Return the CPU time in seconds that the host has taken from all CPUs."""
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Stretch:
    """A stretch of time that begins now."""

    def __init__(self):
        self.begin, self.stolen = time.monotonic(), stolen()

    def share(self):
        return (stolen() - self.stolen) / ((time.monotonic() - self.begin) * os.sysconf("SC_NPROCESSORS_ONLN"))


def begin_spinner():
    """Prepare a child for SCHED_IDLE: other tests may run in parallel, and get nearly all the CPU time that they want."""
    end_with_parent()
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def share_under_load(seconds=1.0):
    """Return the share that the host takes while every CPU is wanted. It takes nothing from idle CPUs.

    Each CPU is wanted by a spinner or by another test, so the share does not depend on what else runs.
    """
    stretch = Stretch()
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=begin_spinner)
                for _ in range(os.sysconf("SC_NPROCESSORS_ONLN"))]
    time.sleep(seconds)
    share = stretch.share()
    for spinner in spinners:
        spinner.kill()
    for spinner in spinners:
        spinner.wait()
    return share


def wait_for_host():
    """Wait until the host leaves the CPUs alone, but no longer than PATIENCE. Return the share that it takes then."""
    end = time.monotonic() + PATIENCE
    while True:
        share = share_under_load()
        if share < MOST_STOLEN or time.monotonic() > end:
            return share
        time.sleep(5)


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def failed_tests(line):
    match = re.match(r"\[  FAILED  \] (\w+)$", line)
    return {match.group(1)} if match else set()


def limit_of(seconds, environment):
    return int(seconds) * (5 if "ASYM_NIGHTLY" in environment else 1)


def begin_test(limit):
    """Prepare a child for the test. SIGXCPU ends a process that has used its time, unless it catches that; SIGKILL comes later."""
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))


def user_of(needs, environment):
    """Return what makes Popen change the user for a test with these needs. The environment becomes that of a login, which cannot
    change the user once more."""
    if "ASYM_TEST_USER" not in environment or set(needs) & set(environment["ASYM_TEST_ROOT"].split()):
        return {}
    uid, gid = map(int, environment.pop("ASYM_TEST_USER").split(":"))
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return {"user": uid, "group": gid, "extra_groups": []}
    environment.update(HOME=entry.pw_dir, USER=entry.pw_name, LOGNAME=entry.pw_name)
    return {"user": uid, "group": gid, "extra_groups": os.getgrouplist(entry.pw_name, gid)}


def run(command, limit, environment, user):
    """Run the command, and pass its output on. Return its exit status and the names of the cmocka tests that failed."""
    failed = set()
    ours, theirs = os.pipe()
    if user:  # asymd opens its standard error by name
        os.fchown(theirs, user["user"], user["group"])
    process = subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs, preexec_fn=lambda: begin_test(limit), **user)
    os.close(theirs)
    with open(ours, errors="replace") as output:
        for line in output:
            print(line, end="", flush=True)
            failed |= failed_tests(line.rstrip())
    return process.wait(), failed


def main():
    arguments = sys.argv[1:]
    options = {"--limit": "200", "--needs": ""}
    while arguments and arguments[0].split("=")[0] in options:
        name, options[name] = arguments.pop(0).split("=")
    if not arguments:
        sys.exit(__doc__)
    limit, environment = limit_of(options["--limit"], os.environ), dict(os.environ)
    user = user_of(options["--needs"].split(","), environment)
    for attempt in range(1, MOST_RUNS + 1):
        stretch = Stretch()
        status, failed = run(arguments, limit, environment, user)
        share = stretch.share()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"undisturbed: {used.ru_utime + used.ru_stime:.2f} s of CPU time, {time.monotonic() - stretch.begin:.2f} s", flush=True)
        if status == 0:
            return 0
        print(f"undisturbed: run {attempt} failed (exit status {status}); the host took {share:.0%} of the CPUs' time")
        if share < MOST_STOLEN or attempt == MOST_RUNS:
            break
        share = wait_for_host()
        if failed:
            environment["ASYM_TEST_ONLY"] = " ".join(sorted(failed))
            environment.pop("ASYM_TEST_EXCEPT", None)
        which = environment["ASYM_TEST_ONLY"] if failed else "all"
        print(f"undisturbed: run {attempt + 1}, {which}; the host takes {share:.0%} now", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
