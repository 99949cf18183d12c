/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The applications that are followed, and the kernel's places, which users share. */
#include "linux/observe/bpf-internal.h"

#include <errno.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/macro.h"
#include "linux/observe/proc-owner.h"

/* One that no snapshot has listed for so long is followed no more, so that a long list of sleepers keeps no place. */
#define FORGOTTEN_AFTER (60 * ASYM_SEC)

/* Processes that one snapshot may begin to follow, and as many that it may leave. Each takes 70 us in the kernel. */
#define ORDERS 16

/* CPU time that the answers to the programs of a user may use at once, microseconds: some 100 answers. */
#define BURST (20 * ASYM_MSEC)

/* The number of an application is as scarce as so many places of threads. */
#define NUMBER_IN_THREADS (ASYM_PHASES_THREADS / ASYM_PHASES_APPS)

uint32_t asym_bpf_number(const struct asym_source *source, const struct asym_taskid *id)
{
    const struct asym_bpf *b = asym_bpf_of(source);
    ASYM_HASH_FOREACH (i, &b->app_index, asym_hash_of_u64(id->start ^ (uint32_t)id->tgid))
        if (asym_taskid_equal(&b->apps[i].id, id))
            return (uint32_t)i + 1;
    return 0;
}

struct asym_bpf_proc *asym_bpf_proc_of(const struct asym_bpf *b, int32_t tgid)
{
    ASYM_HASH_FOREACH (i, &b->proc_index, asym_hash_of_id(tgid))
        if (b->procs[i].id.tgid == tgid)
            return &b->procs[i];
    return NULL;
}

/* Returns the index of the user. There are more entries than applications, so one is free. */
static uint32_t user_of(struct asym_bpf *b, uint32_t uid)
{
    uint32_t unused = b->users_end;
    for (uint32_t i = b->users_end; i-- > 0;) {
        if (b->users[i].uid == uid)
            return i;
        if (b->users[i].n_apps == 0)
            unused = i;
    }
    b->users_end = ASYM_MAX(b->users_end, unused + 1);
    b->users[unused] = (struct asym_bpf_user){
        .uid = uid, .answers = asym_token_bucket_full(b->cpu_share, (double)BURST, asym_clock_now())};
    return unused;
}

/* Returns whether its number is taken. */
static bool is_used(const struct asym_bpf_app *app)
{
    return app->n_procs > 0 || app->rests_until > 0;
}

static uint32_t add_app(struct asym_bpf *b, const struct asym_taskid *id, uint32_t user)
{
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        if (is_used(&b->apps[i]))
            continue;
        if (asym_hash_reserve(&b->app_index, 1) < 0)
            return 0;
        b->apps[i] = (struct asym_bpf_app){.id = *id, .user = user};
        b->apps_end = ASYM_MAX(b->apps_end, i + 1);
        asym_hash_add(&b->app_index, asym_hash_of_u64(id->start ^ (uint32_t)id->tgid), i);
        b->users[user].n_apps++;
        b->n_apps++;
        return i + 1;
    }
    return 0;
}

static void drop_app(struct asym_bpf *b, uint32_t number)
{
    struct asym_bpf_app *app = &b->apps[number - 1];
    asym_hash_remove(&b->app_index, asym_hash_of_u64(app->id.start ^ (uint32_t)app->id.tgid), number - 1);
    b->users[app->user].n_apps--;
    b->n_apps--;
    *app = (struct asym_bpf_app){.n_procs = 0};
}

/* One of the application's processes is in it no more. */
static void leave_app(struct asym_bpf *b, uint32_t number)
{
    if (--b->apps[number - 1].n_procs == 0 && b->apps[number - 1].rests_until == 0)
        drop_app(b, number);
}

/* No thread of it is left, and none will come. */
static bool has_ended(const struct asym_bpf *b, uint32_t number)
{
    return asym_phases_threads(b->kernel, number) == 0 && !asym_phases_misses(b->kernel, number);
}

/* Where the kernel cannot now, the process stays until the next snapshot: its threads still have the application's number. */
static void leave(struct asym_bpf *b, size_t i)
{
    if (!has_ended(b, b->procs[i].app) && asym_phases_unfollow(b->kernel, b->procs[i].id.tgid) < 0)
        return;
    const size_t last = --b->n_procs;
    leave_app(b, b->procs[i].app);
    asym_hash_remove(&b->proc_index, asym_hash_of_id(b->procs[i].id.tgid), i);
    if (i != last) {
        asym_hash_renumber(&b->proc_index, asym_hash_of_id(b->procs[last].id.tgid), last, i);
        b->procs[i] = b->procs[last];
    }
}

