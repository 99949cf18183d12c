/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/bpf.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/search.h"
#include "base/token-bucket.h"
#include "linux/observe/observer.h"
#include "linux/observe/phases-kernel.h"
#include "linux/observe/proc-owner.h"
#include "linux/observe/procfs.h"

/* One that no snapshot has listed for so long is followed no more, so that a long list of sleepers keeps no place. */
#define FORGOTTEN_AFTER (60 * ASYM_SEC)

/* Processes that one snapshot may begin to follow, and as many that it may leave. Each takes 70 us in the kernel. */
#define ORDERS 16

/* Threads that have slept, and that an answer reads from /proc. The next sample shows the others. */
#define SLEEPERS 16

/* CPU time that the answers to the programs of a user may use at once, microseconds: some 100 answers. */
#define BURST (20 * ASYM_MSEC)

/* The number of an application is as scarce as so many places of threads. */
#define NUMBER_IN_THREADS (ASYM_PHASES_THREADS / ASYM_PHASES_APPS)

/* A user shares the kernel's places and the CPU time of answers with the others. His debt stays until another needs the entry. */
struct user {
    uint32_t uid;
    uint32_t n_apps;
    uint32_t places;                  /* of his applications, in threads, as count_places() found them */
    uint32_t orders;                  /* of this snapshot, to follow his processes */
    uint32_t refused;                 /* so many threads, or fewer, found no room in this snapshot; 0: none looked */
    struct asym_token_bucket answers; /* us of CPU time; capacity 0: the entry was never used */
    bool has_changed;                 /* no user has paid the events of his applications yet */
};

/*
 * An application whose threads change their states more often than this, per second of their CPU time, or of the time that passed
 * where that is more, is followed no more for a while: at some 0.1 to 0.25 us a change, it would lose more than half a per cent of
 * its time (docs/data/phases.md).
 */
#define CHANGES_MOST 20000
#define RESTS_FOR    (60 * ASYM_SEC)

/* The changes are counted over this: a burst is not what a program does. */
#define CHANGES_OVER ASYM_SEC

/* An application that is followed, or rests; its number is its index + 1. */
struct followed_app {
    struct asym_taskid id;
    uint32_t n_procs;           /* that are followed */
    uint32_t user;              /* index: who owned its first process */
    int32_t alone;              /* the thread that the kernel has named as the only runnable one; 0: none */
    bool is_new;                /* this one is alone since the last snapshot */
    uint64_t n_changes, ran_ns; /* of its threads, since b->judged */
    asym_usec rests_until;      /* it is not followed before that; 0: it does not rest */
};

struct followed_proc {
    struct asym_taskid id;
    uint32_t app; /* number */
    asym_usec listed;
    enum asym_procfs_activity activity; /* since the last full snapshot */
};

/* The kernel's count of a thread at the last full snapshot, and what it gives for the interval before that. */
struct counted {
    int32_t tid, tgid;
    uint32_t slot, app;
    uint64_t running_ns, waiting_ns, critical_ns;
    uint32_t seq;
    uint64_t ran_ns, waited_ns;
    double running, runnable, critical;
    bool is_measured; /* these five are valid: it was there at the snapshot before, too */
};

struct bpf {
    struct asym_source source;
    struct asym_phases *kernel;
    const struct asym_root *root;
    struct user users[ASYM_PHASES_APPS + 1]; /* one more than applications, for him who begins the next one */
    double cpu_share;                        /* of one CPU, for all answers */
    struct followed_app apps[ASYM_PHASES_APPS];
    uint32_t n_apps;
    struct asym_hash app_index; /* of apps, by id */
    struct followed_proc *procs;
    struct asym_hash proc_index; /* of procs, by tgid */
    size_t n_procs, procs_capacity;
    struct counted *counted, *counted_before; /* by tid, rising */
    size_t n_counted, n_before, capacity;
    uint64_t counted_at_ns;  /* 0: never */
    asym_usec judged;        /* when n_changes of the applications began */
    struct asym_task *tasks; /* copies of the inner source's, which may be changed */
    struct asym_app *out_apps;
    size_t tasks_capacity, out_apps_capacity;
    enum asym_bpf_hears hears;  /* as asym_bpf_set() */
    bool has_changed;           /* another thread is alone than in the last snapshot */
    bool is_full;               /* the kernel had no place for a process of the last full snapshot */
    unsigned orders, evictions; /* processes that this snapshot may still follow; and leave, to make room */
    bool refresh;               /* the next snapshot is the last one again */
    bool is_sampling;           /* the inner source has not completed its sample */
};

