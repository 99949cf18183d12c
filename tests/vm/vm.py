#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest whose eight CPUs really run at the speed that its cpufreq sets. See README.md.

QEMU emulates the CPUs (TCG, no KVM needed). Each CPU is a thread of the host, in a CPU cgroup of its own, whose quota is that
CPU's speed. The guest's acpi-cpufreq writes to the P-state port; this module gets the value and sets the quota.
"""
import argparse
import base64
import collections
import contextlib
import ctypes
import hashlib
import json
import os
import pathlib
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import machines
from speeds import Speeds, VmError

HERE = pathlib.Path(__file__).resolve().parent
KERNEL_ARGS = "panic=-1 mitigations=off nowatchdog systemd.show_status=0 sysrq_always_enabled=1 "
X86_KERNEL_ARGS = "console=ttyS0 tsc=reliable no_timer_check cpufreq.default_governor=performance"
# A newer kernel believes in the TSC of a Skylake only if it says that it is invariant, which emulated ones do not.
CPUS = {"": "Skylake-Client", "sid": "IvyBridge"}
MEMORY_MIB = 2048
# A guest boots in about 30 s, and took 90 s on a busy host. One that is not ready after this long hangs.
BOOT_S = 300
EXIT_TIMEOUT, EXIT_VM = 124, 125


class OutOfTime(Exception):
    pass


class QemuEnded(VmError):
    """The emulator ended by itself."""

    def __init__(self, qemu):
        self.crashed = qemu.process.wait(10) < 0
        super().__init__(f"QEMU ended with status {qemu.process.returncode}: {qemu.last_words()}")


def note(text):
    print(f"vm: {text}", file=sys.stderr, flush=True)


def cache_dir():
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("ASYM_VM_CACHE") or pathlib.Path(home) / "asymd-vm") / newer_kernel()


def newer_kernel():
    """The suite of Debian whose kernel the guest has; "": that of Debian 12."""
    return os.environ.get("ASYM_VM_KERNEL", "")


def x86_args(machine):
    half = MEMORY_MIB // 2
    return [
        "qemu-system-x86_64", "-machine", "q35", "-cpu", CPUS[newer_kernel()], "-smp", machines.smp(machine),
        "-object", f"memory-backend-ram,id=mem0,size={half}M", "-numa", "node,nodeid=0,cpus=0-3,memdev=mem0",
        "-object", f"memory-backend-ram,id=mem1,size={half}M", "-numa", "node,nodeid=1,cpus=4-7,memdev=mem1",
        "-acpitable", f"file={cache_dir() / machine}.aml",
        "-device", f"isa-debugcon,iobase={machines.PORT:#x},chardev=pstates,readback=0",
        "-append", KERNEL_ARGS + X86_KERNEL_ARGS + machines.ticks(machine),
    ]


def arm64_args(machine, tree=None):
    """tree: a file into which QEMU writes the machine's own device tree, and ends."""
    how = f"dumpdtb={tree}" if tree else f"dtb={arch(machine).files / machine}.dtb"
    return ["qemu-system-aarch64", "-machine", f"virt,gic-version=3,{how}", "-cpu", "cortex-a72", "-smp", str(machines.CPUS),
            "-append", KERNEL_ARGS + "console=ttyAMA0"]


# args: QEMU's arguments. files: where setup.sh puts the files from which its machines start; about: the end of the name of the one
# that describes a machine's CPUs. cross: the beginning of the compiler's name.
Arch = collections.namedtuple("Arch", "args files about cross")


def arch(machine):
    files = cache_dir()
    if machine in machines.ARM64:
        return Arch(arm64_args, files / "arm64", "dtb", "aarch64-linux-gnu-")
    return Arch(x86_args, files, "aml", "")


def machine_args(machine, **how):
    """The arguments of QEMU on which a snapshot depends."""
    files = arch(machine).files
    return arch(machine).args(machine, **how) + [
        "-name", "asymd-vm,debug-threads=on", "-m", str(MEMORY_MIB), "-nodefaults", "-no-reboot", "-display", "none",
        "-kernel", str(files / "vmlinuz"), "-initrd", str(files / "initramfs"),
        "-drive", f"file={files / 'rootfs'},format=raw,if=virtio,readonly=on",
    ]


def device_args(fds, run_dir, share):
    def shared(path, tag):
        return ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap"]

    return [
        "-chardev", f"file,id=console,path={run_dir / 'console.log'}", "-serial", "chardev:console",
        "-chardev", f"socket,id=qmp,fd={fds['qmp']}", "-mon", "chardev=qmp,mode=control",
        "-chardev", f"socket,id=pstates,fd={fds['pstates']}",
        "-chardev", f"socket,id=agent,fd={fds['agent']}",
        "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=agent,name=vm.agent",
        *shared(run_dir, "vmrun"), *shared(share, "host"),
    ]


