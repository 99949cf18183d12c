/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The report of load-helper in its role "tell". */
#ifndef ASYM_TESTS_LOAD_HELPER_H
#define ASYM_TESTS_LOAD_HELPER_H

#include <stdbool.h>
#include <stdint.h>

struct test_helper_state {
    uint64_t capabilities;
    uint32_t uid;
    bool no_new_privs, dumpable;
    int death_signal, policy, n_fds;
    int read_error, write_error; /* errno of opening a file for this, or 0 */
    int send_error;              /* errno of send(2) on the channel of orders */
};

/**
 * Without a role the helper answers by the pid. A helper that was killed over TEST_READER_STAYS leaves a
 * child, which becomes the test's if the test is a subreaper. The helper has not ended until the test has ended that child.
 */
enum { TEST_READER_HANGS = 1001, TEST_READER_ENDS, TEST_READER_LIES, TEST_READER_ENDS_THEN, TEST_READER_STAYS };

#endif
