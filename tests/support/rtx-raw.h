/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What a program may do at asymd's socket (include/asym/rtx.h) that is not the library's: for attacks and random loops, in
 * processes that a test forks. Nothing here blocks or asserts.
 */
#ifndef ASYM_TESTS_RTX_RAW_H
#define ASYM_TESTS_RTX_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** A connection that does not block; -errno. */
int asym_raw_connect(const char *path);

/** One message with so many descriptors, at most 253. 0; -errno. */
int asym_raw_send(int fd, const void *message, size_t size, const int *fds, size_t n);

/** What was handed out on the connection, waited for for so long. Whether there was something. */
bool asym_raw_receive(int fd, int wait_ms, int *ret_memfd, int *ret_event);

/** The other side has closed the connection; waits for so long. */
bool asym_raw_is_closed(int fd, int wait_ms);

/** Fill a page of one slot, that says that thread tid runs a serial phase, and wake asymd. 0; -errno. */
int asym_raw_fill(int memfd, int event, pid_t tid);

/** A TCP connection with a full send buffer, whose last close lingers for 600 s. -1: failed. */
int asym_raw_lingering(void);

/** Become this user, and no other any more. 0; -errno. */
int asym_raw_become(uid_t uid);

/** Milliseconds of CLOCK_MONOTONIC. */
long long asym_raw_ms(void);

#endif
