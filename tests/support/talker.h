/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A program that alternates serial and parallel phases on four threads (tests/load/talker.c, tests/omp/talker.c). A serial phase
 * takes 60 ms and a parallel one 20 ms, unless the test sets other times. All threads wait by spinning, so that the kernel alone
 * cannot detect the serial phases. The test counts the serial phases to which asymd reacts. A failure ends in an assertion.
 */
#ifndef ASYM_TESTS_SUPPORT_TALKER_H
#define ASYM_TESTS_SUPPORT_TALKER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct asym_talker {
    pid_t pid;
    FILE *said;
    int manager; /**< the manager's end of the sd_notify socket: the state and the status lines of asymd */
};

/**
 * Start command, NULL-terminated, for the asymd of this test, which the test starts afterwards. The function appends the
 * arguments of the program. It returns after the first serial phase. It sets NOTIFY_SOCKET, until asym_talker_end.
 */
struct asym_talker asym_talker_start(const char *const *command);

/** The same with so many workers beside the main thread, and phases of these milliseconds. */
struct asym_talker asym_talker_start_with(const char *const *command, const char *workers, const char *serial_ms,
                                          const char *parallel_ms);

/**
 * Wait until the asymd that was started last is ready, and skip the phases up to the first one that it answers. However long that
 * takes, the next phases are those of a program that asymd serves. Fails after ASYM_LIVE_PATIENCE.
 */
void asym_talker_await_answer(struct asym_talker *t);

/** The number of serial phases that the test evaluates. */
#define ASYM_TALKER_LAST 20

/** Wait until asymd is ready, and skip as many phases as it may need to know a program that it does not answer. */
void asym_talker_await_known(struct asym_talker *t);

/**
 * Returns whether the master gets CPUs for itself in at least so many of the next ASYM_TALKER_LAST serial phases. It counts until
 * the others cannot change that, and prints what it has counted. When the host took CPU time from them, it counts anew.
 */
bool asym_talker_answers(struct asym_talker *t, int least);

void asym_talker_end(struct asym_talker *t);

/** Stop asymd, which gives all threads of the program back what they had, and end the program. */
void asym_talker_stop(struct asym_talker *t, pid_t asymd);

#endif
