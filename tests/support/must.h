/* SPDX-License-Identifier: GPL-2.0-or-later */
/** An assertion for processes that a test forks. On failure it prints the condition and ends the process with status 1. */
#ifndef ASYM_TESTS_SUPPORT_MUST_H
#define ASYM_TESTS_SUPPORT_MUST_H

#include <stdio.h>
#include <unistd.h>

#define MUST(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#endif
