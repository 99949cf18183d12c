/* SPDX-License-Identifier: GPL-2.0-or-later */
/** CPU time, in microseconds, that the calling thread seems to have used beside its own. For tests that wrap clock_gettime(2). */
#ifndef ASYM_TESTS_PRETENDED_CPU_H
#define ASYM_TESTS_PRETENDED_CPU_H

#include <asym/types.h>

extern asym_usec asym_pretended_cpu;

#endif
