/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The table of jobs: the process groups that a shell's job control makes, such as make and all its compilers. A process group
 * keeps its number while any process is in it, even if its leader has ended; the kernel gives the number to no other process.
 */
#ifndef ASYM_LINUX_OBSERVE_JOBS_H
#define ASYM_LINUX_OBSERVE_JOBS_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "base/hash.h"

/** The counts of one sample for an application of several processes: a job or a cgroup. */
struct asym_members {
    uint32_t n_procs, n_threads; /* known ones, listed or not */
    uint32_t app;                /* its application in the snapshot with number sample */
    uint64_t sample;
    double busiest; /* the highest runnable count of its processes */
};

struct asym_job {
    int32_t pgrp;
    uint64_t start;           /* of its leader, also when that has ended since; 0: asymd has not seen it */
    char comm[ASYM_COMM_LEN]; /* of its leader; of its oldest process if asymd has not seen the leader */
    uint64_t oldest;          /* start of that process */
    struct asym_members members;
};

/** All zero: empty. */
struct asym_jobs {
    struct asym_job *jobs;
    uint32_t n;
    size_t capacity;
    struct asym_hash by_pgrp;
};

void asym_jobs_done(struct asym_jobs *j);

/** Returns the number of the job with that process group, >= 1, adding it if need be; 0 when memory runs out. */
uint32_t asym_jobs_find(struct asym_jobs *j, int32_t pgrp);

/** Begin a sample: drop the jobs in which the last one has counted no process, and set all counts to 0. Numbers become invalid. */
void asym_jobs_begin(struct asym_jobs *j);

#endif
