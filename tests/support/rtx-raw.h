/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Direct use of asymd's socket (include/asym/rtx.h) without the library, for attacks and random loops in processes that a test
 * forks. No function blocks without a limit or asserts.
 */
#ifndef ASYM_TESTS_SUPPORT_RTX_RAW_H
#define ASYM_TESTS_SUPPORT_RTX_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Returns a non-blocking connection; -errno. */
int asym_raw_connect(const char *path);

/** Send one message with n descriptors, at most 253. Returns 0; -errno. */
int asym_raw_send(int fd, const void *message, size_t size, const int *fds, size_t n);

/** Wait at most wait_ms for the descriptors that asymd hands out. Returns true if they came. */
bool asym_raw_receive(int fd, int wait_ms, int *ret_memfd, int *ret_event);

/** Wait at most wait_ms. Returns true if the other side has closed the connection. */
bool asym_raw_is_closed(int fd, int wait_ms);

/** Fill a page of one slot that reports a serial phase of thread tid, and wake asymd. Returns 0; -errno. */
int asym_raw_fill(int memfd, int event, pid_t tid);

/**
 * Let asynchronous I/O signal an eventfd: it adds one to the count, or leaves a full one, and wakes those who poll. Returns 0;
 * -errno.
 */
int asym_raw_post(int event);

/** Fill the count of an eventfd above what write(2) can: the kernel then reports an error to those who poll. Returns 0; -errno. */
int asym_raw_overfill(int event);

/** Returns a TCP connection with a full send buffer, whose last close(2) lingers for 600 s; -1 on failure. */
int asym_raw_lingering(void);

/**
 * Change to this user for good. Call it in a child of asym_process_fork: it still ends with its parent, although the kernel
 * clears PR_SET_PDEATHSIG. Returns 0; -errno.
 */
int asym_raw_become(uid_t uid);

/** Returns the milliseconds of CLOCK_MONOTONIC. */
long long asym_raw_ms(void);

#endif