static struct bpf *of(const struct asym_source *source)
{
    return (struct bpf *)(void *)((const char *)source - offsetof(struct bpf, source));
}

/* Returns the number of the application; 0: it is not followed. */
static uint32_t number_of(const struct bpf *b, const struct asym_taskid *id)
{
    ASYM_HASH_FOREACH (i, &b->app_index, asym_hash_of_u64(id->start ^ (uint32_t)id->tgid))
        if (asym_taskid_equal(&b->apps[i].id, id))
            return (uint32_t)i + 1;
    return 0;
}

static struct followed_proc *proc_of(const struct bpf *b, int32_t tgid)
{
    ASYM_HASH_FOREACH (i, &b->proc_index, asym_hash_of_id(tgid))
        if (b->procs[i].id.tgid == tgid)
            return &b->procs[i];
    return NULL;
}

/* Returns the index of the user. There are more entries than applications, so one is free. */
static uint32_t user_of(struct bpf *b, uint32_t uid)
{
    uint32_t unused = 0;
    for (uint32_t i = ASYM_LENGTH(b->users); i-- > 0;) {
        if (b->users[i].answers.capacity > 0 && b->users[i].uid == uid)
            return i;
        if (b->users[i].n_apps == 0)
            unused = i;
    }
    b->users[unused] = (struct user){.uid = uid,
                                     .answers = asym_token_bucket_full(b->cpu_share, (double)BURST, asym_clock_now())};
    return unused;
}

/* Returns whether its number is taken. */
static bool is_used(const struct followed_app *app)
{
    return app->n_procs > 0 || app->rests_until > 0;
}

static uint32_t add_app(struct bpf *b, const struct asym_taskid *id, uint32_t user)
{
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        if (is_used(&b->apps[i]))
            continue;
        if (asym_hash_reserve(&b->app_index, 1) < 0)
            return 0;
        b->apps[i] = (struct followed_app){.id = *id, .user = user};
        asym_hash_add(&b->app_index, asym_hash_of_u64(id->start ^ (uint32_t)id->tgid), i);
        b->users[user].n_apps++;
        b->n_apps++;
        return i + 1;
    }
    return 0;
}

static void drop_app(struct bpf *b, uint32_t number)
{
    struct followed_app *app = &b->apps[number - 1];
    asym_hash_remove(&b->app_index, asym_hash_of_u64(app->id.start ^ (uint32_t)app->id.tgid), number - 1);
    b->users[app->user].n_apps--;
    b->n_apps--;
    *app = (struct followed_app){.n_procs = 0};
}

/* One of the application's processes is in it no more. */
static void leave_app(struct bpf *b, uint32_t number)
{
    if (--b->apps[number - 1].n_procs == 0 && b->apps[number - 1].rests_until == 0)
        drop_app(b, number);
}

