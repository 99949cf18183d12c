/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A test that replaces the process that accepts connections (linux/rtx/rtx-link.h). It sends reports and records the orders.
 * A failure ends in an assertion.
 */
#ifndef ASYM_TESTS_SUPPORT_FAKE_ACCEPTOR_H
#define ASYM_TESTS_SUPPORT_FAKE_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "linux/rtx/rtx-link.h"

/** A connection that the test makes up. */
struct fake_connection {
    uint32_t id;
    int memfd, event; /* the test's descriptors; -1: the connection was refused */
    unsigned held;    /* descriptors that the acceptor has got for it before the order to close it */
    bool closed;      /* asymd has ordered to close it */
};

/** Create the acceptor. The server owns it. There may be only one at a time. It answers requests for a sign of life. */
struct asym_rtxd_link *fake_acceptor_new(void);

/** Make the next calls of start fail with error; 0: let them succeed. */
void fake_acceptor_fail(int error);
/** The acceptor stops answering, runnable or asleep; refuses orders with -EAGAIN, or no longer; ends. */
void fake_acceptor_hang(bool runnable);
void fake_acceptor_clog(bool clogged);
void fake_acceptor_end(void);
/** Refuse orders with descriptors (-EAGAIN), or no longer, also after the next start. */
void fake_acceptor_clog_files(bool clogged);
/** Return how often it was started, and how often it was ended by order. */
unsigned fake_acceptor_started(void);
unsigned fake_acceptor_killed(void);
/** Returns the number of descriptors that it got to close. */
unsigned fake_acceptor_given(void);
/** Returns the id of the last ping. */
uint32_t fake_acceptor_ping(void);

/** Send a report of any bytes. */
void fake_acceptor_report(const void *report, size_t size);
/** Answer the ping of this id. The acceptor does that itself unless it hangs. */
void fake_acceptor_answer(uint32_t ping);
/** Report that a process has connected. Call the server next: it fills *ret, which must not move. */
void fake_acceptor_come(struct fake_connection *ret, pid_t pid, uid_t uid, bool is_certain);
/** Report that the program has ended the connection, or has sent data. */
void fake_acceptor_go(const struct fake_connection *c);
void fake_acceptor_breach(const struct fake_connection *c);
/** Close the test's descriptors and drop the connection. */
void fake_connection_done(struct fake_connection *c);

#endif