def snapshot_key(machine):
    args = machine_args(machine)
    names = ("vmlinuz", "initramfs", "rootfs", f"{machine}.{arch(machine).about}")
    files = [shutil.which(args[0]) or args[0], *(arch(machine).files / name for name in names)]
    facts = [args, [(os.stat(f).st_size, os.stat(f).st_mtime_ns) for f in files]]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def die_with_parent():
    """Runs in the child before QEMU starts: so a harness that is killed by SIGKILL leaves no guest behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    os.nice(5)


class Qemu:
    """The QEMU process, and the sockets to it."""

    def __init__(self, machine, run_dir, share, restore, threads="multi"):
        pairs = {name: socket.socketpair() for name in ("qmp", "pstates", "agent")}
        fds = {name: theirs.fileno() for name, (_, theirs) in pairs.items()}
        argv = machine_args(machine) + ["-accel", f"tcg,thread={threads}"] + device_args(fds, run_dir, share)
        argv += ["-incoming", "defer"] if restore else []
        self.log = run_dir / "qemu.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=fds.values(),
                                            start_new_session=True, preexec_fn=die_with_parent)
        for _, theirs in pairs.values():
            theirs.close()
        self.sockets = {name: ours for name, (ours, _) in pairs.items()}
        self.qmp = self.sockets["qmp"].makefile("rw")

    def connect(self):
        self.qmp.readline()
        self.call("qmp_capabilities")

    def call(self, command, **arguments):
        with contextlib.suppress(OSError):
            self.qmp.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
            self.qmp.flush()
            for line in self.qmp:
                reply = json.loads(line)
                if "error" in reply:
                    raise VmError(f"QEMU, {command}: {reply['error']['desc']}")
                if "return" in reply:
                    return reply["return"]
        raise QemuEnded(self)

    def last_words(self):
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if "TCG doesn't support" not in line]
        return " / ".join(lines[-3:]) or "it said nothing"

    def cpu_threads(self):
        return [c["thread-id"] for c in sorted(self.call("query-cpus-fast"), key=lambda c: c["cpu-index"])]

    def restore(self, path):
        self.call("migrate-incoming", uri="exec:cat " + shlex.quote(str(path)))
        while self.call("query-status")["status"] == "inmigrate":
            time.sleep(0.02)
        self.call("cont")

    def save(self, path):
        self.call("stop")
        self.call("migrate-set-parameters", **{"max-bandwidth": 10**10})
        self.call("migrate", uri="exec:cat >" + shlex.quote(str(path)))
        while (status := self.call("query-migrate").get("status")) != "completed":
            if status == "failed":
                raise VmError("QEMU could not save the snapshot")
            time.sleep(0.1)

    def kill(self):
        self.process.kill()
        self.process.wait()
        for ours in self.sockets.values():
            ours.close()


class Guest:
    """One running guest; a context manager, so that QEMU and the cgroups end with it however the block ends."""

    def __init__(self, machine, share=None, timeout=600, boot=False, snapshot=None):
        self.machine, self.boot, self.follow = machine, boot, None
        self.deadline = time.monotonic() + timeout
        self.speeds = Speeds(machine)
        self.run_dir = pathlib.Path(tempfile.mkdtemp(prefix="asymd-vm."))
        self.share = pathlib.Path(share) if share else self.run_dir / "share"
        self.share.mkdir(exist_ok=True)
        self.snapshot = None if boot else snapshot or self.usable_snapshot()
        self.qemu, self.pending, self.commands = None, b"", 0
        self.selector = selectors.DefaultSelector()

    def usable_snapshot(self):
        path = arch(self.machine).files / f"{self.machine}.snapshot"
        key = path.with_suffix(".key")
        if key.exists() and key.read_text() == snapshot_key(self.machine):
            return path
        note(f"no snapshot of {self.machine} that fits: booting")
        return None

    def __enter__(self):
        try:
            # While one CPU sets up PCI devices, QEMU 7.2 changes the memory map of the others, which run: their accesses to a
            # device use old entries in the new map. QEMU crashes, or an access to an interrupt controller may get lost. One
            # thread for all CPUs excludes that. Speeds need a thread each, and a snapshot can be restored with either.
            self.qemu = Qemu(self.machine, self.run_dir, self.share.resolve(), self.snapshot,
                             "single" if self.boot else "multi")
            self.qemu.connect()
            for name in ("pstates", "agent"):
                self.selector.register(self.qemu.sockets[name], selectors.EVENT_READ, name)
            if self.snapshot:
                self.qemu.restore(self.snapshot)
            else:
                self.await_boot()
            return self
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind, *_):
        with contextlib.ExitStack() as stack:
            # The stack runs in reverse: QEMU must end first, or its threads would still be in the cgroups.
            if kind is None or kind is SystemExit:
                stack.callback(shutil.rmtree, self.run_dir, ignore_errors=True)
            else:
                note(f"console and QEMU logs stay in {self.run_dir}")
            stack.callback(self.speeds.done)
            stack.callback(self.selector.close)
            if self.qemu:
                stack.callback(self.qemu.kill)

    def await_boot(self):
        """Waits until the guest is ready. If it is not in time, its kernel prints what its CPUs and blocked tasks do."""
        try:
            self.wait_for("ready", BOOT_S)
        except OutOfTime:
            for key in "lw":
                keys = [{"type": "qcode", "data": name} for name in ("alt", "sysrq", key)]
                self.qemu.call("send-key", keys=keys)
                self.idle(5)
            raise

    def console_end(self):
        """Returns the last lines of the console."""
        path = self.run_dir / "console.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-200:]) if path.exists() else ""

    def begin(self):
        """Sets the clock and mounts the shared directory. The CPUs are still as fast as the host allows."""
        self.tell(f"begin {time.time():.0f}")
        self.wait_for("begun", 60)
        self.speeds.attach(self.qemu.process.pid, self.qemu.cpu_threads())

    def tell(self, line):
        self.qemu.sockets["agent"].sendall(line.encode() + b"\n")

    def serve(self):
        """Handles the messages of the guest that come within 0.2 s."""
        for key, _ in self.selector.select(0.2):
            data = key.fileobj.recv(65536)
            if not data:
                raise QemuEnded(self.qemu)
            if key.data == "pstates":
                self.speeds.port_written(data)
            else:
                self.pending += data
        if self.follow:
            self.follow()

    def wait_for(self, word, seconds=None):
        """Waits for a line of the agent that begins with word. Returns the rest of the line."""
        until = min(self.deadline, time.monotonic() + seconds) if seconds else self.deadline
        while True:
            if time.monotonic() > until:
                raise OutOfTime(f"no '{word}' from the guest in time")
            self.serve()
            while b"\n" in self.pending:
                line, self.pending = self.pending.split(b"\n", 1)
                if line.decode() == word or line.decode().startswith(word + " "):
                    return line.decode()[len(word) + 1:]

    def idle(self, seconds):
        """Lets the guest run, and sets the speeds of its CPUs by their P-states."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.serve()

    def run(self, command, output=None):
        """Runs a line of shell in /host. Its output goes to the file object as it comes. Returns the exit status."""
        self.commands += 1
        path, at = self.run_dir / f"output.{self.commands}", 0

        def copy():
            nonlocal at
            if output and path.exists():
                with path.open("rb") as file:
                    file.seek(at)
                    output.write(text := file.read())
                    output.flush()
                    at += len(text)

        self.follow = copy
        text = base64.b64encode(command.encode() + b"\n").decode()
        self.tell(f"run {self.commands} {text}")
        try:
            return int(self.wait_for(f"exit {self.commands}"))
        finally:
            copy()
            self.follow = None


