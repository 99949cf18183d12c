#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""run_place.py ASYMCTL: on which CPUs asymctl run --fast and --slow start a program, and that they always start it."""
import os
import pathlib
import subprocess
import sys
import tempfile

SHOW = "import os; print(*sorted(os.sched_getaffinity(0)), os.environ.get('OMP_TOOL_LIBRARIES', '-'))"


def run(asymctl, *options, mask=None):
    """Standard output, standard error and exit status of asymctl run with these options."""
    done = subprocess.run([asymctl, "run", *options, "--", sys.executable, "-c", SHOW], capture_output=True, text=True,
                          preexec_fn=(lambda: os.sched_setaffinity(0, mask)) if mask else None)
    return done.stdout.strip(), done.stderr.strip(), done.returncode


def main(asymctl):
    cpus = sorted(os.sched_getaffinity(0))
    fast, slow = cpus[:-1], cpus[-1:]
    text = " ".join(map(str, fast)), " ".join(map(str, slow))
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "asymd.conf")
        config.write_text(f"[asymmetry]\nslow = {slow[0]}-{slow[0]}\nmethod = none\n")
        use = f"--config={config}"
        assert run(asymctl, use, "--fast") == (f"{text[0]} -", "", 0), run(asymctl, use, "--fast")
        assert run(asymctl, use, "--slow") == (f"{text[1]} -", "", 0), run(asymctl, use, "--slow")
        # An affinity that the user has set stays in force.
        said, wrong, status = run(asymctl, use, "--fast", mask=set(slow))
        assert said == f"{text[1]} -" and status == 0, (said, status)
        assert "its affinity has none of the CPUs" in wrong and wrong.count("\n") == 0, wrong
        # With --openmp the program has the tool as well, if it is installed.
        said, wrong, status = run(asymctl, use, "--fast", "--openmp")
        assert said.startswith(text[0]) and (not said.endswith(" -") or "without" in wrong) and status == 0, (said, wrong)
        config.write_text("[asymmetry]\nslow = many\n")
        said, wrong, status = run(asymctl, use, "--fast")
        assert said == f"{' '.join(map(str, cpus))} -" and "asymd.conf:2" in wrong and status == 0, (said, wrong, status)
        config.write_text("")
        said, wrong, status = run(asymctl, use, "--slow", "--fast")
        assert (said, status) == ("", 2) and "--fast and --slow" in wrong, (said, wrong, status)


if __name__ == "__main__":
    main(sys.argv[1])
