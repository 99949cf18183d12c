#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pools.py ASYMCTL: how many threads the pool of each runtime gets, alone and under asymctl run --fast and --slow, as a table in
Markdown.

The last CPU counts as slow, all others as fast. A runtime that is not installed here has a row that says so. Debian's packages:
gcc, clang with libomp-dev, libtbb-dev, default-jdk-headless, golang-go, rustc with cargo and librust-rayon-dev, python3, nodejs.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

OPENMP = "#include <omp.h>\n#include <stdio.h>\nint main(void) { printf(\"%d\", omp_get_max_threads()); }\n"
TBB = """#include <cstdio>
#include <oneapi/tbb/task_arena.h>
int main() { std::printf("%d", tbb::this_task_arena::max_concurrency()); }
"""
STD = "#include <cstdio>\n#include <thread>\nint main() { std::printf(\"%u\", std::thread::hardware_concurrency()); }\n"
JAVA = "class Pool { public static void main(String[] a) { System.out.print(Runtime.getRuntime().availableProcessors()); } }\n"
GO = "package main\n\nimport (\n\t\"fmt\"\n\t\"runtime\"\n)\n\nfunc main() { fmt.Print(runtime.GOMAXPROCS(0)) }\n"
RUST = "fn main() { print!(\"{}\", std::thread::available_parallelism().unwrap()); }\n"
RAYON = "fn main() { print!(\"{}\", rayon::current_num_threads()); }\n"
CARGO = """[package]
name = "pool"
version = "0.1.0"
edition = "2021"
[dependencies]
rayon = "*"
[[bin]]
name = "pool"
path = "rayon.rs"
"""
VENDORED = '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "/usr/share/cargo/registry"\n'

# name; source files; build; run. {0} is the folder.
ROWS = [
    ("the CPUs of the affinity", {}, [], ["python3", "-c", "import os; print(*sorted(os.sched_getaffinity(0)), sep=', ')"]),
    ("nproc", {}, [], ["nproc"]),
    ("OpenMP, GCC's libgomp", {"g.c": OPENMP}, ["gcc", "-fopenmp", "g.c", "-o", "g"], ["{0}/g"]),
    ("OpenMP, LLVM's libomp", {"l.c": OPENMP}, ["clang", "-fopenmp", "l.c", "-o", "l"], ["{0}/l"]),
    ("oneTBB", {"t.cc": TBB}, ["g++", "t.cc", "-o", "t", "-ltbb"], ["{0}/t"]),
    ("C++ `hardware_concurrency`", {"s.cc": STD}, ["g++", "s.cc", "-o", "s"], ["{0}/s"]),
    ("Java `availableProcessors`", {"Pool.java": JAVA}, ["javac", "Pool.java"], ["java", "-cp", "{0}", "Pool"]),
    ("Go `GOMAXPROCS`", {"p.go": GO}, ["go", "build", "-o", "p", "p.go"], ["{0}/p"]),
    ("Rust `available_parallelism`", {"a.rs": RUST}, ["rustc", "a.rs", "-o", "a"], ["{0}/a"]),
    ("Rust rayon", {"rayon.rs": RAYON, "Cargo.toml": CARGO, ".cargo/config.toml": VENDORED},
     ["cargo", "build", "--offline", "--quiet"], ["{0}/target/debug/pool"]),
    ("Python `os.sched_getaffinity`", {}, [], ["python3", "-c", "import os; print(len(os.sched_getaffinity(0)))"]),
    ("Python `os.process_cpu_count`", {}, [], ["python3", "-c", "import os; print(os.process_cpu_count())"]),
    ("Python `os.cpu_count`", {}, [], ["python3", "-c", "import os; print(os.cpu_count())"]),
    ("Node.js `availableParallelism`", {}, [], ["node", "-e", "console.log(os.availableParallelism())"]),
]


def output(command, folder):
    env = {**os.environ, "GOCACHE": f"{folder}/cache", "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def row(asymctl, config, name, sources, build, run):
    with tempfile.TemporaryDirectory() as path:
        for file, text in sources.items():
            target = pathlib.Path(path, file)
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)
        if not shutil.which((build or run)[0]) or build and output(build, path) is None:
            return f"| {name} | not here | not here | not here |"
        run = [word.format(path) for word in run]
        under = [[], *([asymctl, "run", f"--config={config}", kind, "--"] for kind in ("--fast", "--slow"))]
        return f"| {' | '.join([name, *(output(words + run, path) or 'not here' for words in under)])} |"


def main(asymctl):
    cpus = sorted(os.sched_getaffinity(0))
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        config.write(f"[asymmetry]\nslow = {cpus[-1]}-{cpus[-1]}\nmethod = none\n")
        config.flush()
        fast = f"{len(cpus) - 1} CPU{'s' if len(cpus) > 2 else ''}"
        print(f"| runtime | threads, {len(cpus)} CPUs | with `asymctl run --fast`, {fast} | with `asymctl run --slow`, 1 CPU |")
        print("| --- | --- | --- | --- |")
        for name, sources, build, run in ROWS:
            print(row(asymctl, config.name, name, sources, build, run), flush=True)


if __name__ == "__main__":
    main(str(pathlib.Path(sys.argv[1]).resolve()))
