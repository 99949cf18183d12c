/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * malloc and calloc that fail on request. A test compiles the files that allocate itself: it includes their system headers, this
 * header, and then these files; #undef malloc and calloc behind them.
 */
#ifndef ASYM_TESTS_SUPPORT_SCARCE_MEMORY_H
#define ASYM_TESTS_SUPPORT_SCARCE_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>

static long allocations_left = -1; /* below 0: no limit */

static bool is_refused(void)
{
    if (allocations_left > 0)
        allocations_left--;
    else if (allocations_left == 0)
        return true;
    return false;
}

__attribute__((unused)) static void *scarce_malloc(size_t size)
{
    return is_refused() ? NULL : malloc(size);
}

static void *scarce_calloc(size_t n, size_t size)
{
    return is_refused() ? NULL : calloc(n, size);
}

#define malloc(size)    scarce_malloc(size)
#define calloc(n, size) scarce_calloc(n, size)

#endif
