#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""faults.py BUILD_DIR [--quick] [--only=CALL]: makes each call of a running asymd fail with each errno, and each allocation.

tests/faults/calls.def has the calls and their errors, fault.c makes them fail. For each fault asymd steers two programs that this
script has started, and is then stopped. The fault comes while asymd starts, while it steers, or when it stops; once, or from then
on. Then:
  - asymd has not crashed, and ends when it is told to;
  - the programs have their masks and nice values again. If a fault that stays, or one at the stop, kept asymd from that, asymd
    says so by its exit status, and asymd --restore does it;
  - an asymd that gives up says why.
While asymd steers, a client asks for its status.
The helper processes of asymd are started without it: whatever fails, a helper keeps no right but CAP_SYS_PTRACE.
Prints a table of faults and outcomes. Exits with 1 if one of them is wrong. Needs root.
"""
import errno
import fcntl
import mmap
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 30  # seconds for an event that comes within one; a busy machine takes longer
FOREVER = 1 << 40
CAP_SYS_PTRACE = 1 << 19
ORDERS_FD, REPORTS_FD = 3, 4
TURNS = 8  # of asymd's loop, after which a fault has had its effect
DOZE = 15  # seconds after which an asymd that steers nothing has had the time to do so in fewer turns


def read_calls():
    text = (HERE / "calls.def").read_text()
    rows = re.findall(r'^(CALL|RAW|ALLOCATES)\((\w+)(?:, \w+)??(?:, "([^"]*)")?\)', text, re.M)
    return [(name, errors.split()) for _, name, errors in rows]


# What asymd takes from the C library, and no row of calls.def makes fail. Left out are __ in front, and the suffixes of variants.
EXEMPT = {
    "cannot fail, or only where the arguments are wrong": """
        _exit abs alarm alphasort atoi bsearch ceil clock_gettime ctype_b_loc ctype_tolower_loc cxa_finalize errno_location exit
        exp fabs fileno floor fmin fmod fnmatch free getenv geteuid getpid getppid gettid libc_current_sigrtmin libc_start_main log
        lround memchr memcmp memcpy memmem memmove memrchr memset posix_spawn_file_actions_destroy posix_spawnattr_destroy
        posix_spawnattr_setflags
        posix_spawnattr_setschedparam posix_spawnattr_setschedpolicy posix_spawnattr_setsigdefault posix_spawnattr_setsigmask pow
        pthread_attr_destroy pthread_attr_init pthread_attr_setstacksize pthread_join pthread_mutex_destroy pthread_mutex_init
        pthread_mutex_lock pthread_mutex_unlock pthread_mutexattr_destroy pthread_mutexattr_init pthread_mutexattr_setprotocol
        pthread_self pthread_sigmask qsort round sigaction sigaddset sigemptyset sigfillset signal sigprocmask sigwait snprintf
        sqrt sscanf stack_chk_fail strcasecmp strchr strchrnul strcmp strcpy strcspn strerror strlen strncasecmp strncmp strnlen
        strpbrk strrchr strsep strsignal strspn strstr strtod strtok_r strtol strtoll strtoul strtoull sysconf timer_delete tolower
        toupper trunc vsnprintf SYS_gettid""",
    "allocates by malloc, calloc or realloc": "asprintf open_memstream reallocarray setenv strdup strndup unsetenv",
    "keeps its error for ferror or fflush": "ferror fprintf fputc fputs fwrite printf puts",
    "its error is its answer": "isatty",
    "has a row for each number": "syscall",
}


def read_imports(program):
    """The functions of the C library that a program takes: the names of calls.def."""
    text = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True).stdout
    return {re.sub(r"^__(isoc\d\d_)?|_chk$|_2$|64$", "", name) for name in re.findall(r" U (\w+)@+GLIBC", text)}


def forgotten(build):
    """The calls that asymd and its helpers make, and neither calls.def nor EXEMPT has."""
    root = HERE.parent.parent
    sources = [p for room in ("lib/linux", "lib/app", "daemon/asymd") for p in (root / room).rglob("*.c")]
    raw = {name for p in sources for name in re.findall(r"\bsyscall\((SYS_\w+)", p.read_text())}
    made = raw | read_imports(build / "daemon/asymd") | read_imports(build / "daemon/asymd-helper")
    known = {name for name, _ in CALLS} | {"SYS_" + name for name, _ in CALLS} | set(" ".join(EXEMPT.values()).split())
    return sorted(made - known)


CALLS = read_calls()
NUMBER = {name: i for i, (name, _) in enumerate(CALLS)}
ALLOCATION = len(CALLS)


class Control:
    """The memory that fault.c reads."""

    LAYOUT = struct.Struct("iiqqq")

    def __init__(self, path):
        size = self.LAYOUT.size + 8 * (len(CALLS) + 1)
        path.write_bytes(bytes(size))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)
        self.clear()

    def clear(self):
        self.memory[:] = bytes(len(self.memory))
        self.arm(-1, 0, 0, 0)

    def arm(self, call, error, skip, times):
        self.memory[0:4] = struct.pack("i", -1)
        self.memory[4:self.LAYOUT.size] = struct.pack("=iqqq", error, skip, times, 0)
        self.memory[0:4] = struct.pack("i", call)

    def fired(self):
        return self.LAYOUT.unpack(self.memory[:self.LAYOUT.size])[4]

    def count(self, call):
        at = self.LAYOUT.size + 8 * call
        return struct.unpack("q", self.memory[at:at + 8])[0]

    def counts(self):
        return [self.count(call) for call in range(len(CALLS) + 1)]


class Programs:
    """A serial program and a parallel one: the policy narrows the masks of both, and changes the nice value of the first."""

    def __init__(self, build):
        # A session each: asymd takes the programs of one job for one application.
        self.processes = [subprocess.Popen([build / "tests/load-spin", str(n), "3600", "15"], start_new_session=True)
                          for n in (1, 3)]
        self.pids = [p.pid for p in self.processes]
        while sum(len(os.listdir(f"/proc/{pid}/task")) for pid in self.pids) < 4:
            time.sleep(0.001)
        self.own = self.state()

    def state(self):
        tids = [int(tid) for pid in self.pids for tid in os.listdir(f"/proc/{pid}/task")]
        return {tid: (frozenset(os.sched_getaffinity(tid)), os.getpriority(os.PRIO_PROCESS, tid),
                      bool(os.sched_getscheduler(tid) & os.SCHED_RESET_ON_FORK)) for tid in tids}

    def changed(self):
        return self.state() != self.own

    def reset(self):
        for tid, (cpus, nice, _) in self.own.items():
            os.sched_setaffinity(tid, cpus)
            os.setpriority(os.PRIO_PROCESS, tid, nice)
            os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Bench:
    def __init__(self, build):
        self.build = build
        self.asymd = build / "daemon/asymd"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="asym-faults-"))
        self.control = Control(self.work / "control")
        self.programs = Programs(build)
        self.cpus = sorted(os.sched_getaffinity(0))
        self.failed = self.runs = 0
        self.observer = "auto"

    def close(self):
        self.programs.end()
        shutil.rmtree(self.work)

    def options(self):
        half = len(self.cpus) // 2
        speeds = " ".join(f"{cpu}:{2 if i < half else 1}" for i, cpu in enumerate(self.cpus))
        return [f"--set=asymd.state_dir={self.work}/state", f"--set=machine.speeds={speeds}",
                f"--set=asymd.observer={self.observer}"]

    def start(self):
        shutil.rmtree(self.work / "state", ignore_errors=True)
        (self.work / "state").mkdir()
        env = {**os.environ, "ASYM_FAULT": str(self.work / "control"), "LC_ALL": "C",
               "LD_PRELOAD": str(self.build / "tests/libasym-fault.so")}
        command = [self.asymd, "--service", "--policy=serial-first", "--interval=10ms", "--set=enforce.settle=0ms",
                   "--set=asymd.cpu_budget=100",
                   *[f"--pid={pid}" for pid in self.programs.pids], *self.options()]
        with open(self.work / "log", "w") as log:
            return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(self, process):
        """A client asks for the status. It is ended where it gets no answer because of a fault."""
        env = {**os.environ, "ASYMD_BUS": f"{self.work}/state/bus"}
        client = subprocess.Popen([self.build / "daemon/asymctl", "status", "--json"], env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = self.wait(process, lambda: client.poll() is not None or self.control.fired() > 0)
        done = self.pass_turns(process) and done
        client.kill()
        client.wait()
        return done

    def turns(self):
        return self.control.count(NUMBER["epoll_wait"])

    def wait(self, process, condition):
        """Until the condition holds or asymd has ended. False: neither came."""
        end = time.monotonic() + PATIENCE
        while not condition() and process.poll() is None:
            if time.monotonic() > end:
                return False
            time.sleep(0.001)
        return True

    def pass_turns(self, process):
        before = self.turns()
        return self.wait(process, lambda: self.turns() >= before + TURNS)

    def begin(self, process):
        """Until asymd steers, or has had the time to do so. Where a fault hides all programs, it dozes: a turn takes a second."""
        dozes = time.monotonic() + DOZE
        return self.wait(process, lambda: self.programs.changed() or self.turns() > 12 * TURNS or (
            self.turns() > TURNS and time.monotonic() > dozes))

    def finish(self, process):
        """The exit status; None: it hangs."""
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None

    def measure(self, observer):
        """How often asymd makes each call with this observer while it starts, while it steers, and when it stops."""
        self.observer = observer
        self.control.clear()
        process = self.start()
        assert self.begin(process) and self.programs.changed(), f"asymd does not steer: {(self.work / 'log').read_text()}"
        start = self.control.counts()
        for _ in range(3):
            self.pass_turns(process)
        self.ask(process)
        run = self.control.counts()
        assert self.finish(process) == 0 and not self.programs.changed()
        end = self.control.counts()
        return {"start": start, "run": [b - a for a, b in zip(start, run)], "stop": [b - a for a, b in zip(run, end)]}

    def judge(self, status, stays, error):
        """Returns what came of a fault, and what is wrong with that or ''."""
        log = (self.work / "log").read_text()
        said = os.strerror(error) in log
        left = self.programs.changed()
        if left:
            again = subprocess.run([self.asymd, "--restore", *self.options()], capture_output=True, text=True,
                                   timeout=PATIENCE, check=False)
            if self.programs.changed():
                self.programs.reset()
                return "changed", f"--restore leaves it: {again.stdout}{again.stderr}"
        if status is None:
            return "hangs", "does not end"
        if status < 0:
            return "crashed", signal.Signals(-status).name
        if left and not stays:
            return "left", "asymd leaves threads changed after a fault that has passed"
        if left and status == 0:
            return "left", "asymd leaves threads changed and says nothing"
        if status != 0 and not log.strip():
            return "ended", "asymd gives up and says nothing"
        # These errors say what is missing, and asymd names that instead. EBUSY becomes EIO: see ledger-undo.c.
        if status != 0 and not said and error not in (errno.ENOMEM, errno.ENOENT, errno.ESRCH, errno.ECHILD,
                                                              errno.EWOULDBLOCK, errno.EBUSY):
            return "ended", "asymd gives up and does not say why"
        if left:
            return "restored by --restore", ""
        return f"ended ({status})" if status != 0 else "logged" if said else "went on", ""

    def run(self, call, error, phase, skip, times):
        self.control.clear()
        if phase == "start":
            self.control.arm(call, error, skip, times)
        process = self.start()
        waited = self.begin(process)
        if phase != "start":
            self.control.arm(call, error, skip, times)
        if phase == "run":
            waited = waited and self.pass_turns(process) and self.ask(process)
        passed = times == 1 and self.control.fired() > 0
        status = self.finish(process)
        fired = self.control.fired()
        # A fault at the stop, or one that stays, may keep masks.
        outcome, wrong = self.judge(status, phase == "stop" or not passed, error)
        if not waited:
            outcome, wrong = "hangs", "neither steers nor ends"
        return ("not reached" if fired == 0 and not wrong else outcome), wrong

    def start_helper(self):
        """A helper process as asymd starts it, and asymd's end of its orders."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipe = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (theirs, pipe[1])]
        env = {"ASYM_FAULT": str(self.work / "control"), "LD_PRELOAD": str(self.build / "tests/libasym-fault.so")}

        def place():
            os.dup2(high[0], ORDERS_FD)
            os.dup2(high[1], REPORTS_FD)
        process = subprocess.Popen([self.build / "daemon/asymd-helper"], env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place)
        for fd in (theirs.detach(), pipe[1], *high):
            os.close(fd)
        return process, ours, pipe[0]

    def run_helper(self, call, error, times):
        """Returns what came of a fault in a helper, and what is wrong with that or ''. call -1: no fault."""
        self.control.clear()
        self.control.arm(call, error, 0, times)
        process, orders, reports = self.start_helper()
        waited = self.wait(process, lambda: self.control.count(NUMBER["recv"]) > 0)
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text() if process.poll() is None else ""
        orders.close()
        try:
            ended = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            ended = process.wait()
            waited = False
        os.close(reports)
        fact = dict(re.findall(r"^(\w+):\s+(\w+)", status, re.M))
        if not waited:
            return "hangs", "does not end"
        if ended < 0:
            return "crashed", signal.Signals(-ended).name
        if not status:
            return f"ended ({ended})", ""
        # The service may lack the right to change its user: the helper is root then, without capabilities.
        if (int(fact["CapEff"], 16) | int(fact["CapPrm"], 16)) & ~CAP_SYS_PTRACE or fact["NoNewPrivs"] != "1" or (
                fact["Uid"] == "0" and error != errno.EPERM):
            return "works", f"a helper with more rights than it needs: {fact['Uid']} {fact['CapEff']}"
        return ("works" if self.control.fired() > 0 or call < 0 else "not reached"), ""

    def helpers(self, only, quick):
        """Each call of a helper until it waits for orders fails with each errno; in the quick run with one of them, and for ever."""
        outcome, wrong = self.run_helper(-1, 0, 0)
        assert outcome == "works" and not wrong, f"the helper: {outcome}, {wrong}"
        counts = self.control.counts()
        for call, (name, errors) in enumerate(CALLS):
            chosen = [errors[call % len(errors)]] if quick and errors else errors
            for error in chosen if counts[call] > 0 and (not only or name in only) else ():
                for times in (5,) if error == "EINTR" else (FOREVER,) if quick else (FOREVER, 1):
                    self.show(name, error, f"helper, {'once' if times == 1 else 'from'} 1",
                              *self.run_helper(call, getattr(errno, error), times), log="")

    def report(self, name, error, phase, skip, times):
        call = NUMBER.get(name, ALLOCATION)
        outcome, wrong = self.run(call, getattr(errno, error), phase, skip, times)
        self.show(name, error, f"{phase}, {'once' if times == 1 else 'from'} {skip + 1}", outcome, wrong,
                  (self.work / "log").read_text())

    def show(self, name, error, when, outcome, wrong, log):
        self.runs += 1
        self.failed += wrong != ""
        print(f"{name:22} {error:16} {when:20} {outcome}{'  WRONG: ' + wrong if wrong else ''}", flush=True)
        if wrong and log:
            print("    " + log.strip().replace("\n", "\n    "), flush=True)


