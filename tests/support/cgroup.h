/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A cpuset for one test, in cgroup version 1 or 2, as the machine has it. If it cannot be made, the test fails with the reason.
 */
#ifndef ASYM_TESTS_SUPPORT_CGROUP_H
#define ASYM_TESTS_SUPPORT_CGROUP_H

#include <sys/types.h>

/** Make the cpuset. It also removes the cpusets of earlier tests that were killed. */
void asym_cpuset_make(const char *cpus);
void asym_cpuset_set(const char *cpus);
void asym_cpuset_join(pid_t pid);

/** Remove the cpuset. The test has killed its processes before. */
void asym_cpuset_remove(void);

#endif
