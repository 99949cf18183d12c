/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A cpuset of a test's own, made as this machine makes them (version 1 or 2). Fails in words where none can be made. */
#ifndef ASYM_TESTS_CGROUP_H
#define ASYM_TESTS_CGROUP_H

#include <sys/types.h>

void asym_cpuset_make(const char *cpus);
void asym_cpuset_set(const char *cpus);
void asym_cpuset_join(pid_t pid);

/** Its processes have been killed. */
void asym_cpuset_remove(void);

#endif
