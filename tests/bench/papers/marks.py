# SPDX-License-Identifier: GPL-2.0-or-later
"""Blocks of generated pages: the lines between `<!-- NAME: begin -->` and `<!-- NAME: end DIGEST -->`. The digest is that of the
lines, so that a test sees a block that was edited by hand. Text outside the blocks is written by hand."""
import hashlib
import re
import textwrap

WIDTH = 132


def digest(block):
    return hashlib.sha256(block.encode()).hexdigest()[:12]


def found(text, name):
    """Returns the match of a block: its lines, and its digest as it was written (None: an old block without one)."""
    return re.search(rf"<!-- {re.escape(name)}: begin -->\n(.*?)\n<!-- {re.escape(name)}: end(?: (\w+))? -->", text, re.S)


def wrapped(lines):
    """Returns the lines with those of prose ended at column WIDTH, and continued behind two spaces."""
    return "\n".join(part for line in lines.split("\n") for part in (
        [line] if len(line) <= WIDTH or line.startswith("|") else
        textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)))


def unwrapped(text):
    return re.sub(r"\n  (?=\S)", " ", text)


def block(text, name):
    """Returns the lines of a block; "": the page has no such block."""
    match = found(text, name)
    return match[1] if match else ""


def put(text, name, lines):
    """Returns the page with this block in the place of the old one, or at its end."""
    marked = f"<!-- {name}: begin -->\n{lines}\n<!-- {name}: end {digest(lines)} -->"
    match = found(text, name)
    if match:
        return text[:match.start()] + marked + text[match.end():]
    return f"{text}\n{marked}\n"


def names(text):
    return re.findall(r"^<!-- (.+?): begin -->$", text, re.M)


def edited(text):
    """Returns the names of the blocks whose lines are not those that their generator wrote."""
    return [name for name in names(text) if not (match := found(text, name)) or match[2] != digest(match[1])]


def tables(lines):
    """Returns the rows of the tables of a block, each a list of cells; without the lines that divide the head from the body."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines.splitlines() if line.startswith("|")]
    return [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
