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
    """The checker finds a word in prose, in a comment and in a message; it accepts names and the user nobody."""
    def expect(name, text, *lines):
        found = [int(fault.split(":")[1]) for fault in check(Path(name), text)]
        if found != list(lines):
            sys.exit(f"words.py --test: in {text!r} expected lines {lines}, found {found}")

    expect("a.md", "One.\nSomebody has it.\n", 2)
    expect("a.md", "The kernel has it.\n")
    expect("a.h", "/** TODO */\nint todo;\n", 1)
    expect("a.c", "int nobody;\n/* nobody\n * whoever */\n", 2, 3)
    expect("a.c", 'say("somebody");\nsay("the user");\nint a; // what there is\n', 1, 3)
    expect("a.c", "int nobody_has_it(void);\nstart(what_there_is);\n")
    expect("a.c", 'say("a thread in class SP, alone");\nset("class", "SP");\n/* The class HP. */\n', 1)
    expect("a.md", "It runs as the user nobody.\nThe user\nnobody has no files.\n")
    expect("a.c", '/* The user "nobody" (65534), and \'nobody\'. */\n/* user\n * nobody */\n')
    expect("a.md", "The user is gone.\nNobody, the user, came.\nThe superuser nobody knows.\n", 2, 3)
    expect("a.md", "It does what\nis asked for, and what\n\nthere is.\n", 1, 2)
    expect("a.c", "/* It prints what there\n * is. */\n", 1)
    expect("a.py", "# It prints what\n# there is.\nwhoever = 1\n", 1, 3)
    expect("a.c", "/* whoever, somebody */\n", 1, 1)
    expect("a.c", "/* Of two CPUs the fast one. */\n/* The first\n * of two. Of three\n * none. */\n", 1, 3)
    expect("a.md", "It has two. Of these one is fast.\n")
    expect("a.c", "/* What a thread has. */\n/** Who calls. */\nint a; /**< What it is. */\n", 1, 2, 3)
    expect("a.c", "/**\n * What a caller has.\n */\n/* The kernel knows what it has. What it has not: all. */\n", 2)
    expect("a.c", "/* Where a key moves. */\n/* Where permitted, it has priority. */\n", 1)
    expect("a.c", "/* When the page is full, asymd refuses. */\n/* When the page is full. */\n/* Which is it? */\n", 2)
    expect("a.c", "/**\n * How a thread\n * stands. It runs. Why it runs: a rule. As lib/a.c does, it\n * goes on. */\n", 2, 3)
    expect("a.c", "int a; /**< when it began */\n/* Whose CPU it is */\n/** As before Linux 6.16 */\n", 2, 3)
    expect("a.c", 'say("Asymd ends. Whether it\'s so. When it ends, all\\n"\n    "is well");\n', 1)


def main():
    if sys.argv[1:] == ["--test"]:
        test()
        return
    top = Path(__file__).resolve().parent.parent
    names = sys.argv[1:] or subprocess.run(["git", "ls-files"], cwd=top, capture_output=True, text=True,
                                           check=True).stdout.splitlines()
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
