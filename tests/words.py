#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""words.py [FILE...]: flags words that a reader has to decode. Default: every text that git tracks. --test: tests itself.

A row is a pattern and what to say instead. The rows are few, and each one is a fault in every comment, message and document.
Phrases are found across line ends, too. The checker skips the code of C files, so that it does not read names.
"""
import re
import subprocess
import sys
from pathlib import Path

ROWS = [
    (r"somebody|someone else's doing", "name the actor: the kernel, asymd, the program, the user, another process"),
    (r"nobody|anybody", "no process, no thread, no user"),
    (r"whoever", "the thread that, the program that, the caller"),
    (r"what is asked for", "name it: the option, the policy, the requested CPUs"),
    (r"what there is", "name it"),
    (r"todo|fixme", "do it, or say in a document what is missing"),
]
# Openings of comments and sentences in C that have no finite verb, or no subject at the front.
OPENINGS = [
    (r"(?:^|[.:;] |/\*\*?<? | \* |# |// )(Of(?: |\n)[a-z]+)", "begin with the subject: 'the last part of a path', not 'of a path the last part'"),
    (r"/\*\*?<?(?: |\n \* )(What|Who)\b(?!-)", "name the thing, or write a sentence with a subject and a verb"),
    # A subordinate clause alone: no comma separates it from a main clause, and it is no question.
    (r"(?:/\*\*?<?(?: |\n +\* )|[.;!?](?: |\n +\* ))"
     r"((?:As|How|When|Where|Whether|Which|Whose|Why)\b(?:[^.,;:?\"*]|\.(?=\w)|\n +\*(?!/))*)(?=[.;:](?!\w)|\*/)",
     "write a sentence with a subject and a verb, or a comma behind the clause"),
    # In JSON and in a table of keys the word stands alone.
    (r'"[^"\n]*[ (](MP|HP|SP)[ ,:;.)][^"\n]*"', "mildly parallel, highly parallel, serial phase"),
]
# A phrase may go on in the next line, behind that line's comment mark.
GAP = r"[\s*#/]+"
PATTERNS = [(re.compile(rf"\b({pattern.replace(' ', GAP)})\b", re.IGNORECASE), say) for pattern, say in ROWS]
OPENING_PATTERNS = [(re.compile(pattern, re.MULTILINE), say) for pattern, say in OPENINGS]
# The kernel's user 65534 has the name "nobody".
USER = re.compile(rf"\buser{GAP}nobody\b|\"nobody\"|'nobody'")
# This file names the words. Licences, recorded data and generated documents stay as they are.
EXEMPT = re.compile(r"(^|/)(LICENSE|words\.py)$|^tests/data/|^docs/(figures|data)/|\.svg$")
C = (".c", ".h", ".def")
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def blank(text):
    """Spaces in place of the text, with its lines kept."""
    return re.sub(r"[^\n]", " ", text)


def prose(path, text):
    """The text with the code of a C file blanked, its lines where they were."""
    if path.suffix not in C:
        return text
    kept, end = [], 0
    for match in STRING_OR_COMMENT.finditer(text):
        kept += blank(text[end:match.start()]), match[0]
        end = match.end()
    return "".join(kept) + blank(text[end:])


def check(path, text):
    """The faults of one text, by line, as FILE:LINE: what to say instead."""
    patterns = PATTERNS + (OPENING_PATTERNS if path.suffix in C else [])
    text = USER.sub(lambda match: blank(match[0]), prose(path, text))
    found = [(text.count("\n", 0, match.start(1)) + 1, " ".join(match[1].split()), say)
             for pattern, say in patterns for match in pattern.finditer(text)]
    return [f"{path}:{number}: '{words}': say {say}" for number, words, say in sorted(found)]


def test():
    """Checks that each kind of fault is found in its line. This tree, which has none, shows that nothing else is."""
    cases = {"a.md": ("One.\nSomebody has it.\nThe superuser nobody knows.\nIt does what\nis asked for.\n", [2, 3, 4]),
             "b.c": ("".join(f"/* {word} it goes. */\n" for word in ("As", "How", "Whether", "Which", "Whose", "Why"))
                     + 'say("class MP.", "class HP.");\n/* fixme, anybody, what is asked for */\n', [1, 2, 3, 4, 5, 6, 7, 7, 8, 8, 8]),
             "a.h": ("/** TODO */\nint todo;\nint a; /**< What it is. */\n/**\n * Who calls.\n */\n", [1, 3, 5]),
             "a.c": ('int nobody;\n/* nobody\n * whoever, somebody */\nsay("somebody"); // what there is\nsay("a thread in class SP.");\n'
                     "/* Of two CPUs one. */\n/* The first\n * of two. Of three\n * none. */\n/* Where a key moves. */\n"
                     "/* When it is full, it refuses. When\n * it is full. As lib/a.c does, it\n * goes on. */\n",
                     [2, 3, 3, 4, 4, 5, 6, 8, 10, 11])}
    for name, (text, lines) in cases.items():
        found = [int(fault.split(":")[1]) for fault in check(Path(name), text)]
        if found != lines:
            sys.exit(f"words.py --test: in {text!r} expected lines {lines}, found {found}")


def main():
    if sys.argv[1:] == ["--test"]:
        test()
        return
    top = Path(__file__).resolve().parent.parent
    names = sys.argv[1:] or subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=top, capture_output=True,
                                           text=True, check=True).stdout.splitlines()
    faults = []
    for name in names:
        if EXEMPT.search(name) or not (top / name).is_file():
            continue
        try:
            faults += check(Path(name), (top / name).read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
    print("\n".join(faults) or "words: clean")
    sys.exit(1 if faults else 0)


main()