/* Where the kernel cannot now, the process stays until the next snapshot: its threads still have the application's number. */
static void leave(struct bpf *b, size_t i)
{
    if (asym_phases_unfollow(b->kernel, b->procs[i].id.tgid) < 0)
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
static int follow(struct bpf *b, const struct asym_taskid *id, uint32_t app, asym_usec now)
{
    struct followed_proc *proc = proc_of(b, id->tgid);
    if (!proc && (asym_grow(&b->procs, b->n_procs, &b->procs_capacity, sizeof *b->procs) < 0 ||
                  asym_hash_reserve(&b->proc_index, 1) < 0))
        return -ENOMEM;
    const int r = asym_phases_follow(b->kernel, id->tgid, app);
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
    *proc = (struct followed_proc){.id = *id, .app = app, .listed = now};
    return 0;
}

/* A thread that asymd does not steer needs no measure: the kernel's programs cost it time at each switch. */
static bool is_steered(const struct asym_proc *proc)
{
    return !(proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_SELF | ASYM_PROC_FOREIGN_NS | ASYM_PROC_OUTSIDE)) &&
           proc->rule != ASYM_RULE_IGNORE && proc->rule != ASYM_RULE_UNLISTED;
}

/* Counts what each user has. Returns the index of the one who has most. */
static uint32_t count_places(struct bpf *b)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < ASYM_LENGTH(b->users); i++)
        b->users[i].places = 0;
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        struct user *user = &b->users[b->apps[i].user];
        if (is_used(&b->apps[i]))
            user->places += NUMBER_IN_THREADS + asym_phases_threads(b->kernel, i + 1);
        if (user->places > b->users[most].places)
            most = b->apps[i].user;
    }
    return most;
}

/* Returns the number of the user's largest application. */
static uint32_t largest_of(const struct bpf *b, uint32_t user)
{
    uint32_t largest = 0, most = 0;
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        if (!is_used(&b->apps[i]) || b->apps[i].user != user || asym_phases_threads(b->kernel, i + 1) < most)
            continue;
        largest = i + 1;
        most = asym_phases_threads(b->kernel, largest);
    }
    return largest;
}

/* Returns whether the kernel has a place for each of n threads that come to the application. number 0: it has none yet. */
static bool has_room(const struct bpf *b, uint32_t number, uint32_t n)
{
    return (number != 0 || b->n_apps < ASYM_PHASES_APPS) &&
           asym_phases_threads(b->kernel, 0) + n <= ASYM_PHASES_THREADS;
}

/*
 * Returns whether those who have more places than the user would have can give him n, by the evictions that are left. If they
 * cannot, no program is evicted: the evicted would take their places again with the next snapshot.
 */
static bool can_make_room(struct bpf *b, uint32_t user, uint32_t n)
{
    (void)count_places(b);
    const uint64_t limit = (uint64_t)b->users[user].places + n + NUMBER_IN_THREADS;
    const uint64_t unused = ASYM_PHASES_THREADS - asym_phases_threads(b->kernel, 0);
    uint64_t beyond = 0, largest = 0;
    for (uint32_t i = 0; i < ASYM_LENGTH(b->users); i++)
        beyond += b->users[i].places > limit ? b->users[i].places - limit : 0;
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++)
        if (is_used(&b->apps[i]) && b->users[b->apps[i].user].places > limit)
            largest = ASYM_MAX(largest, (uint64_t)asym_phases_threads(b->kernel, i + 1));
    return b->evictions > 0 && beyond > 0 && unused + beyond >= n && unused + b->evictions * largest >= n;
}

/*
 * Leaves the processes of an application, all of them: the rest would be taken for the whole program. If there are more than
 * evictions, it rests, so that let_go() leaves the others.
 */
