/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Update the states of threads and applications from the snapshot, and drop them when they are gone. */
#include <errno.h>
#include <limits.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "core/engine-internal.h"

/*
 * Inherited affinity. A thread or process that a steered thread creates starts with the mask that asymd set on its
 * creator. A thread that calls exec takes the leader's number and keeps its mask: the engine treats it like a new thread of the
 * same process. /proc does not tell such a mask from one that the thread set itself.
 *
 * For each thread the engine keeps the mask in force and the one before it, also for a while after a release. Only a step
 * with candidates pays for the search: it indexes all these masks once, by process and mask.
 */

struct inherited {
    const struct asym_table *threads;
    /* By process and mask. An item is twice the index of a thread, plus 1 for the mask that was in force before. */
    struct asym_hash index;
};

/* A mask that asymd set on a thread: the one in force, or the one before. */
struct entry {
    const struct asym_thread_state *thread; /* NULL: none */
    bool before;
};

static struct entry entry_of(const struct inherited *h, size_t item)
{
    return (struct entry){asym_table_at(h->threads, (uint32_t)(item / 2)), item % 2};
}

static uint32_t mask_of(const struct entry *e)
{
    return e->before ? e->thread->before : e->thread->set;
}

static int8_t set_nice_of(const struct entry *e)
{
    return e->before ? e->thread->nice_before : e->thread->set_nice;
}

static bool has_same_nice(const struct entry *a, const struct entry *b)
{
    return a->thread->original_nice == b->thread->original_nice && set_nice_of(a) == set_nice_of(b);
}

static uint32_t hash_of(int32_t tgid, uint32_t mask)
{
    return asym_hash_of_u64((uint64_t)(uint32_t)tgid << 32 | mask);
}

static void list(struct inherited *h, size_t thread, bool before)
{
    const size_t item = 2 * thread + before;
    const struct entry e = entry_of(h, item);
    const int32_t tgid = e.thread->id.tgid;
    const uint32_t mask = mask_of(&e);
    if (mask == ASYM_MASK_NONE)
        return;
    const uint32_t hash = hash_of(tgid, mask);
    ASYM_HASH_FOREACH (other, &h->index, hash) {
        const struct entry o = entry_of(h, other);
        if (o.thread->id.tgid == tgid && mask_of(&o) == mask && has_same_nice(&o, &e))
            return;
    }
    asym_hash_add(&h->index, hash, item);
}

/*
 * True when the thread may have inherited a mask or a nice value. No snapshot listed it before, or it has its number since it
 * called exec; its mask leaves out CPUs of its cpuset, or its nice value is not 0; and the source calls it newborn or EXECUTED,
 * or its process began after asymd first set anything.
 */
static bool is_candidate(const struct asym_thread_state *m, const struct asym_seen *seen, asym_usec first_steered)
{
    const bool executed = (seen->task->flags & ASYM_TASK_EXECUTED) && m->state == ASYM_AFFINITY_LOST;
    if ((m->state != ASYM_AFFINITY_NEW && !executed) || first_steered == 0 ||
        (seen->task->flags & ASYM_TASK_NO_SETAFFINITY) ||
        (seen->proc->flags & (ASYM_PROC_KERNEL | ASYM_PROC_SELF | ASYM_PROC_FOREIGN_NS)))
        return false;
    if (!(seen->task->flags & (ASYM_TASK_NEWBORN | ASYM_TASK_EXECUTED)) && seen->proc->born < first_steered)
        return false;
    return seen->task->nice != 0 || !asym_mask_within(seen->task->cpuset, seen->task->mask);
}

