/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/enforce/ancestry.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/macro.h"
#include "base/pool.h"
#include "linux/sys/thread.h"

struct process {
    int32_t pid, parent, session;
    uint64_t start;
    bool gone;
};

struct asym_ancestry {
    struct asym_pool processes;
    struct asym_hash index; /* of processes, by pid */
};

static struct process look_up(int32_t pid)
{
    struct asym_stat stat;
    struct process p = {.pid = pid, .gone = true};
    if (asym_thread_get_stat(pid, pid, &stat) < 0)
        return p;
    const pid_t session = getsid(pid);
    return (struct process){.pid = pid, .parent = stat.ppid, .session = session > 0 ? session : 0, .start = stat.start};
}

/* If memory is short, the process is not cached, and is looked up again the next time. */
static struct process find(struct asym_ancestry *ancestry, int32_t pid)
{
    const uint32_t hash = asym_hash_of_id(pid);
    const size_t n = ancestry->index.n;
    struct process *known = ancestry->processes.items;
    ASYM_HASH_FOREACH (i, &ancestry->index, hash)
        if (known[i].pid == pid)
            return known[i];
    const struct process p = look_up(pid);
    if (n == ancestry->processes.capacity && !asym_pool_grow(&ancestry->processes, 2 * n + 64, sizeof p))
        return p;
    if (asym_hash_reserve(&ancestry->index, 1) < 0)
        return p;
    ((struct process *)ancestry->processes.items)[n] = p;
    asym_hash_add(&ancestry->index, hash, n);
    return p;
}

int asym_ancestry_new(struct asym_ancestry **ret_ancestry)
{
    struct asym_ancestry *ancestry = calloc(1, sizeof *ancestry);
    if (!ancestry)
        return -ENOMEM;
    *ret_ancestry = ancestry;
    return 0;
}

void asym_ancestry_free(struct asym_ancestry *ancestry)
{
    if (!ancestry)
        return;
    asym_pool_done(&ancestry->processes);
    asym_hash_done(&ancestry->index);
    free(ancestry);
}

void asym_ancestry_forget(struct asym_ancestry *ancestry)
{
    asym_hash_clear(&ancestry->index);
}

/* Follows the chain of parents while it stays in the session of the process. It stops at the session leader. */
struct session_walk {
    int32_t session;
    bool within, left;
    uint64_t oldest;
};

static void step(struct session_walk *walk, const struct process *p)
{
    if (!walk->within)
        return;
    walk->left = p->session != walk->session;
    walk->within = !walk->left && p->pid != walk->session;
    if (!walk->left)
        walk->oldest = ASYM_MIN(walk->oldest, p->start);
}

void asym_ancestry_of(struct asym_ancestry *ancestry, int32_t pid, struct asym_ancestors *ret)
{
    struct process p = find(ancestry, pid);
    struct session_walk walk = {.session = p.session, .within = p.session > 0, .oldest = UINT64_MAX};
    uint64_t oldest = UINT64_MAX;
    ret->n = 0;
    ret->session = (struct asym_ancestor){.number = 0};
    while (p.pid > 1 && !p.gone && ret->n < ASYM_LENGTH(ret->processes)) {
        ret->processes[ret->n++] = (struct asym_ancestor){.number = p.pid, .start = p.start, .oldest = oldest};
        oldest = ASYM_MIN(oldest, p.start);
        step(&walk, &p);
        if (p.parent <= 1)
            break;
        p = find(ancestry, p.parent);
    }
    const bool reached_init = ret->n > 0 && !p.gone && p.parent <= 1;
    if (!reached_init || !(walk.left || walk.within))
        return;
    const struct process leader = find(ancestry, walk.session);
    const bool led = !leader.gone && leader.session == walk.session;
    ret->session = (struct asym_ancestor){
        .number = walk.session, .start = led ? leader.start : 0, .oldest = walk.oldest};
}