static void evict(struct bpf *b, uint32_t number, asym_usec now)
{
    struct followed_app *app = &b->apps[number - 1];
    b->users[app->user].orders = ORDERS;
    if (app->n_procs == 0) {
        drop_app(b, number);
        b->evictions--;
        return;
    }
    app->rests_until = now + RESTS_FOR;
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
static bool make_room(struct bpf *b, uint32_t user, uint32_t number, uint32_t n, asym_usec now)
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
static uint32_t missing(const struct bpf *b, const struct asym_app *app, uint32_t number)
{
    const uint32_t has = number == 0 ? 0 : asym_phases_threads(b->kernel, number);
    return ASYM_MAX(app->n_threads, has + 1) - has;
}

/*
 * Follows a process of an application of several threads, which is not followed yet. A user's orders are less than half of those
 * that a snapshot has left, so that one who starts many programs leaves some for the others. Returns 0; -ENOSPC: no place.
 */
static int begin(struct bpf *b, const struct asym_snapshot *s, const struct asym_proc *proc, uint32_t number)
{
    const struct asym_app *app = &s->apps[proc->app];
    uint32_t uid = 0;
    if (b->orders == 0)
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
    return r == -ENOSPC ? r : 0;
}

/* Returns 0; -ENOSPC: the kernel has no place for a thread of it. */
static int follow_listed(struct bpf *b, const struct asym_snapshot *s, const struct asym_proc *proc)
{
    const struct asym_app *app = &s->apps[proc->app];
    const uint32_t number = number_of(b, &app->id);
    struct followed_proc *followed = proc_of(b, proc->id.tgid);
    if (followed && is_steered(proc))
        followed->listed = s->now;
    if (!is_steered(proc) || (number == 0 && app->n_threads < 2) ||
        (number != 0 && b->apps[number - 1].rests_until > s->now))
        return 0;
    if (!followed || followed->app != number || !asym_taskid_equal(&followed->id, &proc->id))
        return begin(b, s, proc, number);
    /* The next reconciliation gives its new threads the places that are made here. */
    if (!asym_phases_misses(b->kernel, number) || app->n_threads <= asym_phases_threads(b->kernel, number) ||
        make_room(b, b->apps[number - 1].user, number, missing(b, app, number), s->now))
        return 0;
    return -ENOSPC;
}

/* Leaves processes that have not run for long, or whose application rests, and drops applications that have rested. */
static void let_go(struct bpf *b, asym_usec now)
{
    unsigned left = ORDERS;
    for (size_t i = b->n_procs; i-- > 0 && left > 0;) {
        const struct followed_proc *proc = &b->procs[i];
        if (now - ASYM_MIN(now, proc->listed) < FORGOTTEN_AFTER && b->apps[proc->app - 1].rests_until == 0)
            continue;
        leave(b, i);
        left--;
    }
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        struct followed_app *app = &b->apps[i];
        if (app->rests_until == 0 || app->rests_until > now)
            continue;
        app->rests_until = 0;
        if (app->n_procs == 0)
            drop_app(b, i + 1);
    }
}

static void follow_all(struct bpf *b, const struct asym_snapshot *s)
{
    let_go(b, s->now);
    b->orders = b->evictions = ORDERS;
    b->is_full = false;
    for (uint32_t i = 0; i < ASYM_LENGTH(b->users); i++)
        b->users[i].orders = b->users[i].refused = 0;
    for (size_t i = 0; i < s->n_procs; i++)
        b->is_full |= follow_listed(b, s, &s->procs[i]) == -ENOSPC;
}

static const struct counted *find(const struct counted *items, size_t n, int32_t tid)
{
    const size_t i = ASYM_LOWER_BOUND(items, n, tid, tid);
    return i < n && items[i].tid == tid ? &items[i] : NULL;
}

