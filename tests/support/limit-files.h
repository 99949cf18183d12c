/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ASYM_TESTS_SUPPORT_LIMIT_FILES_H
#define ASYM_TESTS_SUPPORT_LIMIT_FILES_H

#include <sys/resource.h>

#include "support/test.h"

/** Limit the size of files: the kernel writes a part and refuses the rest, as on a full file system. Ignore SIGXFSZ before. */
static inline void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/** Limit the numbers of new descriptors; RLIM_INFINITY: to what the kernel allows. Returns the limit before. */
static inline rlim_t limit_descriptors(rlim_t n)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = ASYM_MIN(n, limit.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

#endif
