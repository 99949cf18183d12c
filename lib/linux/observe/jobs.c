/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/jobs.h"

#include <stdlib.h>

void asym_jobs_done(struct asym_jobs *j)
{
    free(j->jobs);
    asym_hash_done(&j->by_pgrp);
    *j = (struct asym_jobs){0};
}

uint32_t asym_jobs_find(struct asym_jobs *j, int32_t pgrp)
{
    const uint32_t hash = asym_hash_of_id(pgrp);
    ASYM_HASH_FOREACH (i, &j->by_pgrp, hash)
        if (j->jobs[i].pgrp == pgrp)
            return (uint32_t)i + 1;
    if (asym_hash_reserve(&j->by_pgrp, 1) < 0)
        return 0;
    if (j->n == j->capacity) {
        const size_t larger = j->capacity ? j->capacity * 2 : 64;
        struct asym_job *grown = reallocarray(j->jobs, larger, sizeof *grown);
        if (!grown)
            return 0;
        j->jobs = grown;
        j->capacity = larger;
    }
    asym_hash_add(&j->by_pgrp, hash, j->n);
    j->jobs[j->n++] = (struct asym_job){.pgrp = pgrp};
    return j->n;
}

static void drop_job(struct asym_jobs *j, uint32_t i)
{
    const uint32_t last = --j->n;
    asym_hash_remove(&j->by_pgrp, asym_hash_of_id(j->jobs[i].pgrp), i);
    if (i == last)
        return;
    asym_hash_renumber(&j->by_pgrp, asym_hash_of_id(j->jobs[last].pgrp), last, i);
    j->jobs[i] = j->jobs[last];
}

void asym_jobs_begin(struct asym_jobs *j)
{
    for (uint32_t i = j->n; i-- > 0;) {
        if (j->jobs[i].members.n_procs == 0)
            drop_job(j, i);
        else
            j->jobs[i].members.n_procs = j->jobs[i].members.n_threads = 0;
    }
}
