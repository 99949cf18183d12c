/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF program of waits-kernel.h. waits-shared.h has its memory.
 *
 * It hangs at sched_waking, not at sched_wakeup: that one runs on the CPU of the thread that is woken, where the current task is
 * any other. The programs of phases.bpf.c know since when a thread sleeps, and how long another one was runnable; this one reads
 * their maps. The unit test compiles this file as plain C.
 *
 * A thread waits for the one that wakes it only while that one is runnable. If the waker slept, too, it has waited for something
 * itself, and its own slot says for what.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#ifdef __bpf__
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define KERNEL_STRUCT __attribute__((preserve_access_index))
#endif

#include "waits-shared.h"

enum {
    PF_KTHREAD = 0x200000,
    STATE_MASK = 255, /* of the word of a slot */
};

struct bpf_local_storage;

struct task_struct {
    void *stack;
    unsigned int flags;
    struct bpf_local_storage *bpf_storage;
} KERNEL_STRUCT;

char gpl[] SEC("license") = "GPL";

struct asym_waits_shared waits;

#include "phases-tag.h"

/* This and the tags are those of phases.bpf.c: asymd puts them in their places before it loads this program. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct asym_phases_shared);
} phases SEC(".maps");

#ifdef __bpf__
struct pt_regs {
#ifdef __TARGET_ARCH_x86
    unsigned long orig_ax;
#endif
} KERNEL_STRUCT;

/* Pointers of this CPU as numbers: the verifier compares no others. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64[2]);
} numbers SEC(".maps");

/*
 * Returns whether an interrupt wakes, and not the current task, in which it came. An interrupt runs on a stack of its own; that
 * of the task ends at the registers that its program had. x86 handles an interrupt of a program in user mode on the stack of
 * the task, but then the task is in no system call. (So it is in a page fault, which seldom wakes a thread.) Arm always changes the
 * stack.
 *
 * It is a function of its own, because Linux 6.13 and later give a function with more than 64 bytes of locals another stack.
 */
static __noinline bool is_interrupt(struct task_struct *me)
{
    const __u32 zero = 0;
    volatile __u64 *number = bpf_map_lookup_elem(&numbers, &zero);
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(me);
    __u64 mark;
    if (!number)
        return true;
    number[0] = (__u64)&mark;
    number[1] = (__u64)regs;
    if (number[0] < (__u64)me->stack || number[0] >= number[1])
        return true;
#ifdef __TARGET_ARCH_x86
    return (long)regs->orig_ax == -1;
#else
    return false;
#endif
}
#endif

static __always_inline __u32 index_of(const struct tag *g)
{
    return g->slot & (ASYM_PHASES_SLOTS - 1);
}

/* A reader sees an odd number while a slot changes. */
static __always_inline void write_begin(struct asym_waits_slot *w)
{
    __sync_lock_test_and_set(&w->seq, w->seq | 1);
}

static __always_inline void write_end(struct asym_waits_slot *w)
{
    __sync_lock_test_and_set(&w->seq, (w->seq | 1) + 1);
}

static __always_inline bool is_current(const struct asym_waits_slot *w, __u32 tid)
{
    return w->begin == waits.begin && w->tid == tid;
}

static __always_inline void renew(struct asym_waits_slot *w, __u32 tid)
{
    w->begin = waits.begin;
    w->tid = tid;
    w->woken = w->slept_ns = w->kernel_ns = w->outside_ns = w->rest_ns = 0;
    for (int i = 0; i < ASYM_WAITS_PAIRS; i++)
        w->pairs[i].slot = 0;
}

/* Add the time to the pair of the waker. If there is no place, the pair with the least time leaves. */
static __always_inline void charge(struct asym_waits_slot *w, __u32 slot, __u32 tid, __u64 ns)
{
    struct asym_waits_pair *place = 0;
    for (int i = 0; i < ASYM_WAITS_PAIRS; i++) {
        struct asym_waits_pair *pair = &w->pairs[i];
        if (pair->slot == slot && pair->tid == tid) {
            pair->ns += ns;
            return;
        }
        if (!place || (place->slot && (!pair->slot || pair->ns < place->ns)))
            place = pair;
    }
    if (place->slot)
        w->rest_ns += place->ns;
    place->slot = slot;
    place->tid = tid;
    place->ns = ns;
}

/*
 * Returns the time since start during which the waker was runnable without a sleep. A thread that was not woken in this measurement
 * was runnable before it, or has begun since: it is not longer runnable than in its whole life.
 */
static __always_inline __u64 overlap(const struct asym_phases_slot *waker, const struct asym_waits_slot *w, __u64 start,
                                     __u64 now)
{
    const __u64 from = is_current(w, waker->tid) && w->woken > start ? w->woken : start;
    const __u64 life = waker->running_ns + waker->waiting_ns + (now > waker->since ? now - waker->since : 0);
    const __u64 ns = now > from ? now - from : 0;
    return ns < life ? ns : life;
}

/* The thread g sleeps no more. */
static __always_inline void end_sleep(struct asym_phases_shared *p, const struct tag *g, struct task_struct *me,
                                      bool by_kernel)
{
    const struct asym_phases_slot *t = &p->slots[index_of(g)];
    struct asym_waits_slot *w = &waits.slots[index_of(g)];
    const __u32 state = t->word & STATE_MASK, tid = t->tid;
    const __u64 now = bpf_ktime_get_ns();
    /* A thread can be woken before it sleeps. */
    if (state != ASYM_PHASES_BLOCKED && state != ASYM_PHASES_UNKNOWN)
        return;
    const __u64 woken = is_current(w, tid) ? w->woken : 0;
    __u64 start = t->since > waits.begin ? t->since : waits.begin;
    start = woken > start ? woken : start;
    const __u64 slept = now > start ? now - start : 0;
    const struct tag *h = by_kernel ? 0 : find(me);
    write_begin(w);
    if (!is_current(w, tid))
        renew(w, tid);
    w->woken = now;
    w->slept_ns += slept;
    if (by_kernel)
        w->kernel_ns += slept;
    else if (!h || h->app != g->app)
        w->outside_ns += slept;
    else {
        const struct asym_phases_slot *waker = &p->slots[index_of(h)];
        charge(w, index_of(h), waker->tid, overlap(waker, &waits.slots[index_of(h)], start, now));
    }
    write_end(w);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
    const __u32 zero = 0;
    const struct tag *g = find(p);
    if (!g)
        return 0;
    struct asym_phases_shared *shared = bpf_map_lookup_elem(&phases, &zero);
    struct task_struct *me = bpf_get_current_task_btf();
    if (shared)
        end_sleep(shared, g, me, me->flags & PF_KTHREAD || is_interrupt(me));
    return 0;
}