def cases(counts, quick):
    """The faults of one call: (phase, calls that succeed before, calls that fail)."""
    found = []
    for phase in ("start", "run", "stop"):
        n = counts[phase]
        if n > 0:
            found.append((phase, 0, FOREVER))
            found.append((phase, 0, 1))
        if n > 2:
            found.append((phase, n // 2, 1))
        if n > 2 and phase == "start":
            found.append((phase, n // 2, FOREVER))
    return [c for c in found if c[2] == FOREVER][-1:] if quick else found


def main():
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    only = [a.split("=", 1)[1] for a in arguments if a.startswith("--only=")]
    build = pathlib.Path(arguments[0]).resolve()
    missing = forgotten(build)
    if missing:
        sys.exit(f"asymd makes calls that calls.def does not have: {' '.join(missing)}\n"
                 "Add a row with the errors that each can give, or a word to EXEMPT in faults.py if it can give none.")
    bench = Bench(build)
    try:
        bench.helpers(only, quick)
        counts = bench.measure("auto")
        # The start and the end of the BPF programs take most of the time of a run: the quick one has them for the calls that only
        # they need.
        fewer = bench.measure("procfs") if quick else counts
        for call, (name, errors) in enumerate(CALLS):
            if only and name not in only:
                continue
            # In the quick run a row's place in the table chooses the errno.
            for error in [errors[call % len(errors)]] if quick and errors else errors:
                only_bpf = not any(n[call] for n in fewer.values())
                bench.observer = "auto" if only_bpf or not quick else "procfs"
                for phase, skip, times in cases({p: n[call] for p, n in (counts if only_bpf else fewer).items()}, quick):
                    # A signal interrupts a call, and does not come for ever.
                    times = min(times, 5) if error == "EINTR" else times
                    bench.report(name, error, phase, skip, times)
        bench.observer = "procfs" if quick else "auto"
        n = fewer["start"][ALLOCATION]
        sites = range(0, n, max(1, n // 12)) if quick else [*range(300), *range(300, n, 25)]
        for skip in sites if not only or "allocation" in only else []:
            bench.report("allocation", "ENOMEM", "start", skip, 1)
        for phase in ("run", "stop") if not only or "allocation" in only else ():
            for skip in range(0, max(1, fewer[phase][ALLOCATION]), 40 if quick else 1):
                bench.report("allocation", "ENOMEM", phase, skip, 1)
            bench.report("allocation", "ENOMEM", phase, 0, FOREVER)
        print(f"{bench.runs} faults, {bench.failed} wrong")
    finally:
        bench.close()
    sys.exit(bench.failed > 0)


if __name__ == "__main__":
    main()
