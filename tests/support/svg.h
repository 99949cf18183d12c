/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Checks the figures that asymctl draws. */
#ifndef ASYM_TESTS_SUPPORT_SVG_H
#define ASYM_TESTS_SUPPORT_SVG_H

/**
 * Check a file with Python's XML parser: no text leaves the page or meets another one, and the timeline is busy for at least
 * that many pixels of all rows. Returns the exit status of the check.
 */
int asym_svg_check(const char *name, unsigned busy);

/** The text of the file; the caller frees it. Asserts. */
char *asym_svg_text(const char *name);

#endif
