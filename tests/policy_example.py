#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""policy_example.py BUILD_DIR: checks that programs which were built with tests/policy-example/first-come.c and its row have
the policy everywhere: in the list of policies, the configuration, its sample, the manual, the simulator, and both plans (text
and JSON)."""
import json
import pathlib
import subprocess
import sys
import tempfile

NAME = "first-come"
SUMMARY = "fast CPUs to the threads that started first"
OPTION = "Added to the nice value of a thread on a fast CPU."
REASONS = ("started early (", "started late (")
SOURCE = pathlib.Path(__file__).parent
failed = []


def check(good, what):
    if not good:
        failed.append(what)


def said(*command, status=0):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    check(ended.returncode == status, f"{command}: ends with {ended.returncode}: {ended.stderr}")
    return ended.stderr if status else ended.stdout


def manual(mangen, page):
    with tempfile.TemporaryDirectory() as work:
        said(mangen, "page", f"{SOURCE.parent}/man/{page}.in", f"{work}/{page}")
        return pathlib.Path(work, page).read_text().replace("\\-", "-")


def in_the_lists(asymd, asymctl, mangen):
    rows = [p for p in json.loads(said(asymctl, "policies", "--json"))["policies"] if p["name"] == NAME]
    check(len(rows) == 1 and rows[0]["summary"] == SUMMARY and rows[0]["can_run"], f"asymctl policies --json: {rows}")
    check(SUMMARY in said(asymctl, "policies"), "asymctl policies")
    for page in ("asymd.8", "asymctl.1"):
        check(f".It Cm {NAME}\n" in manual(mangen, page), page)
    options = manual(mangen, "asymd.conf.5")
    check(f".Ss [policy.{NAME}]\n" in options and OPTION in options, "asymd.conf.5")
    with tempfile.TemporaryDirectory() as work:
        said(mangen, "sample", f"{work}/asymd.conf")
        sample = pathlib.Path(work, "asymd.conf").read_text()
    check(f"[policy.{NAME}]\n# {OPTION}\n" in sample, "the sample configuration")
    check(f"[policy.{NAME}]" in said(asymd, "--config=/dev/null", "--print-config"), "asymd --print-config")
    check(NAME in said(asymctl, "sim", f"{SOURCE.parent}/scenarios/big-little.ini", "--policy=none-such", status=2),
          "the policies that an unknown one is compared with")


def in_the_simulator(asymctl):
    with tempfile.TemporaryDirectory() as work:
        scenario = pathlib.Path(work, "scenario.ini")
        scenario.write_text("[machine]\ncounts = 2,2\nspeeds = 1,2\n[run]\nduration = 2s\n"
                            f"[program a]\nthreads = 8\nstep = parallel 1000G chunk=5M\n[policy.{NAME}]\nboost = -3\n")
        said(asymctl, "sim", str(scenario), f"--policy={NAME}", "--repeat=1", f"--trace={work}/trace")
        events = json.loads(pathlib.Path(work, "trace").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    steered = [e["args"] for e in events if "why" in e.get("args", {})]
    for reason, nice in zip(REASONS, (-3, 0)):
        found = {e["nice"] for e in steered if e["why"].startswith(reason)}
        check(found == {nice}, f"asymctl sim: '{reason}' with nice {nice}: {found}")


def in_the_plan(asymd, spin):
    busy = subprocess.Popen([spin, "1", "60", "10"])
    try:
        plan = (asymd, "--dry-run", "--config=/dev/null", f"--policy={NAME}", f"--pid={busy.pid}", "--duration=2s", "--slow=1")
        apps = json.loads(said(*plan, "--json"))["applications"]
        reasons = [t["reason"] for a in apps for t in a["threads"]]
        check(reasons and all(r.startswith(REASONS) for r in reasons), f"asymd --dry-run --json: {reasons}")
        text = said(*plan)
        check(any(r in text for r in REASONS), f"asymd --dry-run: {text}")
    finally:
        busy.kill()
        busy.wait()


def main():
    tests = pathlib.Path(sys.argv[1], "tests")
    asymd, asymctl, mangen = (str(tests / f"policy_example_{name}") for name in ("asymd", "asymctl", "mangen"))
    in_the_lists(asymd, asymctl, mangen)
    in_the_simulator(asymctl)
    in_the_plan(asymd, tests / "load-spin")
    for what in failed:
        print(f"policy_example.py: {NAME} is not in {what}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
