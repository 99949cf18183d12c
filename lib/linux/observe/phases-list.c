/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/phases-list.h"

#include <string.h>

#include "base/macro.h"
#include "linux/observe/slot-copy.h"

/* A thread that is runnable seldom runs or waits for longer without a switch. */
#define OLD_NS UINT64_C(500000000)

/* The virtual time of an application, as of a moment. */
struct clock {
    uint64_t runnable, last, v;
};

void asym_phases_list_begin(struct asym_phases *p, struct asym_phases_shared *shared)
{
    p->shared = shared;
    memset(shared->touched, 1, sizeof shared->touched);
    asym_phases_begin_interval(p);
}

static struct clock look(const struct asym_phases_app *a)
{
    return (struct clock){
        .runnable = __atomic_load_n(&a->runnable, __ATOMIC_ACQUIRE),
        .last = __atomic_load_n(&a->last, __ATOMIC_ACQUIRE),
        .v = __atomic_load_n(&a->v, __ATOMIC_ACQUIRE),
    };
}

/* Returns the virtual time of the application at now. Two looks that are alike saw no change half done. */
static uint64_t virtual_time(const struct asym_phases_app *a, uint64_t now)
{
    struct clock c = look(a);
    for (int i = 0; i < ASYM_SLOT_TRIES; i++) {
        const struct clock d = look(a);
        if (d.runnable == c.runnable && d.last == c.last && d.v == c.v)
            break;
        c = d;
    }
    const uint64_t n = c.runnable >> 32;
    return n == 0 || now < c.last ? c.v : c.v + ((now - c.last) << ASYM_PHASES_FRACTION) / n;
}

/* Times until now, from a copy of the slot. */
static struct asym_phases_thread thread_of(const struct asym_phases_shared *shared, const struct asym_phases_slot *s,
                                           uint64_t now)
{
    const uint32_t app = s->word >> 8, state = s->word & 255;
    const uint64_t spent = now > s->since ? now - s->since : 0;
    struct asym_phases_thread t = {
        .tid = (int32_t)s->tid,
        .tgid = (int32_t)s->tgid,
        .app = app,
        .is_runnable = state >= ASYM_PHASES_WAITING,
        .cpu = (int32_t)s->cpu - 1,
        .renewed = s->renewed,
        .running_ns = s->running_ns + (state == ASYM_PHASES_RUNNING ? spent : 0),
        .waiting_ns = s->waiting_ns + (state == ASYM_PHASES_WAITING ? spent : 0),
        .seq = s->seq,
    };
    uint64_t critical = s->critical;
    if (t.is_runnable)
        critical += virtual_time(&shared->apps[app % ASYM_PHASES_APP_RECORDS], now) - s->entered;
    /* CPUs that read their clocks at the same moment can make it a little less than 0. */
    t.critical_ns = (int64_t)critical > 0 ? critical >> ASYM_PHASES_FRACTION : 0;
    return t;
}

/*
 * A reader that meets a change half done may see too little: then the thread keeps the times that it had, or has those that are
 * booked, and the next call reads it again. So it does while the thread is runnable, because its times go on.
 */
static void read_slot(struct asym_phases *p, uint32_t slot, uint64_t now, bool has_settings)
{
    struct asym_phases_thread *last = &p->threads[slot];
    struct asym_phases_slot s;
    const bool is_whole = asym_slot_copy(&p->shared->slots[slot].seq, &s, sizeof s);
    if (is_whole || last->tid != (int32_t)s.tid) {
        struct asym_phases_thread t = thread_of(p->shared, &s, is_whole ? now : 0);
        if (t.tid == last->tid && t.tgid == last->tgid) {
            t.running_ns = ASYM_MAX(t.running_ns, last->running_ns);
            t.waiting_ns = ASYM_MAX(t.waiting_ns, last->waiting_ns);
            t.critical_ns = ASYM_MAX(t.critical_ns, last->critical_ns);
        }
        *last = t;
    }
    last->settings = has_settings ? p->shared->settings[slot] : 0;
    if (!is_whole || last->is_runnable)
        __atomic_store_n(&p->shared->touched[slot], 1, __ATOMIC_RELAXED);
}

