# SPDX-License-Identifier: GPL-2.0-or-later
"""One serial program beside 8 busy threads, a row of `./dev vm real`: under the stock scheduler and under asym, in one boot."""
import real
from boost import build_module as stage  # run.py calls it
from lab import Lab

__all__ = ["MACHINE", "TITLE", "run", "stage"]
TITLE = "asym gives a serial program a fast CPU beside 8 busy threads, and the machine loses no work"
MACHINE = "burn"
ROW = "serial"
# Of a fast CPU, and of the stock scheduler's work.
SPEED_MIN, WORK_MIN = 0.97, 0.97


def run(s):
    lab = Lab(s)
    real.prepare_burn(lab, MACHINE)
    stock, asym = (real.measure(lab, ROW, mode) for mode in ("stock", "asym"))
    speed, work = asym["program"]["work"], asym["work"] / stock["work"]
    s.say(f"the serial program without asymd: {stock['program']['work']:.2f} of a fast CPU")
    s.check(f"the serial program has at least {SPEED_MIN} of a fast CPU", f"{speed:.2f}", speed >= SPEED_MIN)
    s.check(f"both programs do at least {WORK_MIN} of the work without asymd", f"{work:.3f}", work >= WORK_MIN)
