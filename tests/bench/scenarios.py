# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenarios of asym.py and costs.py: programs on a machine, for 20 s."""
import json
import subprocess
import tempfile

MACHINES = {
    "alike": "counts = 8\nspeeds = 1\n",
    "big.LITTLE": "counts = 4,4\nspeeds = 1,2\n",
    "phone": "counts = 1,3,4\nspeeds = 3,2.4,1\nllc = 8\n",
    "desktop": "counts = 16,8\nspeeds = 1,1.6\n",
    "desktop, SMT": "counts = 8,16\nspeeds = 1.6,1\nsmt = 2,1\nmax_ipc = 1.27\n",
    "laptop": "counts = 6,8\nspeeds = 1.6,1\nsmt = 2,1\nmax_ipc = 1.27\n",
    "zen": "counts = 4,8\nspeeds = 1.35,1\nsmt = 2,2\nmax_ipc = 1.27\n",
}


def program(name, *steps, **options):
    """Returns the section of a program whose steps have equal working sets, but for those that only sleep."""
    lines = [f"{key} = {value}" for key, value in options.items()]
    lines += [f"step = {step}" if step.startswith("io") else f"step = {step} memory=m" for step in steps]
    return f'[program "{name}"]\n' + "".join(line + "\n" for line in lines)


def scenario(machine, programs, asymd="", run=""):
    """Returns the text of a scenario. asymd: sections of its configuration; run: more lines of [run]."""
    run = f"[run]\n{run}duration = 20s\nuntil = time\n"
    return f'[machine]\n{MACHINES[machine]}[memory "m"]\nipc = 1\nworking_set = 64\n{asymd}{run}{programs}'


def simulated(asymctl, text, policies, seeds):
    """Returns the policies of the report of a scenario, the first of which is the stock scheduler."""
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as f:
        f.write(text)
        f.flush()
        said = subprocess.run([asymctl, "sim", f.name, f"--policy={','.join(policies)}", f"--repeat={seeds}", "--json"],
                              check=True, capture_output=True, text=True).stdout
    return json.loads(said)["policies"]


def app(threads):
    return program("app", "parallel 400G chunk=5M", threads=threads)


def beside(threads, step="parallel 1000G chunk=20M"):
    return program("build", step, threads=threads)


def barriers(step, **options):
    return program("parallel", step, threads=8, **options)


def small_game(name):
    return program(name, "serial 4M", "parallel 3M chunk=500k", "io 8ms", threads=3)


SERIAL = program("serial", "serial 100G")
GAME = program("game", "serial 6M", "parallel 10M chunk=500k", "io 8ms", threads=6)
BROWSER = program("browser", "serial 20M", "io 30ms", threads=3)
COMPILERS = program("cc", "serial 300M exponential", count=8, job="yes", restart="yes")
LOCKED = program("locked", "parallel 1000G chunk=200k lock=1M", threads=6)

# The machine and the programs, of which the first is the one that is looked at.
SCENARIOS = {
    **{f"pe-{n:02}": ("desktop, SMT", app(n)) for n in (8, 10, 12, 14, 16, 20, 32)},
    **{f"pe-serial-{n}": ("desktop, SMT", SERIAL + app(n)) for n in (12, 16, 24, 32)},
    "laptop-game-build": ("laptop", GAME + beside(20)),
    "laptop-spare": ("laptop", GAME + BROWSER + COMPILERS),
    "fps": ("desktop", GAME + beside(24)),
    "frame": ("big.LITTLE", program("game", "serial 6M", "parallel 6M chunk=1M", threads=6) + beside(8)),
    "serial-8": ("big.LITTLE", SERIAL + barriers("parallel 8G")),
    "barrier-100": ("big.LITTLE", barriers("parallel 800M")),
    "barrier-300": ("big.LITTLE", barriers("parallel 2400M")),
    "barrier-1000": ("big.LITTLE", barriers("parallel 8G")),
    "barrier-spin-300": ("big.LITTLE", barriers("parallel 2400M", spin="forever")),
    "barrier-spin-1000": ("big.LITTLE", barriers("parallel 8G", spin="forever")),
    "phone-app": ("phone", program("app", "serial 6M", "parallel 12M chunk=1M", "io 8ms", threads=4)
                  + program("background", "parallel 1000G chunk=10M", threads=8)),
    "zen-06": ("zen", app(6)),
    "zen-serial-12": ("zen", SERIAL + app(12)),
    "zen-game-build": ("zen", GAME + beside(24)),
    "many-build": ("laptop", "".join(map(small_game, ("g0", "g1", "g2", "g3"))) + beside(20)),
    "io-build": ("big.LITTLE", GAME + beside(12, "parallel 1000G chunk=10M io=5ms")),
    "lock-build": ("big.LITTLE", LOCKED + beside(8)),
    "lock-build-critical": ("big.LITTLE", LOCKED + beside(8), "[asymd]\nobserver = bpf\n"),
    "jobs": ("desktop, SMT", GAME + program("cc", "serial 800M exponential", count=64, rate=40, job="yes", passes=1)),
    "serials": ("desktop, SMT", "".join(program(f"s{i}", "serial 100G") for i in range(4)) + beside(32)),
    "alike": ("alike", SERIAL + program("app", "parallel 1000G chunk=5M", threads=8)),
}
