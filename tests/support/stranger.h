/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Processes of an ordinary user: user nobody if the tests run as root, else the user that runs them. They end with the test. */
#ifndef ASYM_TESTS_STRANGER_H
#define ASYM_TESTS_STRANGER_H

#include <sys/types.h>

/** The user that strangers are of. */
uid_t asym_stranger_uid(void);

/** A process that calls run(arg), for a minute at most. */
pid_t asym_stranger_start(void (*run)(void *arg), void *arg);

/** argv[0] of the build tree as a stranger, which need not be able to reach it. out: its standard output and error; -1: ours. */
pid_t asym_stranger_exec(const char *const *argv, int out);

#endif
