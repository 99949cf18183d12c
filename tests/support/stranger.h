/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Processes of an ordinary user: the user nobody (65534) if root runs the tests, else the user who runs the tests. They end
 * with the test.
 */
#ifndef ASYM_TESTS_SUPPORT_STRANGER_H
#define ASYM_TESTS_SUPPORT_STRANGER_H

#include <sys/types.h>

/** Returns the user id of these processes. */
uid_t asym_stranger_uid(void);

/** Start a process that calls run(arg). It ends after a minute at most. */
pid_t asym_stranger_start(void (*run)(void *arg), void *arg);

/**
 * Start argv[0] of the build tree, even if that user cannot reach its path. out: its standard output and error; -1: the test's.
 */
pid_t asym_stranger_exec(const char *const *argv, int out);

#endif
