/* SPDX-License-Identifier: GPL-2.0-or-later */
/** For processes that a test forks: what does not hold is said, and ends the process with 1, which the test then sees. */
#ifndef ASYM_TESTS_MUST_H
#define ASYM_TESTS_MUST_H

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