static struct counted count(const struct bpf *b, const struct asym_phases_thread *thread, double interval_ns)
{
    struct counted ret = {.tid = thread->tid,
                          .tgid = thread->tgid,
                          .slot = thread->slot,
                          .app = thread->app,
                          .running_ns = thread->running_ns,
                          .waiting_ns = thread->waiting_ns,
                          .critical_ns = thread->critical_ns,
                          .seq = thread->seq};
    const struct counted *before = find(b->counted_before, b->n_before, thread->tid);
    /* A count that is lower is of another thread, which has the number now. */
    if (!before || before->slot != thread->slot || before->app != thread->app ||
        before->running_ns > thread->running_ns || before->waiting_ns > thread->waiting_ns || interval_ns <= 0)
        return ret;
    ret.ran_ns = thread->running_ns - before->running_ns;
    ret.waited_ns = thread->waiting_ns - before->waiting_ns;
    ret.running = ASYM_MIN((double)ret.ran_ns / interval_ns, 1);
    ret.runnable = ASYM_MIN((double)(ret.ran_ns + ret.waited_ns) / interval_ns, 1);
    if (thread->critical_ns > before->critical_ns)
        ret.critical = ASYM_MIN((double)(thread->critical_ns - before->critical_ns) / interval_ns, 1);
    ret.is_measured = true;
    return ret;
}

/* A thread for which the kernel had no place may have run: then only the clock of its process knows. */
static void note_activity(struct bpf *b, const struct asym_phases_thread *thread, const struct counted *c)
{
    struct followed_proc *proc = proc_of(b, thread->tgid);
    if (!proc || asym_phases_misses(b->kernel, thread->app))
        return;
    const bool ran = thread->is_runnable || !c->is_measured || c->ran_ns + c->waited_ns > 0;
    if (ran || proc->activity == ASYM_PROCFS_UNKNOWN)
        proc->activity = ran ? ASYM_PROCFS_RAN : ASYM_PROCFS_SLEPT;
}

static void note_changes(struct bpf *b, const struct counted *c)
{
    const struct counted *before = c->is_measured ? find(b->counted_before, b->n_before, c->tid) : NULL;
    if (!before || c->app == 0 || c->app > ASYM_PHASES_APPS)
        return;
    b->apps[c->app - 1].n_changes += (uint32_t)(c->seq - before->seq) / 2;
    b->apps[c->app - 1].ran_ns += c->ran_ns;
}

/* Puts to rest who changes too often. */
static void judge(struct bpf *b, asym_usec now)
{
    const asym_usec since = b->judged;
    if (now - since < CHANGES_OVER)
        return;
    b->judged = now;
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        struct followed_app *app = &b->apps[i];
        const double seconds = ASYM_MAX((double)app->ran_ns / 1e9, (double)(now - since) / ASYM_SEC);
        if (since > 0 && app->n_procs > 0 && (double)app->n_changes > CHANGES_MOST * seconds) {
            app->rests_until = now + RESTS_FOR;
            app->alone = 0;
        }
        app->n_changes = app->ran_ns = 0;
    }
}

/* Reads what the kernel has counted since the last full snapshot. Returns 0; -ENOMEM. */
static int count_all(struct bpf *b)
{
    const struct asym_phases_thread *threads;
    const size_t n = asym_phases_list(b->kernel, &threads);
    uint64_t now_ns = 0;
    asym_clock_ns(CLOCK_MONOTONIC, &now_ns);
    if (n > b->capacity) {
        struct counted *first = reallocarray(b->counted, n, sizeof *first);
        b->counted = first ? first : b->counted;
        struct counted *second = reallocarray(b->counted_before, n, sizeof *second);
        b->counted_before = second ? second : b->counted_before;
        if (!first || !second)
            return -ENOMEM;
        b->capacity = n;
    }
    struct counted *const earlier = b->counted;
    b->counted = b->counted_before;
    b->counted_before = earlier;
    b->n_before = b->n_counted;
    const double interval_ns = b->counted_at_ns == 0 ? 0 : (double)(now_ns - b->counted_at_ns);
    for (size_t i = 0; i < b->n_procs; i++)
        b->procs[i].activity = ASYM_PROCFS_UNKNOWN;
    for (size_t i = 0; i < n; i++) {
        b->counted[i] = count(b, &threads[i], interval_ns);
        note_activity(b, &threads[i], &b->counted[i]);
        note_changes(b, &b->counted[i]);
    }
    b->n_counted = n;
    b->counted_at_ns = now_ns;
    judge(b, now_ns / 1000);
    return 0;
}

