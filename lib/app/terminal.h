/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The terminal that a program prints on. */
#ifndef ASYM_APP_TERMINAL_H
#define ASYM_APP_TERMINAL_H

#include <stdio.h>

#include "report/columns.h"

/**
 * The terminal behind out, for reports. Colour: out is a terminal, and the user did not set NO_COLOR. The width: what the user
 * set in COLUMNS; else that of the terminal; else ASYM_COLUMNS_DEFAULT.
 */
struct asym_terminal asym_terminal_of(FILE *out);

/** Print a message and a newline: wrapped if out is a terminal, else as one line. Further lines begin at column 2. */
void asym_terminal_message(FILE *out, const char *text);

/** Returns the width by the value of COLUMNS (NULL: not set) and the terminal's own columns (0: no terminal). */
size_t asym_terminal_columns(const char *variable, unsigned columns);

#endif
