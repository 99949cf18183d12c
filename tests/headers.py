#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""headers.py [TREE]: checks that each function has its contract where a reader looks for it. --test: tests itself.

A function of lib/X/foo.c that another file of lib or daemon calls is declared in lib/X/foo.h. Other places are:
- for lib/X/foo-part.c, which is a part of a module foo: lib/X/foo.h;
- a header of include/asym: a contract that several files keep;
- lib/X/NAME-internal.h: what the files of one module call of each other;
- a header of SHARED, for the files that its row names.
"""
import re
import sys
import tempfile
from pathlib import Path

# header: its files besides the one of its own name, and why they share it
SHARED = {
    "lib/config/config.h": ("rules settings settings-load", "the settings and the rules are one struct"),
    "lib/bus/bus.h": ("caller", "all that daemon/asymd calls of the room; the state is one struct"),
    "lib/linux/enforce/enforce.h": ("ledger ledger-file restore actuator fork-guard ledger-overlay", "all that others call of the room"),
}
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DEFINITION = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][^;{}()=\n]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
DECLARATION = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][^;{}()=\n]*?\b(\w+)\([^;{}]*\)[^;{}]*;", re.M)


def blank(match):
    """The lines of a comment, without its text: line numbers stay."""
    return "\n" * match[0].count("\n")


def read(tree):
    """The code of each file of the tree, without comments. BPF programs are left out: the kernel calls them, by their sections."""
    files = sorted(p for top in ("include", "lib", "daemon") for p in (tree / top).rglob("*.[ch]") if not p.match("*.bpf.c"))
    return {p.relative_to(tree): COMMENT.sub(blank, p.read_text(encoding="utf-8")) for p in files}


def is_home(header, source, shared):
    """Whether the function of source may be declared in header."""
    if header.parts[0] == "include" or header.with_suffix("") == source.with_suffix(""):
        return True
    if header.parent == source.parent and (header.stem.endswith("-internal") or source.stem.startswith(header.stem + "-")):
        return True
    return header.parent == source.parent and source.stem in shared.get(str(header), ("",))[0].split()


def check(tree, shared):
    """The faults, as FILE:LINE: fault."""
    code = read(tree)
    words = {path: set(re.findall(r"\w+", text)) for path, text in code.items() if path.suffix == ".c"}
    headers = {}
    for path in (p for p in code if p.suffix == ".h"):
        for name in DECLARATION.findall(code[path]):
            headers.setdefault(name, []).append(path)
    used = set()
    for source in words:
        for match in DEFINITION.finditer(code[source]):
            name, declared = match[1], headers.get(match[1], [])
            used |= {(str(header), source.stem) for header in declared}
            callers = [p for p in words if p != source and name in words[p]]
            if name == "main" or not callers or any(is_home(header, source, shared) for header in declared):
                continue
            line = code[source].count("\n", 0, match.start()) + 1
            where = " and ".join(map(str, declared)) or "no header"
            yield f"{source}:{line}: {callers[0]} calls {name}, which is declared in {where}: declare it in {source.stem}.h"
    for header, (stems, _) in shared.items():
        for stem in stems.split():
            if (header, stem) not in used:
                yield f"headers.py: {header} declares nothing of {stem}.c any more: take it out of its row"


def test():
    """Checks that each fault is found, with its file and line. This tree, which has none, shows that nothing else is."""
    body = "(void)\n{\n    return 0;\n}\n"
    files = {"lib/a/box.h": "int asym_lid(int a,\n             int b);\nint asym_own(void);\nint asym_part(void);\n",
             "lib/a/lid.c": "/* two\nlines */\nint asym_lid(int a,\n             int b)\n{\n    return 0;\n}\n",
             "lib/a/own.c": f"int asym_own{body}\nint asym_lost{body}", "lib/a/box-part.c": f"int asym_part{body}",
             "lib/b/b-internal.h": "int asym_far(void);\n", "lib/a/far.c": f"int asym_far{body}",
             "daemon/x/main.c": "int main(void)\n{\n    return asym_lid(1, asym_own()) + asym_lost() + asym_far() + asym_part();\n}\n"}
    wanted = ["lib/a/far.c:1: daemon/x/main.c calls asym_far, which is declared in lib/b/b-internal.h",
              "lib/a/lid.c:3: daemon/x/main.c calls asym_lid, which is declared in lib/a/box.h: declare it in lid.h",
              "lib/a/own.c:6: daemon/x/main.c calls asym_lost, which is declared in no header",
              "lib/a/box.h declares nothing of gone.c any more"]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        said = list(check(Path(folder), {"lib/a/box.h": ("own gone", "test")}))
    if len(said) != len(wanted) or any(w not in s for w, s in zip(wanted, said)):
        sys.exit(f"headers.py --test: expected {wanted}, found {said}")


def main():
    if sys.argv[1:] == ["--test"]:
        test()
        return
    faults = list(check(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parent.parent, SHARED))
    print("\n".join(faults) or "headers: each function that another file calls is declared in the header of its file")
    sys.exit(1 if faults else 0)


main()