/* Replaces the sample by the kernel's count. Returns how much the runnable share grows by that. */
static double take_count(const struct counted *c, struct asym_task *task)
{
    if (!c || !c->is_measured)
        return 0;
    const double more = c->runnable - task->runnable;
    task->running = c->running;
    task->runnable = c->runnable;
    task->critical = c->critical;
    return more;
}

/* Marks the only runnable thread of an application. The others sleep, whatever they did at the sample. */
static void mark_alone(struct asym_task *tasks, uint32_t n, int32_t alone)
{
    for (uint32_t i = 0; i < n; i++) {
        if (tasks[i].id.tid == alone)
            tasks[i].flags |= ASYM_TASK_ALONE;
        if (tasks[i].id.tid == alone || tasks[i].state == 'R')
            tasks[i].state = tasks[i].id.tid == alone ? 'R' : 'S';
    }
}

/*
 * While one thread is alone, the application counts as one thread, whatever it was in the interval before. The kernel knows that of
 * the threads that it follows: a job may have others, such as a compiler that has just begun.
 */
static void take_app(const struct bpf *b, const struct asym_snapshot *s, struct asym_app *out)
{
    const uint32_t number = number_of(b, &out->id);
    if (number == 0)
        return;
    struct asym_task *tasks = &b->tasks[out->first_task];
    int32_t only;
    const uint32_t runnable = asym_phases_runnable(b->kernel, number, &only);
    bool is_whole = !asym_phases_misses(b->kernel, number), is_listed = false;
    for (uint32_t i = 0; i < out->n_tasks; i++) {
        const struct counted *c = find(b->counted, b->n_counted, tasks[i].id.tid);
        out->runnable_mean += take_count(c, &tasks[i]);
        is_whole &= c != NULL;
        is_listed |= tasks[i].id.tid == only;
    }
    out->runnable_mean = ASYM_MAX(out->runnable_mean, 0);
    out->runnable_instant = is_whole ? runnable : ASYM_MAX(out->runnable_instant, runnable);
    if (is_whole && is_listed && only != 0 && only == b->apps[number - 1].alone) {
        mark_alone(tasks, out->n_tasks, only);
        out->runnable_mean = 1;
    } else if (s->refreshed) {
        out->runnable_mean = ASYM_MAX(out->runnable_mean, out->runnable_instant);
    }
}

/* The next sample shows what no answer is left for. */
static void note_alone(struct bpf *b, struct followed_app *app, int32_t alone)
{
    struct user *user = &b->users[app->user];
    user->has_changed = true;
    const bool is_new = app->alone != alone || b->hears == ASYM_BPF_BEGINS;
    const bool is_told = is_new && asym_token_bucket_has(&user->answers, asym_clock_now());
    b->has_changed |= is_told;
    app->is_new |= is_told;
    app->alone = alone;
}

/* Returns whether its events count: one that rests leaves the kernel process by process. */
static bool is_heard(const struct followed_app *app)
{
    return app->n_procs > 0 && app->rests_until == 0;
}

static void take_event(void *ctx, const struct asym_phases_event *e)
{
    struct bpf *b = ctx;
    if (e->kind == ASYM_PHASES_LOST) {
        for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
            int32_t alone = 0;
            if (!is_heard(&b->apps[i]))
                continue;
            (void)asym_phases_runnable(b->kernel, i + 1, &alone);
            if (alone != b->apps[i].alone)
                note_alone(b, &b->apps[i], alone);
        }
        return;
    }
    if (e->app == 0 || e->app > ASYM_PHASES_APPS || !is_heard(&b->apps[e->app - 1]))
        return;
    note_alone(b, &b->apps[e->app - 1], e->kind == ASYM_PHASES_SERIAL ? e->tid : 0);
}