/* Index the masks that a new thread can have inherited from threads. pool holds the slots. Returns 0; -ENOMEM. */
static int list_all(struct inherited *h, const struct asym_table *threads, struct asym_pool *pool)
{
    const size_t n_slots = asym_hash_slots_for(2 * (size_t)threads->n);
    struct asym_hash_slot *slots = asym_pool_reserve(pool, n_slots, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    asym_hash_init_in(&h->index, slots, n_slots);
    h->threads = threads;
    for (uint32_t i = 0; i < threads->n; i++) {
        const struct asym_thread_state *m = asym_table_at(threads, i);
        if (m->state == ASYM_AFFINITY_STEERED)
            list(h, i, false);
    }
    for (uint32_t i = 0; i < threads->n; i++) {
        const struct asym_thread_state *m = asym_table_at(threads, i);
        if (m->ended)
            list(h, i, true);
    }
    for (uint32_t i = 0; i < threads->n; i++)
        list(h, i, true);
    return 0;
}

/* SCHED_FLAG_RESET_ON_FORK: the kernel makes a negative nice value 0 at fork, not at exec. A thread may raise one that it keeps. */
static bool is_boosted(const struct entry *e, int8_t nice, bool by_exec)
{
    const struct asym_thread_state *creator = e->thread;
    const int8_t set_nice = set_nice_of(e);
    if (set_nice == creator->original_nice)
        return false;
    return nice == set_nice || ((nice >= 0 || by_exec) && asym_nice_owes_boost(nice, set_nice, creator->original_nice));
}

/* Threads with the same mask may have different boosts. Returns the one that explains the nice value best. */
static struct entry find_entry(const struct inherited *h, int32_t tgid, uint32_t mask, int8_t nice, bool by_exec)
{
    const uint32_t hash = hash_of(tgid, mask);
    struct entry best = {0};
    int rank = -1;
    ASYM_HASH_FOREACH (item, &h->index, hash) {
        const struct entry e = entry_of(h, item);
        if (e.thread->id.tgid != tgid || mask_of(&e) != mask || (by_exec && e.before && !e.thread->ended))
            continue;
        const int r = !is_boosted(&e, nice, by_exec) ? 0 : set_nice_of(&e) != nice ? 1 : 2;
        if (r > rank) {
            best = e;
            rank = r;
        }
    }
    return best;
}

static bool inherit(struct entry e, struct asym_thread_state *m, const struct asym_seen *seen,
                    const struct asym_proc *of, bool by_exec, asym_usec now)
{
    const struct asym_thread_state *creator = e.thread;
    if (!creator || (of && of->id.start > creator->id.start))
        return false;
    const bool boosted = is_boosted(&e, seen->task->nice, by_exec);
    bool newborn = (seen->task->flags & (ASYM_TASK_NEWBORN | ASYM_TASK_EXECUTED)) ||
                   seen->proc->born >= creator->steered_since;
    if (!newborn || (creator->original == seen->mask && !boosted))
        return false;
    m->state = ASYM_AFFINITY_INHERITED;
    m->hands_off = ASYM_WHY_NONE;
    m->last_active = now;
    m->set = seen->mask;
    m->set_nice = seen->task->nice;
    m->original = creator->original;
    m->original_nice = boosted ? creator->original_nice : seen->task->nice;
    /* Not NARROW: that excludes a thread for its own choice, and this thread has made none. */
    m->extent = creator->extent == ASYM_ORIGINAL_CPUSET ? ASYM_ORIGINAL_CPUSET : ASYM_ORIGINAL_ONLINE;
    /* its own children may inherit it */
    m->before = m->set;
    m->nice_before = m->set_nice;
    m->steered_since = creator->steered_since ? creator->steered_since : now;
    return true;
}

/*
 * It was a thread of this process until then, and had what was in force. What was in force before that does not count. A leader
 * that calls exec itself may have the same mask: then the nice value must be the caller's.
 */
static struct entry find_caller_of_exec(const struct inherited *h, const struct asym_thread_state *leader,
                                        const struct asym_seen *seen)
{
    const struct entry e = find_entry(h, seen->task->id.tgid, seen->mask, seen->task->nice, true);
    const uint32_t known = leader->state == ASYM_AFFINITY_LOST ? leader->set : leader->original;
    if (e.thread && seen->mask == known && !is_boosted(&e, seen->task->nice, true))
        return (struct entry){0};
    return e.before && !e.thread->ended ? (struct entry){0} : e;
}

/*
 * Find the creator: a thread of the same process or of its parent process on which asymd set exactly this mask; for a thread
 * that called exec, its own former state. If there is one, m gets the creator's original mask and nice value and becomes
 * INHERITED, and its own children are found too.
 * Returns true in that case. parent: the parent process; NULL: the snapshot does not list it.
 * The kernel reuses process numbers: a process that began after the creator did not contain it.
 */
static bool adopt(struct inherited *h, struct asym_thread_state *m, const struct asym_seen *seen,
                  const struct asym_proc *parent, asym_usec now)
{
    if (!(seen->task->flags & ASYM_TASK_NEWBORN) && (seen->task->flags & ASYM_TASK_EXECUTED)) {
        if (!inherit(find_caller_of_exec(h, m, seen), m, seen, seen->proc, true, now))
            return false;
    } else if (!inherit(find_entry(h, seen->task->id.tgid, seen->mask, seen->task->nice, false), m, seen, seen->proc,
                        false, now) &&
               !inherit(find_entry(h, seen->proc->ppid, seen->mask, seen->task->nice, false), m, seen, parent, false,
                        now)) {
        return false;
    }
    const unsigned char *item = (const unsigned char *)m;
    list(h, (size_t)(item - h->threads->items) / h->threads->item_size, true);
    return true;
}

static void recall_untouchable(struct asym_engine *e, struct asym_thread_state *m)
{
    const struct asym_taskid key = {.tid = m->id.tid};
    const struct asym_untouchable *u = asym_table_find(&e->untouchables, &key);
    if (!u)
        return;
    if (u->id.tgid == m->id.tgid && u->id.start == m->id.start) {
        m->hands_off = u->reason;
        m->hands_off_at = u->at;
        m->hands_off_error = u->error;
    }
    asym_table_remove(&e->untouchables, &key);
}

/* Returns false without memory for it: then the caller must keep the thread's own state. */
static bool keep_untouchable(struct asym_engine *e, const struct asym_thread_state *m)
{
    const struct asym_taskid key = {.tid = m->id.tid};
    struct asym_untouchable *u = asym_table_get(&e->untouchables, &key);
    if (!u)
        return false;
    *u = (struct asym_untouchable){
        .key = key,
        .id = m->id,
        .at = m->hands_off_at,
        .reason = m->hands_off,
        .error = m->hands_off_error,
    };
    return true;
}

static const struct asym_proc *find_proc(const struct asym_step *st, int32_t pid)
{
    const struct asym_taskid key = {.tid = pid};
    const struct asym_proc_entry *entry = asym_table_find(&st->e->procs, &key);
    return entry ? &st->s->procs[entry->index] : NULL;
}

/* Repeat while any are found: the snapshot may list a child before the thread it inherited from. */
static int adopt_inherited(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    struct inherited inherited = {0};
    size_t found;
    do {
        found = 0;
        for (size_t i = 0; i < st->s->n_tasks; i++) {
            const struct asym_task_ref *ref = &st->refs[i];
            if (!is_candidate(ref->thread_state, &ref->seen, e->first_steered))
                continue;
            if (!inherited.threads && list_all(&inherited, &e->threads, &e->pools.inherited) < 0)
                return -ENOMEM;
            found += adopt(&inherited, ref->thread_state, &ref->seen, find_proc(st, ref->seen.proc->ppid), st->s->now);
        }
    } while (found > 0);
    return 0;
}

static void sweep_masks(struct asym_engine *e)
{
    if (!asym_mask_table_is_full(&e->masks))
        return;
    for (uint32_t i = 0; i < e->threads.n; i++) {
        const struct asym_thread_state *m = asym_table_at(&e->threads, i);
        const uint32_t used[] = {m->original,         m->asked, m->set, m->before, m->suspected,
                                 m->suspected_cpuset, m->cpuset};
        for (size_t k = 0; k < ASYM_LENGTH(used); k++)
            asym_mask_table_mark(&e->masks, used[k]);
    }
    asym_mask_table_sweep(&e->masks);
}

/* Equal masks of one snapshot have equal addresses: by these, most of them are hashed once in a step. */
struct known_mask {
    const struct asym_mask *mask;
    uint32_t id;
};

enum { KNOWN = 512 };

static uint32_t number_mask(struct asym_mask_table *masks, struct known_mask known[KNOWN], const struct asym_mask *m)
{
    struct known_mask *k = &known[(uintptr_t)m / sizeof *m % KNOWN];
    if (k->mask != m)
        *k = (struct known_mask){m, asym_mask_table_id(masks, m)};
    return k->id;
}

/* This comes first because it may need memory. */
static int number_masks(struct asym_step *st)
{
    struct asym_mask_table *masks = &st->e->masks;
    struct known_mask known[KNOWN] = {{0}};
    sweep_masks(st->e);
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        const struct asym_task *task = &st->s->tasks[i];
        st->refs[i] = (struct asym_task_ref){.seen = {
                                                 .task = task,
                                                 .proc = &st->s->procs[task->proc],
                                                 .mask = number_mask(masks, known, task->mask),
                                                 .cpuset = number_mask(masks, known, task->cpuset),
                                             }};
    }
    return masks->failed ? -ENOMEM : 0;
}