/* Follows the process, or moves it to the application. Returns 0; -errno. */
static int follow(struct asym_bpf *b, const struct asym_taskid *id, uint32_t app, asym_usec now)
{
    struct asym_bpf_proc *proc = asym_bpf_proc_of(b, id->tgid);
    if (!proc && (asym_grow(&b->procs, b->n_procs, &b->procs_capacity, sizeof *b->procs) < 0 ||
                  asym_hash_reserve(&b->proc_index, 1) < 0))
        return -ENOMEM;
    const int r = asym_phases_follow(b->kernel, id->tgid, app);
    if (r < 0 && proc)
        proc->is_counted = false; /* the kernel follows it no more */
    if (r < 0)
        return r;
    if (!proc) {
        proc = &b->procs[b->n_procs];
        proc->app = 0;
        asym_hash_add(&b->proc_index, asym_hash_of_id(id->tgid), b->n_procs++);
    }
    b->apps[app - 1].n_procs++;
    if (proc->app != 0)
        leave_app(b, proc->app);
    *proc = (struct asym_bpf_proc){.id = *id, .app = app, .listed = now};
    return 0;
}

/* A thread that asymd does not steer needs no measure: the kernel's programs cost it time at each switch. */
static bool is_steered(const struct asym_proc *proc)
{
    return !(proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_SELF | ASYM_PROC_FOREIGN_NS | ASYM_PROC_OUTSIDE)) &&
           proc->rule != ASYM_RULE_IGNORE && proc->rule != ASYM_RULE_UNLISTED;
}

/* Counts what each user has. Returns the index of the one who has most. */
static uint32_t count_places(struct asym_bpf *b)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < b->users_end; i++)
        b->users[i].places = 0;
    for (uint32_t i = 0; i < b->apps_end; i++) {
        struct asym_bpf_user *user = &b->users[b->apps[i].user];
        if (is_used(&b->apps[i]))
            user->places += NUMBER_IN_THREADS + asym_phases_threads(b->kernel, i + 1);
        if (user->places > b->users[most].places)
            most = b->apps[i].user;
    }
    return most;
}

/* Returns the number of the user's largest application. */
static uint32_t largest_of(const struct asym_bpf *b, uint32_t user)
{
    uint32_t largest = 0, most = 0;
    for (uint32_t i = 0; i < b->apps_end; i++) {
        if (!is_used(&b->apps[i]) || b->apps[i].user != user || asym_phases_threads(b->kernel, i + 1) < most)
            continue;
        largest = i + 1;
        most = asym_phases_threads(b->kernel, largest);
    }
    return largest;
}

/* Returns whether the kernel has a place for each of n threads that come to the application. number 0: it has none yet. */
static bool has_room(const struct asym_bpf *b, uint32_t number, uint32_t n)
{
    return (number != 0 || b->n_apps < ASYM_PHASES_APPS) &&
           asym_phases_threads(b->kernel, 0) + n <= ASYM_PHASES_THREADS;
}

/*
 * Returns whether those who have more places than the user would have can give him n, by the evictions that are left. If they
 * cannot, no program is evicted: the evicted would take their places again with the next snapshot.
 */
static bool can_make_room(struct asym_bpf *b, uint32_t user, uint32_t n)
{
    (void)count_places(b);
    const uint64_t limit = (uint64_t)b->users[user].places + n + NUMBER_IN_THREADS;
    const uint64_t unused = ASYM_PHASES_THREADS - asym_phases_threads(b->kernel, 0);
    uint64_t beyond = 0, largest = 0;
    for (uint32_t i = 0; i < b->users_end; i++)
        beyond += b->users[i].places > limit ? b->users[i].places - limit : 0;
    for (uint32_t i = 0; i < b->apps_end; i++)
        if (is_used(&b->apps[i]) && b->users[b->apps[i].user].places > limit)
            largest = ASYM_MAX(largest, (uint64_t)asym_phases_threads(b->kernel, i + 1));
    return b->evictions > 0 && beyond > 0 && unused + beyond >= n && unused + b->evictions * largest >= n;
}

/*
 * Leaves the processes of an application, all of them: the rest would be taken for the whole program. If there are more than
 * evictions, it rests, so that let_go() leaves the others.
 */
static void evict(struct asym_bpf *b, uint32_t number, asym_usec now)
{
    struct asym_bpf_app *app = &b->apps[number - 1];
    b->users[app->user].orders = ORDERS;
    if (app->n_procs == 0) {
        drop_app(b, number);
        b->evictions--;
        return;
    }
    app->rests_until = now + ASYM_BPF_RESTS_FOR;
    app->alone = 0;
    for (size_t i = b->n_procs; i-- > 0 && b->evictions > 0;) {
        if (b->procs[i].app != number)
            continue;
        leave(b, i);
        b->evictions--;
    }
    if (app->n_procs == 0)
        drop_app(b, number);
}

/*
 * Takes places from the user who has most, until n threads of another have room. Who takes has fewer after that than the other had
 * before, so that the two do not take the same places from each other in turn. Returns whether there is room.
 */