/* Has procfs list the threads that are alone now, and slept through the last sample: such a one waits for all others. */
static void list_sleepers(struct bpf *b)
{
    unsigned left = SLEEPERS;
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++) {
        struct followed_app *app = &b->apps[i];
        const struct counted *c = app->is_new && b->refresh ? find(b->counted, b->n_counted, app->alone) : NULL;
        app->is_new = false;
        if (!c || c->ran_ns + c->waited_ns > 0 || left == 0)
            continue;
        left--;
        (void)asym_procfs_list_sleeper(b->source.inner, c->tgid, c->tid);
    }
}

static int bpf_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct bpf *b = of(source);
    struct asym_snapshot s;
    /* procfs asks what has run, so the count comes first; one sample may take several calls. */
    int r = b->refresh || b->is_sampling ? 0 : count_all(b);
    if (!b->is_sampling)
        list_sleepers(b);
    if (r >= 0)
        r = source->inner->next(source->inner, &s);
    b->is_sampling = r == -EINPROGRESS;
    b->refresh &= b->is_sampling;
    if (r <= 0)
        return r;
    asym_phases_take(b->kernel, take_event, b);
    if (asym_copy(&b->tasks, &b->tasks_capacity, s.tasks, s.n_tasks, sizeof *s.tasks) < 0 ||
        asym_copy(&b->out_apps, &b->out_apps_capacity, s.apps, s.n_apps, sizeof *s.apps) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < s.n_apps; i++)
        take_app(b, &s, &b->out_apps[i]);
    s.tasks = b->tasks;
    s.apps = b->out_apps;
    s.urgent |= b->has_changed && b->hears != ASYM_BPF_NOTHING;
    b->has_changed = false;
    if (!s.refreshed)
        follow_all(b, &s);
    if (b->is_full)
        s.coverage.remarks[ASYM_OBSERVER_BPF] =
            "more programs or threads run than the BPF observer has places for; asymd samples the others by /proc";
    *ret = s;
    return 1;
}

static void bpf_refresh(struct asym_source *source)
{
    of(source)->refresh = true;
}

static enum asym_procfs_activity process_activity(void *ctx, int32_t tgid)
{
    const struct bpf *b = ctx;
    const struct followed_proc *proc = proc_of(b, tgid);
    /* Where procfs cannot return the last snapshot again, it takes a full one, for which there is no count. */
    return proc && !b->refresh ? proc->activity : ASYM_PROCFS_UNKNOWN;
}

static enum asym_procfs_activity thread_activity(void *ctx, int32_t tid, uint64_t *ret_ran, uint64_t *ret_waited)
{
    const struct bpf *b = ctx;
    const struct counted *c = find(b->counted, b->n_counted, tid);
    if (!c || !c->is_measured || b->refresh)
        return ASYM_PROCFS_UNKNOWN;
    *ret_ran = c->ran_ns;
    *ret_waited = c->waited_ns;
    return c->ran_ns + c->waited_ns > 0 ? ASYM_PROCFS_RAN : ASYM_PROCFS_SLEPT;
}

static void bpf_close(struct asym_source *source)
{
    static const struct asym_procfs_watcher nobody = {.ctx = NULL};
    struct bpf *b = of(source);
    asym_procfs_set_watcher(source->inner, &nobody);
    asym_phases_close(b->kernel);
    asym_hash_done(&b->app_index);
    asym_hash_done(&b->proc_index);
    free(b->procs);
    free(b->counted);
    free(b->counted_before);
    free(b->tasks);
    free(b->out_apps);
    free(b);
}

int asym_bpf_fd(const struct asym_source *source)
{
    return asym_phases_fd(of(source)->kernel);
}

bool asym_bpf_take(struct asym_source *source)
{
    struct bpf *b = of(source);
    asym_phases_take(b->kernel, take_event, b);
    return b->has_changed;
}

