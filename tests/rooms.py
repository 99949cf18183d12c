#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""rooms.py [TREE]: checks the include lines of TREE (default: this tree) against the table of rooms. --test: tests itself.

A room is a folder. It may include itself, the contracts of include/asym, and the rooms that its row names. The lowest room
comes first: a row names only rows above it in the table, so that the table can have no circle.

Files of lib and daemon call each other in one direction: what a file calls never calls it back, directly or through others.
A row of a .def file, by which a table names its entries, is no call. In the rooms of ONE_WAY the
include lines go in that direction, too: a .c file with its header includes the header of no file that needs its own.

The unit tests of lib/ROOM and daemon/ROOM stand in tests/unit/ROOM, those of tests/support in tests/unit/support. Each room has
some, but for the rooms of UNTESTED, which says where their tests are.
"""
import re
import sys
import tempfile
from pathlib import Path

# room: the rooms that it may include
ROOMS = {
    "include/asym": "",
    "lib/base": "",
    "lib/core": "lib/base",
    "lib/policy/placement": "lib/base",
    "lib/policy/smt": "lib/base lib/policy/placement",
    "lib/policy/asym": "lib/base lib/policy/placement",
    "lib/policy": "lib/base lib/policy/placement lib/policy/smt",
    "lib/profile": "lib/base",
    "lib/record": "lib/base",
    "lib/config": "lib/base",
    "lib/explain": "lib/base lib/core lib/config",
    "lib/sim": "lib/base lib/config",
    "lib/rtx": "",
    "lib/rtx/ompt": "",
    "lib/linux/sys": "lib/base",
    "lib/linux/topology": "lib/base lib/linux/sys",
    "lib/linux/observe": "lib/base lib/config lib/linux/sys",
    "lib/linux/perf": "lib/base lib/core lib/linux/sys",
    "lib/linux/enforce": "lib/base lib/linux/sys lib/linux/observe",
    "lib/linux/speed-cap": "lib/base lib/config lib/linux/enforce",
    "lib/linux/rtx": "lib/base lib/linux/sys",
    "lib/linux/check": "lib/base lib/linux/sys lib/linux/perf",
    "lib/report": "lib/base lib/core lib/config lib/linux/topology lib/linux/rtx lib/linux/check",
    "lib/top": "lib/base lib/report",
    "lib/app": "lib/base lib/core lib/config lib/profile lib/report lib/linux/sys lib/linux/topology lib/linux/observe"
               " lib/linux/perf lib/linux/enforce lib/linux/speed-cap lib/linux/rtx",
    "lib/bus": "lib/base",
    "lib/experiment": "lib/base lib/core lib/config lib/record lib/sim lib/report lib/app",
    "lib/client": "lib/base",
    "daemon/asymd": "lib/base lib/core lib/config lib/explain lib/report lib/bus lib/app lib/linux/sys"
                    " lib/linux/observe lib/linux/enforce",
    "daemon/asymctl": "lib/base lib/core lib/client lib/config lib/profile lib/record lib/report lib/top lib/app lib/experiment"
                      " lib/linux/sys lib/linux/observe lib/linux/perf lib/linux/enforce",
    "daemon/exporter": "lib/base lib/client lib/report lib/app",
}
# rooms without a folder in tests/unit, and where they are tested
UNTESTED = {
    "lib/policy/placement": "tests/unit/policy",
}
# rooms whose include lines between files have one direction, with the rooms below them
ONE_WAY = ("lib/linux", "lib/sim")
INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|<(asym/[^>]+)>)')

# Comments and texts, whichever begins first: a text may contain // and a character may be a quote.
COMMENT = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
# A function that is not static, and a name that is no member, no tag of a type and no text.
DEFINITION = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][^;{}()=\n]*?\b(\w+)\([^;{}]*\)\n\{", re.M)
NAME = re.compile(r'"(?:\\.|[^"\\\n])*"|(?:->|\.)\s*\w+|\b(?:struct|enum|union)\s+\w+|\b(\w+)\b')


def check_table(rooms):
    """The faults of the table itself."""
    seen = []
    for room, may in rooms.items():
        for other in may.split():
            if other not in seen:
                yield f"rooms.py: the row of {room} names {other}, whose row does not stand above it"
        seen.append(room)


def find(tree, source, name):
    """The file that an include line of source names, or None: a header of a library, or a generated one."""
    for folder in (tree / "include", tree / "lib", tree, source.parent):
        if (folder / name).is_file():
            return (folder / name).resolve().relative_to(tree)
    return None


def check_tests(tree, rooms, untested):
    """The faults of the folders in tests/unit."""
    folders = {room.split("/", 1)[1]: room for room in rooms if not room.startswith("include/")} | {"support": "tests/support"}
    used = set(untested)
    for test in sorted((tree / "tests/unit").rglob("test-*.c")):
        path = test.relative_to(tree)
        folder = str(path.parent.relative_to("tests/unit"))
        if folder not in folders:
            yield f"{path}:1: tests/unit/{folder} is the folder of no room"
        used.add(folders.get(folder))
    for room in rooms:
        if room not in used and any((tree / room).glob("*.c")):
            yield f"{room}: tests/unit/{room.split('/', 1)[1]} has no test of this room"


def find_calls(tree):
    """{file: {file that it calls or whose header it needs: (file, line, name)}} of the .c files of lib and daemon."""
    code = {str(p.relative_to(tree)): COMMENT.sub(lambda match: "\n" * match[0].count("\n"), p.read_text(encoding="utf-8"))
            for top in ("lib", "daemon") for p in (tree / top).rglob("*.c")}
    home = {match[1]: path for path, text in sorted(code.items()) for match in DEFINITION.finditer(text) if match[1] != "main"}
    calls = {path: {} for path in code}
    for path, text in code.items():
        for number, line in enumerate(text.splitlines(), 1):
            for match in NAME.finditer(line):
                if home.get(match[1], path) != path:
                    calls[path].setdefault(home[match[1]], (path, number, match[1]))
    for path, header in ((path, header) for path in calls for header in (path, path[:-1] + "h")):
        if not path.startswith(tuple(f"{room}/" for room in ONE_WAY)) or not (tree / header).is_file():
            continue
        for number, line in enumerate((tree / header).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            included = match and find(tree, tree / header, match[1] or match[2])
            other = str(included.with_suffix(".c")) if included else path
            if other in calls and other != path:
                calls[path].setdefault(other, (header, number, included.name))
    return calls


def find_reach(calls):
    """{file: the files that it calls, directly or through others}"""
    reach = {}
    for path in calls:
        seen, left = set(), [path]
        while left:
            new = set(calls[left.pop()]) - seen
            seen |= new
            left += new
        reach[path] = seen
    return reach


def check_circles(tree):
    """The calls within each circle of files."""
    calls = find_calls(tree)
    reach = find_reach(calls)
    found = {path: {other for other in reach[path] if path in reach[other]} for path in calls if path in reach[path]}
    for path, circle in sorted(found.items()):
        for other, (where, number, name) in sorted(calls[path].items()):
            if other in circle:
                yield f"{where}:{number}: {name} closes a circle: {other} needs {Path(path).name} back, itself or through others"


def check(tree, rooms, untested):
    """The faults of include lines, folders of tests and calls, as FILE:LINE: fault."""
    yield from check_table(rooms)
    tree = tree.resolve()
    yield from check_tests(tree, rooms, untested)
    yield from check_circles(tree)
    used = {room: set() for room in rooms}
    for source in sorted(p for top in ("include", "lib", "daemon") for p in (tree / top).rglob("*.[ch]")):
        path = source.relative_to(tree)
        room = str(path.parent)
        if room not in rooms:
            yield f"{path}:1: {room} is no room of the table in tests/rooms.py"
            continue
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            included = match and find(tree, source, match[1] or match[2])
            if not included:
                continue
            other = str(included.parent)
            used[room].add(other)
            if other not in (room, "include/asym") and other not in rooms[room].split():
                yield f"{path}:{number}: {room} may not include {other} ({included})"
    for room, may in rooms.items():
        for other in may.split():
            if other not in used[room]:
                yield f"rooms.py: {room} includes nothing of {other} any more: take it out of its row"


def test():
    """Checks that each fault is found, with its file and line. This tree, which has none, shows that nothing else is."""
    rooms = {"include/asym": "lib/low", "lib/low": "", "lib/bare": "", "lib/high": "lib/low lib/bare", "lib/sim": ""}
    files = {"include/asym/a.h": '#include "low/low.h"\n', "lib/low/low.h": "#include <asym/a.h>\n", "lib/attic/x.c": "\n",
             "lib/low/low.c": '\n#include "high/high.h"\n', "lib/bare/b.c": "", "tests/unit/attic/test-x.c": "",
             "lib/high/high.h": "", "lib/high/high.c": '#include "low/low.h"\nint f(void)\n{\n    return g();\n}\n',
             "lib/high/g.c": "int g(void)\n{\n    return h();\n}\n",
             "lib/high/h.c": '/* g() */\nint h(void)\n{\n    return puts("g") + a.g + a->g + (struct g){0}.g + f();\n}\n',
             "lib/sim/a.h": '\n#include "sim/b.h"\n', "lib/sim/b.h": "", "lib/sim/a.c": "", "lib/sim/b.c": '#include "sim/a.h"\n',
             **{f"tests/unit/{room}/test-a.c": "" for room in ("low", "high", "sim", "support")}}
    wanted = ["the row of include/asym names lib/low, whose row does not stand above it",
              "test-x.c:1: tests/unit/attic is the folder of no room", "lib/bare: tests/unit/bare has no test of this room",
              "lib/high/g.c:3: h closes a circle", "lib/high/h.c:4: f closes a circle",
              "lib/high/high.c:4: g closes a circle: lib/high/g.c needs high.c back",
              "lib/sim/a.h:2: b.h closes a circle: lib/sim/b.c needs a.c back", "lib/sim/b.c:1: a.h closes a circle",
              "lib/attic/x.c:1: lib/attic is no room",
              "lib/low/low.c:2: lib/low may not include lib/high", "lib/high includes nothing of lib/bare any more"]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        said = list(check(Path(folder), rooms, ()))
    if len(said) != len(wanted) or any(w not in s for w, s in zip(wanted, said)):
        sys.exit(f"rooms.py --test: expected {wanted}, found {said}")


def main():
    if sys.argv[1:] == ["--test"]:
        test()
        return
    faults = list(check(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parent.parent, ROOMS,
                        UNTESTED))
    print("\n".join(faults) or f"rooms: {len(ROOMS)}, each includes only what its row names, and has its tests;"
          " no file calls one that calls it back")
    sys.exit(1 if faults else 0)


main()
