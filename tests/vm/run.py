#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The virtual machine test: installs asymd and runs it as a service, on eight CPUs that differ in speed."""
import argparse
import contextlib
import importlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import vm

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import undisturbed  # noqa: E402

SHORT = (1, 4, 8)
LOGIN = "/sys/fs/cgroup/session-1.scope"
# Only what hangs takes so long: on a busy host scenarios 2 and 6 need more than 300 s.
SCENARIO_S = 900
# Runs of a scenario: it runs again if a check failed while this machine's own host took CPU time (undisturbed.py).
RUNS_MAX = 3


# A scenario that imports this file as a module gets this program, with the same exceptions.
sys.modules.setdefault("run", sys.modules[__name__])


class Wrong(Exception):
    """A step that the scenario needs did not work."""


class Scenario:
    """The tools of a scenario: the guest, asymd in it, and the report."""

    def __init__(self, guest):
        self.guest, self.n_checks, self.n_failed = guest, 0, 0

    def check(self, asked, found, ok):
        self.n_checks += 1
        self.n_failed += not ok
        print(f"  {'ok    ' if ok else 'FAILED'}  {asked}: {found}", flush=True)
        return ok

    def install(self):
        """Installs asymd. Keeps the owner and mode of the directories of /: tar would set those of the staging directory."""
        self.sh("tar -C / --no-overwrite-dir -xf root.tar && systemctl daemon-reload")
        return self

    @staticmethod
    def say(text):
        print(f"          {text}", flush=True)

    @contextlib.contextmanager
    def speeds(self):
        """Gives CPUs the speed of their MHz. Outside of this block they are as fast as the host allows: systemctl is 15 times
        as fast then."""
        self.guest.speeds.limit(True)
        yield
        self.guest.speeds.limit(False)

    def try_sh(self, command):
        output = io.BytesIO()
        status = self.guest.run(command, output)
        return status, output.getvalue().decode(errors="replace").strip()

    def sh(self, command):
        status, output = self.try_sh(command)
        if status != 0:
            raise Wrong(f"{command}\nends with status {status} and says:\n{output}")
        return output

    def load(self, command, output="/dev/null"):
        """Starts one of tests/load with nice 10, so that the agent, which runs the host's commands, has a better nice value.
        To asymd it is a job of a login session."""
        self.sh(f"mkdir -p {LOGIN} && {{ echo $BASHPID >{LOGIN}/cgroup.procs; exec setsid nice -n 10 /opt/load-{command}; }} "
                f">{output} 2>&1 &")

    def start(self, config):
        self.sh(f"cat >/etc/asymd/asymd.conf <<'EOF'\n{config}\nEOF\nsystemctl restart asymd")

    def unpack(self, archive):
        """Puts what setup.sh packs under this name into the guest; a scenario that does so names it in PACKS."""
        self.sh(f"tar -C / --no-overwrite-dir --keep-directory-symlink -xf {archive}.tar")

    def journal(self):
        return self.sh("journalctl --sync; journalctl -u asymd -o short-monotonic --no-pager")

    def until(self, command, seconds):
        """Returns whether the command succeeds within that time."""
        return self.try_sh(f"for ((i = 0; i < {seconds * 2}; i++)); do {command} && exit 0; sleep 0.5; done; exit 1")[0] == 0


def runtime_of(program):
    """A list with the LLVM OpenMP runtime that the program links; an empty one if the program was not built."""
    if not program.exists():
        return []
    said = subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout
    return [line.split()[2] for line in said.splitlines() if "libomp" in line]


def stage(build, share):
    """Makes one archive of the files of `cmake --install`, the loads, and the libraries of the loads that the guest lacks."""
    root = share / "root"
    subprocess.run(["cmake", "--install", str(build), "--prefix", "/usr"], env={**os.environ, "DESTDIR": str(root)}, check=True,
                   stdout=subprocess.DEVNULL)
    (root / "opt").mkdir()
    loads = [*map(str, sorted((build / "tests").glob("load-*"))), *runtime_of(build / "tests" / "load-openmp")]
    subprocess.run(["cp", *loads, str(root / "opt")], check=True)
    subprocess.run(["tar", "-C", str(root), "--owner=0", "--group=0", "-cf", str(share / "root.tar"), "."], check=True)


def fetch(archive, share):
    """Has setup.sh make the archive, unless it is there, and shares it."""
    subprocess.run([str(HERE / "setup.sh"), archive], check=True)
    subprocess.run(["cp", str(vm.cache_dir() / f"{archive}.tar"), str(share)], check=True)


def scenarios():
    """Number to module, from scenarios/sN_name.py."""
    found = {}
    for path in sorted((HERE / "scenarios").glob("s[0-9]_*.py")):
        found[int(path.stem[1])] = importlib.import_module(f"scenarios.{path.stem}")
    return found


def run_scenario(number, module, share):
    """Returns the number of checks and of failed ones; a scenario that could not end counts as a failed check."""
    print(f"\n{number}. {module.TITLE} (machine {module.MACHINE})", flush=True)
    for runs_left in reversed(range(RUNS_MAX)):
        stretch = undisturbed.Stretch()
        n_checks, n_failed = run_once(module, share)
        stolen = stretch.share()
        if n_failed == 0 or stolen < undisturbed.MOST_STOLEN or runs_left == 0:
            return n_checks, n_failed
        print(f"          {n_failed} failed while the host took {stolen:.0%} of the CPUs' time: the scenario runs again", flush=True)
        undisturbed.wait_for_host()


def run_once(module, share):
    started, scenario = time.monotonic(), None
    try:
        with vm.Guest(module.MACHINE, share, getattr(module, "SCENARIO_S", SCENARIO_S)) as guest:
            scenario = Scenario(guest)
            guest.begin()
            scenario.install()
            module.run(scenario)
            if scenario.n_failed:
                scenario.say("The end of the journal:")
                for line in scenario.journal().splitlines()[-20:]:
                    scenario.say(line)
    except (Wrong, vm.OutOfTime, vm.VmError) as error:
        scenario = scenario or Scenario(None)
        scenario.check("the scenario comes to its end", error, False)
    print(f"          {time.monotonic() - started:.0f} s", flush=True)
    return scenario.n_checks, scenario.n_failed


def main():
    parser = argparse.ArgumentParser(prog="./dev vm", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"only scenarios {', '.join(map(str, SHORT))}")
    parser.add_argument("--only", type=int, action="append", metavar="N", help="only scenario N; may be repeated")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    vm.stop_on_signals()
    known = scenarios()
    chosen = args.only or (SHORT if args.short else sorted(known))
    if unknown := [n for n in chosen if n not in known]:
        parser.error(f"no scenario {unknown[0]}")
    started, results = time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix="asymd-vm.") as share:
        stage(args.build, pathlib.Path(share))
        for archive in {name for number in chosen for name in getattr(known[number], "PACKS", ())}:
            fetch(archive, share)
        for number in chosen:
            if hasattr(known[number], "stage"):
                known[number].stage(pathlib.Path(share))
        for number in chosen:
            results[number] = run_scenario(number, known[number], share)
    print(f"\nSummary, {time.monotonic() - started:.0f} s")
    for number, (checks, failed) in results.items():
        print(f"  {'FAILED' if failed else 'ok    '}  {number}. {known[number].TITLE}: {checks - failed} of {checks} checks")
    return 1 if any(failed for _, failed in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
