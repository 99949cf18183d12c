#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""install.py BUILD_DIR: checks that `cmake --install` writes below its prefix or DESTDIR and nowhere else, that the installed
programs run from there and read the configuration there, and that a second install leaves a changed configuration as it is.

The project has the component Unspecified only. The script names it, because that keeps the build tree's own
install_manifest.txt, by which a user uninstalls.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMPONENT = "Unspecified"
# Installed files, relative to the prefix. The script checks the configuration apart, because its place depends on the prefix.
FILES = ("sbin/asymd", "sbin/asymd-exporter", "bin/asymctl", "libexec/asymd/asymd-helper", "include/asym/rtx.h",
         "lib/systemd/system/asymd.service", "lib/systemd/system/asymd-exporter.service",
         "lib/systemd/system/asymd-exporter.socket", "lib/sysusers.d/asymd-exporter.conf", "share/man/man8/asymd.8", "share/man/man8/asymd-exporter.8",
         "share/man/man5/asymd.conf.5", "share/asymd/rules.d/games.conf", "share/asymd/rules.d/builds.conf",
         "share/dbus-1/system.d/org.asymd.conf", "share/dbus-1/interfaces/org.asymd.Manager.xml",
         "share/polkit-1/actions/org.asymd.policy", "share/man/man5/org.asymd.Manager.5",
         "share/man/man1/asymctl.1", "share/man/man3/asym_rtx.3", "share/doc/asymd/examples/asymd.conf",
         "share/bash-completion/completions/asymd", "share/bash-completion/completions/asymctl",
         "share/zsh/site-functions/_asymd", "share/zsh/site-functions/_asymctl",
         "share/fish/vendor_completions.d/asymd.fish", "share/fish/vendor_completions.d/asymctl.fish",
         "*/libasym-rtx.so", "*/libasym-rtx.a", "*/pkgconfig/asym-rtx.pc")
CHANGED = "[asymd]\ninterval = 123ms\n"


def check(right, words):
    if not right:
        sys.exit(f"install.py: {words}")