uint32_t asym_phases_list_find(struct asym_phases_shared *shared)
{
    uint8_t *const touched = shared->touched, *at = touched + 1;
    const uint32_t n_fresh = __atomic_load_n(&shared->n_fresh, __ATOMIC_ACQUIRE);
    const uint8_t *const end = touched + ASYM_MIN(n_fresh + 1, (uint32_t)ASYM_PHASES_SLOTS);
    shared->n_listed = 0;
    while ((at = memchr(at, 1, (size_t)(end - at))) != NULL) {
        const uint32_t slot = (uint32_t)(at++ - touched);
        (void)__atomic_exchange_n(&touched[slot], 0, __ATOMIC_SEQ_CST);
        shared->listed[shared->n_listed++] = slot;
    }
    return shared->n_listed;
}

void asym_phases_list_read(struct asym_phases *p, uint64_t now_ns, bool has_settings,
                           const struct asym_phases_thread **ret_threads, const uint32_t **ret_slots)
{
    for (uint32_t i = 0; i < p->shared->n_listed; i++)
        read_slot(p, p->shared->listed[i], now_ns, has_settings);
    *ret_threads = p->threads;
    *ret_slots = p->shared->listed;
}

/* Where the numbers begin anew, no mark remains: an old one would seem to be young. */
void asym_phases_begin_interval(struct asym_phases *p)
{
    struct asym_phases_shared *shared = p->shared;
    const bool is_over = shared->interval < ASYM_PHASES_FIRST || shared->interval == ASYM_PHASES_LAST;
    if (is_over)
        memset(shared->marks, 0, sizeof shared->marks);
    /* A program that finds the new interval finds the new order, too. */
    __atomic_store_n(&shared->watch, ASYM_PHASES_NOTES, __ATOMIC_SEQ_CST);
    __atomic_store_n(&shared->interval, (uint8_t)(is_over ? ASYM_PHASES_FIRST : shared->interval + 1),
                     __ATOMIC_SEQ_CST);
}

/*
 * A program may write a mark while the next interval begins, so the mark of the one before the last still counts. Who is new here
 * gets the mark of the last one: if it runs in this one, the programs see that.
 */
bool asym_phases_slept(struct asym_phases *p, int32_t tgid)
{
    struct asym_phases_shared *shared = p->shared;
    uint8_t *const at = &shared->marks[(uint32_t)tgid % ASYM_PHASES_MARKS],
                   mark = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (shared->level != 0)
        return false;
    if (mark == 0)
        __atomic_store_n(at, (uint8_t)(shared->interval - 1), __ATOMIC_RELAXED);
    return mark != 0 && mark + 2 < shared->interval;
}

bool asym_phases_doze(struct asym_phases *p)
{
    uint32_t notes = ASYM_PHASES_NOTES;
    return p->shared->level == 0 && __atomic_compare_exchange_n(&p->shared->watch, &notes, ASYM_PHASES_RINGS, false,
                                                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

uint32_t asym_phases_list_old(const struct asym_phases_shared *shared, uint32_t slot, uint64_t now_ns)
{
    const uint32_t n_fresh = __atomic_load_n(&shared->n_fresh, __ATOMIC_ACQUIRE);
    const uint32_t end = ASYM_MIN(n_fresh + 1, (uint32_t)ASYM_PHASES_SLOTS);
    while (++slot < end) {
        const struct asym_phases_slot *s = &shared->slots[slot];
        const uint32_t state = __atomic_load_n(&s->word, __ATOMIC_RELAXED) & 255;
        if (state >= ASYM_PHASES_WAITING && __atomic_load_n(&s->since, __ATOMIC_RELAXED) + OLD_NS < now_ns)
            return slot;
    }
    return 0;
}

uint32_t asym_phases_runnable(const struct asym_phases *p, uint32_t app, int32_t *ret_tid)
{
    const struct asym_phases_shared *shared = p->shared;
    const uint64_t runnable = __atomic_load_n(&shared->apps[app % ASYM_PHASES_APP_RECORDS].runnable, __ATOMIC_RELAXED);
    const uint32_t n = (uint32_t)(runnable >> 32), slot = (uint32_t)runnable % ASYM_PHASES_SLOTS;
    *ret_tid = n == 1 ? (int32_t)__atomic_load_n(&shared->slots[slot].tid, __ATOMIC_RELAXED) : 0;
    return n;
}
