/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the tests of attacks share. Everything ends with an assertion on failure; asym_attack_become_stranger ends the process. */
#ifndef ASYM_TESTS_ATTACK_H
#define ASYM_TESTS_ATTACK_H

#include <stdbool.h>
#include <sys/types.h>

/** In a child: end with the parent and after so many seconds, and become another user than the daemon where the parent is root. */
void asym_attack_become_stranger(unsigned seconds);

/** The same, but stay root. */
void asym_attack_begin(unsigned seconds);

/** CPU time of a process and of its children, living ones and others, in seconds. */
double asym_attack_cpu(pid_t pid);

/** Share of one CPU that it takes from now on for so many seconds, 0..n. */
double asym_attack_share(pid_t pid, double seconds);

/** SIGTERM; seconds until it has ended, or -1 where it takes longer than most; then it is killed, and left to be waited for. */
double asym_attack_stop(pid_t pid, double most);

/** In a thread or process of the attack: use the CPU for so many microseconds. */
void asym_attack_run(long us);

#endif