static int find_thread_states(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    asym_table_clear(&e->procs);
    if (number_masks(st) < 0 || asym_table_reserve(&e->threads, st->s->n_tasks) < 0 ||
        asym_table_reserve(&e->procs, st->s->n_procs) < 0)
        return -ENOMEM;
    uint32_t hint = 0;
    bool may_inherit = false;
    for (size_t i = 0; i < st->s->n_tasks; i++) {
        struct asym_thread_state *m = asym_table_get_near(&e->threads, &st->s->tasks[i].id, &hint);
        if (m->state == ASYM_AFFINITY_NEW)
            recall_untouchable(e, m);
        m->seen = e->step;
        st->refs[i].thread_state = m;
        if (st->s->tasks[i].flags & ASYM_TASK_EXECUTED)
            asym_thread_state_executed(m, &st->refs[i].seen, &st->c);
        may_inherit = may_inherit || is_candidate(m, &st->refs[i].seen, e->first_steered);
    }
    /* Only threads that the snapshot does not list, and heirs, are looked up by their process. */
    const bool needs_procs = may_inherit || asym_step_has_unlisted(st);
    for (uint32_t i = 0; needs_procs && i < st->s->n_procs; i++) {
        const struct asym_taskid key = {.tid = st->s->procs[i].id.tgid};
        struct asym_proc_entry *entry = asym_table_get(&e->procs, &key); /* there is room */
        entry->index = i;
    }
    return may_inherit ? adopt_inherited(st) : 0;
}

