/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Writes texts into traces. */
#ifndef ASYM_EXPERIMENT_TRACE_TEXT_H
#define ASYM_EXPERIMENT_TRACE_TEXT_H

#include <stdio.h>

/** Write a text of any bytes as a JSON string. */
void asym_trace_text(FILE *out, const char *text);

#endif
