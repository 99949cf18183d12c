/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A test in the place of the process that accepts connections (linux/rtx-link.h): what it reports, and what it was ordered.
 * Everything ends with an assertion on failure.
 */
#ifndef ASYM_TESTS_FAKE_ACCEPTOR_H
#define ASYM_TESTS_FAKE_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "linux/rtx-link.h"

/** A connection that the test makes up. */
struct fake_connection {
    uint32_t id;
    int memfd, event; /* of the test; -1: it was not let in */
    bool closed;      /* asymd has ordered that */
};

/** One at a time; the server owns it. It answers when it is asked whether it is there. */
struct asym_rtx_link *fake_acceptor_new(void);

/** The next calls of start fail, or no longer. */
void fake_acceptor_fail(int error);
/** It does not answer any more, takes no orders (-EAGAIN), or has ended. */
void fake_acceptor_hang(void);
void fake_acceptor_clog(void);
void fake_acceptor_end(void);
/** How often it was started, and ended by order. */
unsigned fake_acceptor_started(void);
unsigned fake_acceptor_killed(void);
/** Descriptors that it was given to close. */
unsigned fake_acceptor_given(void);

/** Report; any bytes. */
void fake_acceptor_report(const void *report, size_t size);
/** A process has connected. The server is to be called then; what comes of it is in *ret, which stays where it is. */
void fake_acceptor_come(struct fake_connection *ret, pid_t pid, uid_t uid, bool is_certain);
/** The program has ended the connection, or has sent something. */
void fake_acceptor_go(const struct fake_connection *c);
void fake_acceptor_breach(const struct fake_connection *c);
/** The test's descriptors are closed, and the connection is forgotten. */
void fake_connection_done(struct fake_connection *c);

#endif