/*
 * The lowest nice value among the runnable threads of the application, without a policy's boost; 0: none is runnable. Any value
 * below background_nice stands for all that are lower.
 */
static int lowest_nice(const struct asym_step *st, const struct asym_app *app)
{
    const int background = (int)st->e->config.classify.background_nice;
    int lowest = INT_MAX;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks && lowest >= background; i++) {
        const struct asym_task_ref *ref = &st->refs[i];
        if (ref->seen.task->runnable <= 0)
            continue;
        const int8_t nice = asym_nice_by_rule(ref->thread_state, ref->seen.proc, st->e->config.keep_nice);
        lowest = ASYM_MIN(lowest, nice);
    }
    return lowest < INT_MAX ? lowest : 0;
}

void asym_step_observe_app(struct asym_step *st, size_t a)
{
    const struct asym_snapshot *s = st->s;
    const struct asym_app *app = &s->apps[a];
    const bool has_interval = s->interval != 0 && !s->refreshed;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        struct asym_thread_state *m = st->refs[i].thread_state;
        asym_thread_state_observe(m, &st->refs[i].seen, &st->c);
        if (has_interval)
            asym_duty_add(&m->duty, s->now, s->interval, st->decay, s->tasks[i].running, s->tasks[i].runnable,
                          st->e->config.enforce.exclusive_from);
    }
    asym_classify(&st->classify, s, app, lowest_nice(st, app), st->app_states[a]);
}

static int find_app_states(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    uint32_t hint = 0;
    if (asym_table_reserve(&e->apps, st->s->n_apps) < 0)
        return -ENOMEM;
    for (size_t a = 0; a < st->s->n_apps; a++) {
        st->app_states[a] = asym_table_get_near(&e->apps, &st->s->apps[a].id, &hint);
        st->app_states[a]->seen = e->step;
    }
    for (uint32_t i = 0; i < e->apps.n; i++) {
        struct asym_app_state *state = asym_table_at(&e->apps, i);
        if (state->seen != e->step)
            asym_classify(&st->classify, st->s, NULL, 0, state);
    }
    return 0;
}

int asym_step_observe(struct asym_step *st)
{
    const int r = find_thread_states(st);
    return r < 0 ? r : find_app_states(st);
}

void asym_step_forget(struct asym_step *st)
{
    struct asym_engine *e = st->e;
    /* A short sleep must not cost the policy's state; children of a thread that is gone may have inherited its mask. */
    const asym_usec keep = ASYM_MAX(e->config.enforce.release, 10 * ASYM_SEC);
    for (uint32_t i = asym_step_has_unlisted(st) ? e->threads.n : 0; i-- > 0;) {
        const struct asym_thread_state *m = asym_table_at(&e->threads, i);
        if (m->seen == e->step || m->state == ASYM_AFFINITY_STEERED || st->s->now - m->last_active < keep)
            continue;
        if (m->hands_off == ASYM_WHY_NONE || keep_untouchable(e, m))
            asym_table_remove_at(&e->threads, i);
    }
    for (uint32_t i = e->apps.n; i-- > 0;) {
        const struct asym_app_state *a = asym_table_at(&e->apps, i);
        if (a->seen != e->step && asym_classify_is_blank(&e->config.classify, a, st->s->now))
            asym_table_remove_at(&e->apps, i);
    }
}
