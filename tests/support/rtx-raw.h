/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Direct use of asymd's directory (include/asym/rtx.h) without the library, for attacks and random loops in processes that a test
 * forks. No function blocks without a limit or asserts.
 */
#ifndef ASYM_TESTS_SUPPORT_RTX_RAW_H
#define ASYM_TESTS_SUPPORT_RTX_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Write the path of the directory that the table has for a user. Returns whether it has one. dir: that of all users. */
bool asym_raw_home(const char *dir, uid_t uid, char *ret, size_t size);

/** Write the path of a file for process pid in the directory of this user. */
void asym_raw_path(const char *dir, pid_t pid, uint64_t number, char *ret, size_t size);

/** Create that file, empty, and open it for reading and writing. Returns its descriptor; -errno. */
int asym_raw_create(const char *dir, pid_t pid, uint64_t number);

/** Announce the file to asymd. Returns 0; -errno. */
int asym_raw_announce(int file);

/** Write a page of one slot that reports a serial phase of thread tid. Returns 0; -errno. */
int asym_raw_fill(int file, pid_t tid, uint32_t notify_min_usec);

/** Set whether the page's thread is in a serial phase, without a wakeup. Returns 0; -errno. */
int asym_raw_set_phase(int file, int is_serial);

/** Wake asymd. Returns 0; -errno. */
int asym_raw_wake(int file);

/** Returns the milliseconds of CLOCK_MONOTONIC. */
long long asym_raw_ms(void);

#endif