/* The kernel tells nothing of his programs until he has paid. */
static void hold(struct bpf *b, uint32_t user)
{
    const asym_usec due = asym_token_bucket_due(&b->users[user].answers);
    for (uint32_t i = 0; i < ASYM_PHASES_APPS; i++)
        if (b->apps[i].n_procs > 0 && b->apps[i].user == user)
            asym_phases_hold(b->kernel, i + 1, due);
}

void asym_bpf_charge(struct asym_source *source, asym_usec cost)
{
    struct bpf *b = of(source);
    const asym_usec now = asym_clock_now();
    unsigned n = 0;
    for (uint32_t i = 0; i < ASYM_LENGTH(b->users); i++)
        n += b->users[i].has_changed;
    for (uint32_t i = 0; i < ASYM_LENGTH(b->users); i++) {
        struct user *user = &b->users[i];
        if (!user->has_changed)
            continue;
        user->has_changed = false;
        asym_token_bucket_charge(&user->answers, (double)cost / n, now);
        if (!asym_token_bucket_has(&user->answers, now))
            hold(b, i);
    }
}

/* Those who have used answers lately share the CPU time. One whose bucket is full needs none. */
static void divide(struct bpf *b, asym_usec now)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < ASYM_LENGTH(b->users); i++) {
        asym_token_bucket_fill(&b->users[i].answers, now);
        n += b->users[i].answers.tokens < b->users[i].answers.capacity;
    }
    for (uint32_t i = 0; i < ASYM_LENGTH(b->users); i++)
        b->users[i].answers.rate = b->cpu_share / ASYM_MAX(n, 1U);
}

void asym_bpf_set(struct asym_source *source, const struct asym_daemon_settings *settings, enum asym_bpf_hears hears)
{
    struct bpf *b = of(source);
    const struct asym_phases_limits limits = {.gap = settings->phase_gap,
                                              .settle = settings->phase_settle,
                                              .begins_only = hears == ASYM_BPF_BEGINS,
                                              .rate = hears != ASYM_BPF_NOTHING ? settings->phase_rate : 0};
    asym_phases_set(b->kernel, &limits);
    b->hears = hears;
    b->cpu_share = settings->cpu_budget / 100;
    divide(b, asym_clock_now());
}

bool asym_bpf_housekeeping(struct asym_source *source)
{
    struct bpf *b = of(source);
    asym_phases_reconcile(b->kernel);
    return b->n_procs > 0;
}

struct asym_phases *asym_bpf_kernel(const struct asym_source *source)
{
    return of(source)->kernel;
}

uint32_t asym_bpf_number(const struct asym_source *source, const struct asym_taskid *app)
{
    return number_of(of(source), app);
}

static int bpf_open(const struct asym_observer_context *context, struct asym_source *inner, struct asym_source **ret,
                    struct asym_error *err)
{
    const struct asym_daemon_settings *settings = &context->settings->daemon;
    const struct asym_phases_limits none = {.gap = settings->phase_gap, .settle = settings->phase_settle};
    if (settings->observer == ASYM_OBSERVE_PROCFS)
        return -ECANCELED;
    if (!context->procfs->root->live)
        return -ECANCELED;
    struct bpf *b = calloc(1, sizeof *b);
    if (!b)
        return asym_fail(err, -ENOMEM, "no memory");
    const int r = asym_phases_open(&none, &b->kernel, err);
    if (r < 0) {
        free(b);
        return r;
    }
    b->root = context->procfs->root;
    b->cpu_share = settings->cpu_budget / 100;
    b->source = (struct asym_source){.next = bpf_next, .refresh = bpf_refresh, .close = bpf_close};
    const struct asym_procfs_watcher watcher = {.process = process_activity, .thread = thread_activity, .ctx = b};
    asym_procfs_set_watcher(inner, &watcher);
    *ret = &b->source;
    return 0;
}

const struct asym_observer_entry asym_observer_entry_bpf = {.name = "bpf", .open = bpf_open};