def cache_snapshot(machine):
    """Saves the snapshot from which guests of this machine start."""
    path = arch(machine).files / f"{machine}.snapshot"
    save_snapshot(machine, path)
    path.with_suffix(".key").write_text(snapshot_key(machine))


def save_snapshot(machine, path, tries=3):
    """Boots and saves a snapshot. It tries again if QEMU crashes: with a thread for each CPU, QEMU 7.2 did in about one boot
    of 20."""
    guest = Guest(machine, boot=True)
    try:
        with guest:
            time.sleep(1)  # systemd still does work in the background
            guest.qemu.save(path)
    except QemuEnded as error:
        if not error.crashed or tries == 1:
            raise
        note(f"{error}; once more")
        save_snapshot(machine, path, tries - 1)
    except OutOfTime as error:
        # In CI a boot with a thread for each CPU stopped for two minutes, on an idle host.
        note(f"{error}; the end of its console:\n{guest.console_end()}")
        if tries == 1:
            raise
        note("once more")
        save_snapshot(machine, path, tries - 1)


def stop_on_signals():
    def stop(number, _frame):
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
        sys.exit(128 + number)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)


def parse_args():
    parser = argparse.ArgumentParser(description="Run a command in the guest; exit with its status "
                                     "(124: out of time, 125: the virtual machine failed).")
    parser.add_argument("command", nargs="*", help="a line of shell; without, lines are read from standard input")
    parser.add_argument("--machine", choices=machines.MACHINES, default="big-little")
    parser.add_argument("--share", metavar="DIR", help="is /host in the guest, writable (default: an empty one)")
    parser.add_argument("--timeout", type=float, default=600, metavar="S", help="default: %(default)s")
    parser.add_argument("--full-speed", action="store_true", help="CPUs as fast as the host allows, whatever their MHz")
    parser.add_argument("--device-tree", help=argparse.SUPPRESS)
    parser.add_argument("--save-snapshot", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--snapshot-key", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_args()
    stop_on_signals()
    try:
        if args.device_tree:
            return subprocess.run(machine_args(args.machine, tree=args.device_tree), check=True).returncode
        if args.snapshot_key:
            return print(snapshot_key(args.machine))
        if args.save_snapshot:
            return cache_snapshot(args.machine)
        with Guest(args.machine, args.share, args.timeout) as guest:
            guest.begin()
            guest.speeds.limit(not args.full_speed)
            status = 0
            for line in [" ".join(args.command)] if args.command else sys.stdin:
                status = guest.run(line, sys.stdout.buffer)
            return status
    except OutOfTime as error:
        note(error)
        return EXIT_TIMEOUT
    except (VmError, OSError) as error:
        note(error)
        return EXIT_VM


if __name__ == "__main__":
    sys.exit(main())
