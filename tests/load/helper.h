/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What load-helper answers in its roles "tell" and "tell-reader". */
#ifndef ASYM_TEST_LOAD_HELPER_H
#define ASYM_TEST_LOAD_HELPER_H

#include <stdbool.h>
#include <stdint.h>

struct test_helper_state {
    uint64_t capabilities;
    uint32_t uid;
    bool no_new_privs, dumpable;
    int death_signal, policy, n_fds;
    int read_error, write_error; /* errno of opening a file so, or 0 */
    int send_error;              /* errno of sending through the channel of orders */
};

/** Role "read": processes with these numbers. */
enum { TEST_READER_HANGS = 1001, TEST_READER_ENDS, TEST_READER_LIES, TEST_READER_ENDS_THEN };

#endif