def run(*command, cwd=None, **variables):
    """Standard output, standard error and status of a command, without variables that redirect its programs."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_TOOL", "DESTDIR", "LD_"))}
    done = subprocess.run([str(c) for c in command], env={**env, **variables}, cwd=cwd, capture_output=True, text=True)
    return done.stdout, done.stderr, done.returncode


def check_rules(build):
    """Checks, before the first install, that no rule of the install scripts has an absolute destination of its own."""
    for script in build.rglob("cmake_install.cmake"):
        for line in script.read_text().splitlines():
            check(not re.search(r'DESTINATION "/', line), f"{script}: a destination that no prefix moves: {line.strip()}")


def host_files(build):
    """The files of an asymd that is installed on the host itself, with their state."""
    seen = {}
    for path in [*prefix_of(build).glob("sbin/asymd*"), *prefix_of(build).glob("bin/asymctl"),
                 *pathlib.Path("/etc").glob("asymd/**/*"), *pathlib.Path("/var/lib").glob("asymd*")]:
        state = path.lstat()
        seen[path] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return seen


def prefix_of(build):
    cache = (build / "CMakeCache.txt").read_text()
    return pathlib.Path(re.search(r"^CMAKE_INSTALL_PREFIX:[A-Z]+=(.*)$", cache, re.M).group(1))


def install(build, prefix, destdir):
    """Installs. Returns the files that cmake reports as installed or kept, and the files of the manifest. The configured prefix
    needs no option."""
    options = [] if prefix == prefix_of(build) else ["--prefix", prefix]
    said, wrong, status = run("cmake", "--install", build, "--component", COMPONENT, *options,
                              **({"DESTDIR": str(destdir)} if destdir else {}))
    check(status == 0, f"cmake --install: {wrong}")
    manifest = build / f"install_manifest_{COMPONENT}.txt"
    listed = manifest.read_text().split("\n")
    manifest.unlink()
    touched = re.findall(r"^-- (?:Installing|Up-to-date|Kept): (.*?)(?: \(.*)?$", said, re.M)
    return [pathlib.Path(p) for p in touched], [pathlib.Path((str(destdir) if destdir else "") + p) for p in listed if p]


def check_install(build, top, prefix, destdir=None):
    """Installs twice and checks the place of each file. top: the directory of the files; prefix: the one that programs name."""
    name = f"{prefix}{f' in DESTDIR {destdir}' if destdir else ''}"
    staged = pathlib.Path(f"{destdir or ''}{prefix}")
    etc = pathlib.Path(f"{destdir or ''}{'' if str(prefix) == '/usr' else prefix}/etc/asymd")
    before = host_files(build)
    touched, listed = install(build, prefix, destdir)
    there = {p for p in top.rglob("*") if not p.is_dir()}
    for path in touched + listed:
        check(path.is_relative_to(top), f"{name}: {path} is not below {top}")
    check(host_files(build) == before, f"{name}: the host's own files were changed")
    for pattern in FILES:
        check(any(p.match(f"{staged}/{pattern}") if "*" not in pattern else p.match(pattern) for p in there),
              f"{name}: {pattern} is missing")
    config = etc / "asymd.conf"
    check(there == set(listed) | {config}, f"{name}: not in the manifest or not there: {there ^ (set(listed) | {config})}")
    sample = pathlib.Path(build) / "conf" / "asymd.conf"
    check(config.read_bytes() == sample.read_bytes(), f"{name}: {config} is not the sample")
    config.write_text(CHANGED)
    touched, _ = install(build, prefix, destdir)
    check(config.read_text() == CHANGED, f"{name}: the second install has replaced {config}")
    check(config in touched and (staged / "share/doc/asymd/examples/asymd.conf").read_bytes() == sample.read_bytes(),
          f"{name}: the second install does not say that it kept {config}, or has no sample for it")
    check({p for p in top.rglob("*") if not p.is_dir()} == there, f"{name}: a second install brings other files")
    check_texts(name, staged, prefix)
    return staged, etc, listed


def check_texts(name, staged, prefix):
    """Checks that the installed texts name this prefix, and no other."""
    unit = (staged / "lib/systemd/system/asymd.service").read_text()
    program = str(prefix).replace("%", "%%").replace(" ", "\\x20") + "/sbin/asymd"
    starts = re.findall(r"^Exec(?:Start|StopPost)=(\S*asymd)\b", unit, re.M)
    check(starts == [program, program], f"{name}: the unit starts {starts}")
    exporter = re.findall(r"^ExecStart=(\S+)", (staged / "lib/systemd/system/asymd-exporter.service").read_text(), re.M)
    check(exporter == [f"{program}-exporter"], f"{name}: the unit of the exporter starts {exporter}")
    etc = f"{'' if str(prefix) == '/usr' else prefix}/etc/asymd/"
    for page in ("man8/asymd.8", "man5/asymd.conf.5", "man1/asymctl.1"):
        named = set(re.findall(r"^\.(?:It )?Pa (.*?/asymd/)asymd\.conf", (staged / "share/man" / page).read_text(), re.M))
        check(named == {etc}, f"{name}: {page} names the configuration in {named}")
    pc = next(staged.rglob("asym-rtx.pc"))
    for key, want in (("prefix", prefix), ("includedir", f"{prefix}/include")):
        said, wrong, status = run("pkg-config", f"--variable={key}", "asym-rtx", PKG_CONFIG_PATH=str(pc.parent))
        check(status == 0 and said.strip().replace("\\", "") == str(want), f"{name}: asym-rtx.pc: {key} is {said}{wrong}")


def check_run(name, programs, tool):
    """Checks that asymctl run, from an installation or a build tree, finds the tool of the same tree."""
    for arguments in (["true"], ["--", "sh", "-c", "exit 7"]):
        said, wrong, status = run(programs["asymctl"], "run", *arguments)
        check((said, wrong, status) == ("", "", 7 if len(arguments) > 1 else 0),
              f"{name}: asymctl run {arguments}: {status} {said}{wrong}")
    said, _, _ = run(programs["asymctl"], "run", "--", "sh", "-c", "echo $OMP_TOOL_LIBRARIES")
    check(said.strip() == str(tool), f"{name}: asymctl run loads {said.strip()} and not {tool}")
    said, wrong, status = run(programs["asymd"], "--version")
    check(status == 0 and said.startswith("asymd "), f"{name}: asymd --version: {status} {said}{wrong}")


def check_programs(name, staged, etc, reads):
    """reads: whether the configuration in etc is the one that these programs read."""
    programs = {"asymd": staged / "sbin/asymd", "asymctl": staged / "bin/asymctl"}
    tool = next(staged.rglob("libasym-ompt.so"), None)
    said, wrong, status = run(staged / "sbin/asymd-exporter", "--version")
    check(status == 0 and said.startswith("asymd-exporter "), f"{name}: asymd-exporter --version: {status} {said}{wrong}")
    said, wrong, status = run(programs["asymd"], "--print-config")
    line = next((line for line in said.splitlines() if line.startswith("interval")), "")
    check(status == 0 and ("123ms" in line and f"{etc}/asymd.conf:2" in line) == reads,
          f"{name}: asymd --print-config: {status} {line}{wrong}")
    check_run(name, programs, tool)
    tool.unlink()
    said, wrong, status = run(programs["asymctl"], "run", "--", "sh", "-c", "echo here; exit 7")
    check((said, status) == ("here\n", 7) and len(wrong.splitlines()) == 1 and str(tool) in wrong,
          f"{name}: without the tool asymctl run says {wrong!r} and ends with {status}")


def check_relative(build, work):
    """Checks that a relative prefix starts at the working directory, and that the files name its absolute path."""
    run("cmake", "--install", build, "--component", COMPONENT, "--prefix", "y/../relative/", cwd=work)
    (build / f"install_manifest_{COMPONENT}.txt").unlink()
    prefix = pathlib.Path(work).resolve() / "relative"
    check_texts("a relative prefix", prefix, prefix)
    check((prefix / "etc/asymd/asymd.conf").exists(), "a relative prefix: no configuration")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    check_rules(build)
    presets = pathlib.Path(__file__).resolve().parent.parent / "CMakePresets.json"
    check("CMAKE_INSTALL_PREFIX" not in presets.read_text(), "a preset has a prefix: cmake --install writes to /usr/local")
    with tempfile.TemporaryDirectory(prefix="asym-install-") as work:
        for name in ("prefix", "a 50% prefix", "x/usr"):
            prefix = pathlib.Path(work).resolve() / name
            staged, etc, listed = check_install(build, prefix, prefix)
            check_programs(name, staged, etc, reads=True)
        # A user who uninstalls removes the files of the manifest and keeps the configuration.
        for path in listed:
            path.unlink(missing_ok=True)
        check([p for p in prefix.rglob("*") if not p.is_dir()] == [etc / "asymd.conf"], "something is left behind")
        check_relative(build, work)
        for prefix in sorted({prefix_of(build), pathlib.Path("/usr"), pathlib.Path("/usr/local"), pathlib.Path("/opt/asymd")}):
            destdir = pathlib.Path(work).resolve() / f"destdir{str(prefix).replace('/', '-')}"
            staged, etc, _ = check_install(build, destdir, prefix, destdir)
            # A program in DESTDIR/usr cannot know that DESTDIR is a root, so it does not read DESTDIR/etc, nor the host's.
            check_programs(f"DESTDIR{prefix}", staged, etc, reads=str(prefix) != "/usr")
    check_run("the build tree", {"asymd": build / "daemon/asymd", "asymctl": build / "daemon/asymctl"},
              build / "lib/rtx/ompt/libasym-ompt.so")
    print("three prefixes, their own DESTDIR for each of the others, and the build tree")


if __name__ == "__main__":
    main()
