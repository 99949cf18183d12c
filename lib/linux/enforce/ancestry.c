/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/enforce/ancestry.h"

#include <unistd.h>

#include "base/macro.h"
#include "linux/sys/thread.h"

static struct asym_ancestry_process look_up(int32_t pid)
{
    struct asym_stat stat;
    struct asym_ancestry_process p = {.pid = pid, .gone = true};
    if (asym_thread_get_stat(pid, pid, &stat) < 0)
        return p;
    const pid_t session = getsid(pid);
    p.gone = false;
    p.parent = stat.ppid;
    p.session = session > 0 ? session : 0;
    p.start = stat.start;
    return p;
}

static struct asym_ancestry_process find(struct asym_ancestry *ancestry, int32_t pid)
{
    struct asym_ancestry_process *slot = &ancestry->slots[(uint32_t)pid % ASYM_ANCESTRY_SLOTS];
    if (slot->pid != pid)
        *slot = look_up(pid);
    return *slot;
}

/* Follows the chain of parents while it stays in the session of the process. It stops at the session leader. */
struct session_walk {
    int32_t session;
    bool within, left;
    uint64_t oldest;
};

static void step(struct session_walk *walk, const struct asym_ancestry_process *p)
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
    struct asym_ancestry_process p = find(ancestry, pid);
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
    const struct asym_ancestry_process leader = find(ancestry, walk.session);
    const bool led = !leader.gone && leader.session == walk.session;
    ret->session = (struct asym_ancestor){
        .number = walk.session, .start = led ? leader.start : 0, .oldest = walk.oldest};
}