static bool make_room(struct asym_bpf *b, uint32_t user, uint32_t number, uint32_t n, asym_usec now)
{
    if (has_room(b, number, n))
        return true;
    if ((b->users[user].refused > 0 && n >= b->users[user].refused) || !can_make_room(b, user, n)) {
        b->users[user].refused = b->users[user].refused > 0 ? ASYM_MIN(b->users[user].refused, n) : n;
        return false;
    }
    while (!has_room(b, number, n)) {
        const uint32_t most = count_places(b);
        if (b->evictions == 0 || b->users[most].places <= b->users[user].places + n + NUMBER_IN_THREADS)
            return false;
        evict(b, largest_of(b, most), now);
    }
    return true;
}

/* Threads of the application that have no place. */
static uint32_t missing(const struct asym_bpf *b, const struct asym_app *app, uint32_t number)
{
    const uint32_t has = number == 0 ? 0 : asym_phases_threads(b->kernel, number);
    return ASYM_MAX(app->n_threads, has + 1) - has;
}

/*
 * Follows a process of an application of several threads, which is not followed yet. A user's orders are less than half of those
 * that a snapshot has left, so that one who starts many programs leaves some for the others. Returns 0; -ENOSPC: no place.
 */
static int begin(struct asym_bpf *b, const struct asym_snapshot *s, const struct asym_proc *proc, uint32_t number)
{
    const struct asym_app *app = &s->apps[proc->app];
    uint32_t uid = 0;
    if (b->orders == 0 || (asym_taskid_equal(&b->hidden, &proc->id) && s->now < b->hidden_until))
        return 0;
    if (number == 0 && asym_proc_owner(b->root, proc->id.tgid, &uid) < 0)
        return 0;
    const uint32_t user = number == 0 ? user_of(b, uid) : b->apps[number - 1].user;
    if (b->users[user].orders >= b->orders)
        return 0;
    if (!make_room(b, user, number, missing(b, app, number), s->now))
        return -ENOSPC;
    b->orders--;
    b->users[user].orders++;
    const bool is_new = number == 0;
    number = is_new ? add_app(b, &app->id, user) : number;
    const int r = number == 0 ? -ENOMEM : follow(b, &proc->id, number, s->now);
    if (r < 0 && is_new && number != 0)
        drop_app(b, number);
    if (r == -ESRCH) {
        b->hidden = proc->id;
        b->hidden_until = s->now + ASYM_SEC;
    }
    return r == -ENOSPC ? r : 0;
}

/* Returns 0; -ENOSPC: the kernel has no place for a thread of it. */
static int follow_listed(struct asym_bpf *b, const struct asym_snapshot *s, const struct asym_proc *proc)
{
    const struct asym_app *app = &s->apps[proc->app];
    const uint32_t number = asym_bpf_number(&b->source, &app->id);
    struct asym_bpf_proc *followed = asym_bpf_proc_of(b, proc->id.tgid);
    const bool is_other = followed && !asym_taskid_equal(&followed->id, &proc->id);
    if (is_other)
        followed->is_counted = false; /* it has the number of one that has ended */
    else if (followed && is_steered(proc))
        followed->listed = s->now;
    if (!is_steered(proc) || (number == 0 && app->n_threads < 2) ||
        (number != 0 && b->apps[number - 1].rests_until > s->now))
        return 0;
    if (!followed || followed->app != number || is_other)
        return begin(b, s, proc, number);
    /* The next reconciliation gives its new threads the places that are made here. */
    if (!asym_phases_misses(b->kernel, number) || app->n_threads <= asym_phases_threads(b->kernel, number) ||
        make_room(b, b->apps[number - 1].user, number, missing(b, app, number), s->now))
        return 0;
    return -ENOSPC;
}

/* Leaves processes that have ended or not run for long, or whose application rests; drops applications that have rested. */
static void let_go(struct asym_bpf *b, asym_usec now)
{
    unsigned left = ORDERS;
    for (size_t i = b->n_procs; i-- > 0 && left > 0;) {
        const struct asym_bpf_proc *proc = &b->procs[i];
        if (now - ASYM_MIN(now, proc->listed) < FORGOTTEN_AFTER && b->apps[proc->app - 1].rests_until == 0 &&
            !has_ended(b, proc->app))
            continue;
        const bool asks = !has_ended(b, proc->app);
        leave(b, i);
        left -= asks;
    }
    for (uint32_t i = 0; i < b->apps_end; i++) {
        struct asym_bpf_app *app = &b->apps[i];
        if (app->rests_until == 0 || app->rests_until > now)
            continue;
        app->rests_until = 0;
        if (app->n_procs == 0)
            drop_app(b, i + 1);
    }
}

void asym_bpf_follow_all(struct asym_bpf *b, const struct asym_snapshot *s)
{
    let_go(b, s->now);
    b->orders = b->evictions = ORDERS;
    b->is_full = false;
    for (uint32_t i = 0; i < b->users_end; i++)
        b->users[i].orders = b->users[i].refused = 0;
    for (size_t i = 0; i < s->n_procs; i++)
        b->is_full |= follow_listed(b, s, &s->procs[i]) == -ENOSPC;
}
