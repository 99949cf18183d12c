/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF programs of phases-kernel.h. phases-shared.h has their memory.
 *
 * They hang at each switch and each wake-up of the machine. The test is whether the task has any BPF storage: only followed threads
 * do, or those that another BPF program has marked. For all others a switch just marks the process of the next thread, once in the
 * interval between two samples, if asymd has asked for it.
 *
 * Only the fork and the iterators make storage: a switch or a wake-up holds locks of the scheduler, under which an allocation may
 * wake a thread. No event tells of a nice value, a policy or a mask: asymd has a program compare them. The unit test compiles this
 * file as plain C, with the kernel's functions as functions of the test.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#ifdef __bpf__
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* The members of the kernel's structs that the programs read. The loader finds where they are in the running kernel (CO-RE). */
#define KERNEL_STRUCT __attribute__((preserve_access_index))
#endif

#include "phases-shared.h"

enum {
    TASK_DEAD = 0x80, /* a flag of prev_state */
    MONOTONIC = 1,    /* CLOCK_MONOTONIC */
    MASK_WORDS = 16,  /* of a mask of CPUs; the kernel's may have more or fewer, but asymd knows no more CPUs */
    STATE_BITS = 8,
    STATE_MASK = (1 << STATE_BITS) - 1,
};

#define RUNNABLE_ONE ((__u64)1 << 32)

/* Odd: a word that differs gives another product. */
#define HASH_FACTOR 0x9e3779b97f4a7c15ull

struct bpf_local_storage;

struct sched_entity {
    unsigned char sched_delayed;
} KERNEL_STRUCT;

struct upid {
    int nr;
} KERNEL_STRUCT;

struct pid {
    unsigned int level;
    struct upid numbers[1];
} KERNEL_STRUCT;

struct cpumask {
    unsigned long bits[MASK_WORDS];
} KERNEL_STRUCT;

struct task_struct {
    int on_cpu, on_rq, static_prio;
    unsigned int policy;
    struct cpumask cpus_mask;
    struct sched_entity se;
    int exit_state;
    int pid, tgid;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    struct bpf_local_storage *bpf_storage;
} KERNEL_STRUCT;

struct bpf_iter__task {
    struct task_struct *task;
} KERNEL_STRUCT;

struct timer {
    struct bpf_timer timer;
};

#include "phases-tag.h"

char gpl[] SEC("license") = "GPL";

struct asym_phases_shared shared;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, ASYM_PHASES_APP_RECORDS);
    __type(key, __u32);
    __type(value, struct timer);
} timers SEC(".maps");

/* Free slots. The last one comes first, so that the used slots stay together. */
struct {
    __uint(type, BPF_MAP_TYPE_STACK);
    __uint(max_entries, ASYM_PHASES_SLOTS);
    __uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

/*
 * Nice value, policy and mask of the thread in a slot, as the last look found them. asymd does not read it: the address stays in
 * the kernel.
 */
struct settings {
    __u64 task; /* address of its struct */
    __u64 mask; /* a hash: two masks that differ in one word have two */
    __u32 sched;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, ASYM_PHASES_SLOTS);
    __type(key, __u32);
    __type(value, struct settings);
} settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, ASYM_PHASES_RING);
} events SEC(".maps");

static __always_inline struct asym_phases_slot *slot_at(__u32 slot)
{
    return &shared.slots[slot & (ASYM_PHASES_SLOTS - 1)];
}

static __always_inline struct asym_phases_app *app_at(__u32 app)
{
    return &shared.apps[app & (ASYM_PHASES_APP_RECORDS - 1)];
}

static __always_inline bool emit(__u32 app, __u32 slot, __u64 changed)
{
    struct asym_phases_record *r = bpf_ringbuf_reserve(&events, sizeof *r, 0);
    if (!r) {
        __sync_fetch_and_add(&shared.n_lost, 1);
        return false;
    }
    r->changed_ns = changed;
    r->app = app;
    r->tid = slot ? slot_at(slot)->tid : 0;
    /* Behind one that did not wake asymd the kernel's own rule would not wake it, either. */
    bpf_ringbuf_submit(r, slot || !app || !shared.quiet_ends ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
    return true;
}

/* A second thread is runnable. */
static __always_inline void end_phase(struct asym_phases_app *a, __u32 app, __u64 now)
{
    a->alone = 0;
    if (a->told && __sync_lock_test_and_set(&a->told, 0))
        emit(app, 0, now);
}

static __noinline void start_timer(struct asym_phases_app *a, __u32 app, __u64 ns)
{
    if (a->armed || __sync_val_compare_and_swap(&a->armed, 0, 1))
        return;
    struct timer *t = bpf_map_lookup_elem(&timers, &app);
    if (!t || bpf_timer_start(&t->timer, ns, 0))
        a->armed = 0;
}

/*
 * Tell that the thread is runnable alone. If the rate is used up, the timer does it later. So it does if another CPU tells just
 * now, because both would pay once.
 */
static __noinline void tell(struct asym_phases_app *a, __u32 app, __u32 slot, __u64 now)
{
    const __u64 was = a->paid, paid = was > now ? was : now;
    if (paid - now > ASYM_PHASES_CREDIT) {
        a->n_limited++;
        start_timer(a, app, paid - now - ASYM_PHASES_CREDIT);
        return;
    }
    if (__sync_val_compare_and_swap(&a->paid, was, paid + shared.pair_ns) != was) {
        start_timer(a, app, shared.settle_ns);
        return;
    }
    if (!emit(app, slot, a->low_since))
        return;
    __sync_lock_test_and_set(&a->told, slot);
    /* Another CPU has found nothing told, if it ended the phase meanwhile. */
    if (a->runnable >> 32 > 1)
        end_phase(a, app, now);
}

/*
 * A phase that has begun takes one from the bucket, which one more comes to in each gap. Returns whether one was there. The bucket
 * of a program that flickers is never deeper in debt than one gap.
 */
static __always_inline bool is_calm(struct asym_phases_app *a, __u64 now)
{
    const __u64 gap = shared.gap_ns, full = now - ASYM_PHASES_CALM * gap;
    const __u64 then = (a->calm > full ? a->calm : full) + gap;
    a->calm = then < now + gap ? then : now + gap;
    return then <= now;
}

/*
 * The thread in the slot is the only runnable one. If it was that before, and has slept meanwhile, its phase goes on. A program
 * that is calm is told at once; one that flickers is told of a phase that has lasted for the settle time.
 */
static __always_inline void begin_phase(struct asym_phases_app *a, __u32 app, __u32 slot, __u64 now)
{
    const bool is_new = a->alone != slot;
    if (is_new) {
        a->alone = slot;
        a->low_since = now;
    }
    if (!shared.pair_ns || a->told == slot || a->n_threads < 2 || a->holey)
        return;
    const __u64 age = now - a->low_since, settle = shared.settle_ns;
    if (is_new && is_calm(a, now)) {
        a->back_off /= 2;
        tell(a, app, slot, now);
    } else if (age >= settle)
        tell(a, app, slot, now);
    else
        start_timer(a, app, settle - age > a->back_off ? settle - age : a->back_off);
}

/*
 * The timer of an application. If the phase that started it is over, the program flickers, and the next timer waits for longer:
 * else the program would cost thousands of vain calls a second. If every thread sleeps, the next one that runs looks.
 */
static int on_timer(void *map __attribute__((unused)), __u32 *key, struct timer *t __attribute__((unused)))
{
    const __u32 app = *key;
    struct asym_phases_app *a = app_at(app);
    const __u64 now = bpf_ktime_get_ns(), runnable = a->runnable, n = runnable >> 32, settle = shared.settle_ns;
    const __u64 age = now - a->low_since;
    const bool is_young = n == 1 && age < settle;
    a->n_timers++;
    a->armed = 0;
    if (n > 1 || is_young) {
        const __u64 longer = a->back_off ? 2 * a->back_off : settle, most = ASYM_PHASES_BACK_OFF * settle;
        a->back_off = longer < most ? longer : most;
    }
    if (!shared.pair_ns || n != 1 || a->told == (__u32)runnable || a->holey)
        return 0;
    if (is_young)
        start_timer(a, app, a->back_off);
    else {
        a->back_off = 0;
        tell(a, app, (__u32)runnable, now);
    }
    return 0;
}

/* Add the time since the last change, in which n threads were runnable. Returns the virtual time now. */
static __always_inline __u64 advance(struct asym_phases_app *a, __u64 n, __u64 now)
{
    const __u64 last = __sync_lock_test_and_set(&a->last, now);
    if (n == 0)
        return a->v;
    /* Another CPU may have read its clock later and come earlier. Then the time goes back, and the sum stays right. */
    const bool is_back = now < last;
    __u64 by = (is_back ? last - now : now - last) << ASYM_PHASES_FRACTION;
    /* A division takes longer than the rest. */
    if (n > 1)
        by /= n;
    if (is_back)
        by = -by;
    return __sync_fetch_and_add(&a->v, by) + by;
}

static __always_inline void arrive(struct asym_phases_slot *t, __u32 slot, __u32 app, __u64 now)
{
    struct asym_phases_app *a = app_at(app);
    const __u64 n = __sync_fetch_and_add(&a->runnable, RUNNABLE_ONE + slot) >> 32;
    t->entered = advance(a, n, now);
    if (n == 0)
        begin_phase(a, app, slot, now);
    else if (n == 1)
        end_phase(a, app, now);
}

static __always_inline void depart(struct asym_phases_slot *t, __u32 slot, __u32 app, __u64 now)
{
    struct asym_phases_app *a = app_at(app);
    const __u64 one = RUNNABLE_ONE + slot, left = __sync_fetch_and_add(&a->runnable, -one) - one;
    t->critical += advance(a, (left >> 32) + 1, now) - t->entered;
    if (left >> 32 == 1)
        begin_phase(a, app, (__u32)left, now);
}

static __always_inline bool is_runnable_word(__u32 word)
{
    return (word & STATE_MASK) >= ASYM_PHASES_WAITING;
}

static __always_inline __u32 word_of(__u32 app, __u32 state)
{
    return app << STATE_BITS | state;
}

/*
 * asymd reads the slot at its next sample. It writes 0 first, by an exchange, and so did the caller write the word: where this
 * finds 1, asymd meets the number that is odd until the slot is whole.
 */
static __always_inline void touch(__u32 slot)
{
    __u8 *at = &shared.touched[slot & (ASYM_PHASES_SLOTS - 1)];
    if (!*at)
        *at = 1;
}

/* The word of the slot has changed. The time since the last change belongs to the state that has ended. */
static __always_inline void book(struct asym_phases_slot *t, __u32 slot, __u32 old, __u32 word, __u64 now)
{
    touch(slot);
    const __u32 from = old & STATE_MASK;
    const __u64 spent = now > t->since ? now - t->since : 0;
    const bool was = is_runnable_word(old), is = is_runnable_word(word);
    if (from == ASYM_PHASES_RUNNING)
        t->running_ns += spent;
    else if (from == ASYM_PHASES_WAITING)
        t->waiting_ns += spent;
    t->since = now;
    if (was && is && old >> STATE_BITS == word >> STATE_BITS)
        return;
    if (was)
        depart(t, slot, old >> STATE_BITS, now);
    if (is)
        arrive(t, slot, word >> STATE_BITS, now);
}

/*
 * A reader sees an odd number while a slot changes. x86 keeps the order of stores, so there a barrier for the compiler is enough.
 * The exchange of the word between the two orders the first one everywhere. An iterator may write beside an event: then the number
 * is even too soon, but never odd for ever.
 */
static __always_inline void write_begin(struct asym_phases_slot *t)
{
    t->seq |= 1;
    barrier();
}

static __always_inline void write_end(struct asym_phases_slot *t)
{
#ifdef __TARGET_ARCH_x86
    barrier();
    t->seq = (t->seq | 1) + 1;
#else
    __sync_lock_test_and_set(&t->seq, (t->seq | 1) + 1);
#endif
}

/* asymd follows the thread no more, or in another application, since this program found its slot. It must not stay counted. */
static __noinline void correct(struct tag *g, struct asym_phases_slot *t, __u32 slot, __u32 state, __u64 now)
{
    const __u32 word = g->slot == slot ? word_of(g->app, state) : 0;
    book(t, slot, __sync_lock_test_and_set(&t->word, word), word, now);
}

static __always_inline void change(struct tag *g, __u32 state, __u64 now)
{
    const __u32 slot = g->slot, app = g->app, word = word_of(app, state);
    struct asym_phases_slot *t = slot_at(slot);
    /* The slot may be gone since find(). */
    if (!slot || t->word == word)
        return;
    write_begin(t);
    book(t, slot, __sync_lock_test_and_set(&t->word, word), word, now);
    if (g->slot != slot || g->app != app)
        correct(g, t, slot, state, now);
    write_end(t);
}

/* Change a word that no event has changed meanwhile: an event knows better. */
static __always_inline bool mend(struct asym_phases_slot *t, __u32 slot, __u32 old, __u32 word, __u64 now)
{
    write_begin(t);
    const bool is_mine = __sync_val_compare_and_swap(&t->word, old, word) == old;
    if (is_mine)
        book(t, slot, old, word, now);
    write_end(t);
    return is_mine;
}

static __noinline int follow_wakeup(struct task_struct *p)
{
    struct tag *g = find(p);
    if (!g)
        return 0;
    const __u32 state = slot_at(g->slot)->word & STATE_MASK;
    /* A thread can be woken before it has left its CPU. Then it does not leave it. */
    if (state == ASYM_PHASES_RUNNING && p->on_cpu)
        return 0;
    if (state == ASYM_PHASES_RUNNING)
        app_at(g->app)->n_repaired++;
    change(g, ASYM_PHASES_WAITING, bpf_ktime_get_ns());
    return 0;
}

/* The rest is a function of its own, so that this one saves no registers for it where the thread is not followed. */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *p)
{
    return p->bpf_storage ? follow_wakeup(p) : 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *p)
{
    struct tag *g = find(p);
    if (g)
        change(g, ASYM_PHASES_WAITING, bpf_ktime_get_ns());
    return 0;
}

static __always_inline void forget_phase(struct asym_phases_app *a, __u32 slot)
{
    if (a->alone == slot)
        a->alone = 0;
    __sync_val_compare_and_swap(&a->told, slot, 0);
}

/* Free a slot, which the caller has taken out of its tag by an exchange: the end of a thread and asymd may both want to. */
static __noinline void leave(__u32 slot, __u32 app, __u64 now)
{
    struct asym_phases_slot *t = slot_at(slot);
    struct asym_phases_app *a = app_at(app);
    write_begin(t);
    book(t, slot, __sync_lock_test_and_set(&t->word, 0), 0, now);
    t->tid = 0;
    write_end(t);
    forget_phase(a, slot);
    __sync_fetch_and_sub(&a->n_threads, 1);
    __sync_fetch_and_sub(&shared.n_threads, 1);
    bpf_map_push_elem(&free_slots, &slot, 0);
}

static __always_inline void switch_in(struct tag *g, __u64 now)
{
    struct asym_phases_slot *t = slot_at(g->slot);
    if ((t->word & STATE_MASK) == ASYM_PHASES_BLOCKED)
        app_at(g->app)->n_repaired++;
    t->cpu = (__u16)(bpf_get_smp_processor_id() + 1);
    change(g, ASYM_PHASES_RUNNING, now);
}

/* Whether the kernel has the thread on a run queue, and not only because one that sleeps may stay there (Linux 6.12). */
static __always_inline bool is_queued(struct task_struct *p)
{
    if (!p->on_rq)
        return false;
    return !bpf_core_field_exists(p->se.sched_delayed) || !p->se.sched_delayed;
}

/* A thread that wants to sleep while a signal is pending stays runnable, and the kernel may still hand out the state of sleep. */
static __always_inline void switch_out(struct task_struct *p, struct tag *g, bool preempt, unsigned int state,
                                       __u64 now)
{
    const bool is_asleep = !preempt && state && !is_queued(p);
    if (is_asleep && state & TASK_DEAD) {
        /* The tag of a dead leader says to which application the other threads of its process belong. */
        const __u32 slot = __sync_lock_test_and_set(&g->slot, 0);
        if (slot)
            leave(slot, g->app, now);
    } else
        change(g, is_asleep ? ASYM_PHASES_BLOCKED : ASYM_PHASES_WAITING, now);
}

/* asymd does not ask for the CPU clock of a process whose mark is old. */
static __always_inline __u8 *mark_of(const struct task_struct *p)
{
    return &shared.marks[(__u32)p->tgid & (ASYM_PHASES_MARKS - 1)];
}

/* Returns true if asymd asks for the process, and it has not got a CPU in this interval. */
static __always_inline bool is_unmarked(const struct task_struct *p)
{
    const __u8 mark = *mark_of(p);
    return mark && mark != shared.interval;
}

static __always_inline void mark(const struct task_struct *next)
{
    if (!is_unmarked(next))
        return;
    *mark_of(next) = shared.interval;
    if (__sync_lock_test_and_set(&shared.watch, ASYM_PHASES_RAN) == ASYM_PHASES_RINGS)
        emit(0, 0, 0);
}

static __noinline int see_switch(struct task_struct *prev, struct task_struct *next, bool preempt, unsigned int state)
{
    mark(next);
    struct tag *g = find(prev), *h = find(next);
    const __u64 now = bpf_ktime_get_ns();
    /* The next one comes first: if its wake-up was lost, this is still no moment with one thread less. */
    if (h)
        switch_in(h, now);
    if (g)
        switch_out(prev, g, preempt, state, now);
    return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
    /* clang would test both pointers by an OR of them, which the verifier refuses. */
    bool any = prev->bpf_storage != 0;
    barrier_var(any);
    return any || next->bpf_storage || is_unmarked(next) ? see_switch(prev, next, preempt, prev_state) : 0;
}

/* The number of the thread in the PID namespace of asymd. The verifier refuses arithmetic with a pointer to a kernel's struct. */
static __always_inline __u32 number_of(struct task_struct *p)
{
    const __u32 level = shared.level;
    int number = p->pid;
    const char *pid;
    if (level && !bpf_core_read(&pid, sizeof pid, &p->thread_pid)) {
        const char *numbers = pid + bpf_core_field_offset(struct pid, numbers);
        bpf_probe_read_kernel(&number, sizeof number, numbers + level * bpf_core_type_size(struct upid));
    }
    return (__u32)number;
}

static __always_inline __u32 take_slot(void)
{
    __u32 slot;
    if (!bpf_map_pop_elem(&free_slots, &slot))
        return slot;
    if (shared.n_fresh >= ASYM_PHASES_SLOTS - 1)
        return 0;
    slot = __sync_fetch_and_add(&shared.n_fresh, 1) + 1;
    return slot < ASYM_PHASES_SLOTS ? slot : 0;
}

/* One thread more. The first one finds nothing of an application that had this number before. */
static __always_inline void join_app(struct asym_phases_app *a)
{
    if (__sync_fetch_and_add(&a->n_threads, 1) > 0)
        return;
    a->alone = a->told = 0;
    a->calm = a->paid = a->back_off = 0;
    a->missed = 0;
}

static __always_inline void fill(__u32 slot, __u32 app, struct task_struct *p, __u32 tgid, __u64 now)
{
    struct asym_phases_slot *t = slot_at(slot);
    struct settings *s = bpf_map_lookup_elem(&settings, &slot);
    struct asym_phases_app *a = app_at(app);
    const __u32 word = word_of(app, ASYM_PHASES_UNKNOWN);
    if (s)
        *s = (struct settings){.task = (unsigned long)p};
    join_app(a);
    __sync_fetch_and_add(&shared.n_threads, 1);
    write_begin(t);
    book(t, slot, __sync_lock_test_and_set(&t->word, word), word, now);
    t->running_ns = t->waiting_ns = t->critical = 0;
    t->cpu = t->renewed = 0;
    t->round = shared.round;
    t->tgid = tgid;
    t->tid = number_of(p);
    write_end(t);
}

/*
 * Give a thread that has no tag a slot, in state UNKNOWN. Returns its tag; NULL: no place or no memory is left, or another CPU
 * has given it one meanwhile.
 */
static __always_inline struct tag *enter(struct task_struct *p, __u32 app, __u32 tgid)
{
    const __u64 now = bpf_ktime_get_ns();
    struct tag tag = {take_slot(), app}, *g = 0;
    if (tag.slot) {
        fill(tag.slot, app, p, tgid, now);
        g = bpf_task_storage_get(&tags, p, &tag, BPF_LOCAL_STORAGE_GET_F_CREATE);
        if (g && g->slot == tag.slot)
            return g;
        leave(tag.slot, app, now);
    }
    if (!g)
        app_at(app)->missed = app_at(app)->holey = 1;
    return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    struct tag *g = find(parent);
    if (g && child->tgid == parent->tgid && !tag_of(child) && !enter(child, g->app, slot_at(g->slot)->tgid) &&
        !tag_of(child))
        app_at(g->app)->n_full++;
    return 0;
}

/* A thread that is not the leader takes over the number of the leader. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p)
{
    struct tag *g = find(p);
    if (g) {
        slot_at(g->slot)->tid = number_of(p);
        slot_at(g->slot)->renewed++;
    }
    return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *p)
{
    struct tag *g = find(p);
    if (g)
        slot_at(g->slot)->renewed++;
    return 0;
}

/* The state by the kernel's own record. */
static __always_inline __u32 state_of(struct task_struct *p, __u32 asleep)
{
    if (!is_queued(p))
        return asleep;
    return p->on_cpu ? ASYM_PHASES_RUNNING : ASYM_PHASES_WAITING;
}

static __always_inline bool adopt(struct task_struct *p, __u32 app, __u32 tgid)
{
    struct tag *g = enter(p, app, tgid);
    if (!g)
        return false;
    const __u32 state = state_of(p, ASYM_PHASES_UNKNOWN);
    struct asym_phases_slot *t = slot_at(g->slot);
    if (state != ASYM_PHASES_UNKNOWN)
        mend(t, g->slot, word_of(app, ASYM_PHASES_UNKNOWN), word_of(app, state), bpf_ktime_get_ns());
    return true;
}

static __always_inline void move(struct tag *g, __u32 app)
{
    const __u32 slot = g->slot;
    struct asym_phases_slot *t = slot_at(slot);
    const __u64 now = bpf_ktime_get_ns();
    struct asym_phases_app *from = app_at(g->app), *to = app_at(app);
    from->holey = 1;
    g->app = app;
    join_app(to);
    for (int i = 0; i < 4; i++) {
        const __u32 old = t->word;
        if (!slot || mend(t, slot, old, word_of(app, old & STATE_MASK), now))
            break;
    }
    forget_phase(from, slot);
    __sync_fetch_and_sub(&from->n_threads, 1);
}

static __always_inline void release(struct task_struct *p, struct tag *g)
{
    const __u32 slot = __sync_lock_test_and_set(&g->slot, 0);
    app_at(g->app)->holey = 1;
    if (slot)
        leave(slot, g->app, bpf_ktime_get_ns());
    bpf_task_storage_delete(&tags, p);
}

static __always_inline void follow_thread(struct task_struct *p, __u32 app)
{
    struct tag *g = tag_of(p), dead = {0, app};
    if (p->exit_state) {
        if (g && !g->slot)
            g->app = app;
        else if (!g && p->pid == p->tgid)
            bpf_task_storage_get(&tags, p, &dead, BPF_LOCAL_STORAGE_GET_F_CREATE);
        return;
    }
    if (!g || !g->slot) {
        if (adopt(p, app, shared.tgid)) {
            shared.n_met++;
            return;
        }
        g = tag_of(p); /* its fork, on another CPU, may have given it a place meanwhile */
    }
    if (!g || !g->slot) {
        shared.n_failed++;
        app_at(app)->n_full++;
        return;
    }
    if (g->app != app)
        move(g, app);
    shared.n_met++;
}

/* All threads of the process are there. The phase that they are in is told if it lasts. */
static __always_inline void finish(__u32 app)
{
    struct asym_phases_app *a = app_at(app);
    const __u64 runnable = a->runnable;
    a->holey = a->missed;
    if (runnable >> 32 == 1)
        begin_phase(a, app, (__u32)runnable, bpf_ktime_get_ns());
}

/*
 * Carries out the order of asymd, for each thread of the process. Threads that come and go one by one are no phases of the program:
 * asymd has marked its application as one with holes, which the last call ends. The next reconciliation does for one that threads
 * have left.
 */
SEC("iter/task")
int iter_follow(struct bpf_iter__task *ctx)
{
    struct task_struct *p = ctx->task;
    const __u32 app = shared.app;
    if (!p) {
        if (app)
            finish(app);
        return 0;
    }
    if (!app) {
        struct tag *g = tag_of(p);
        if (g)
            release(p, g);
        return 0;
    }
    struct timer *t = bpf_map_lookup_elem(&timers, &app);
    if (t && !bpf_timer_init(&t->timer, &timers, MONOTONIC))
        bpf_timer_set_callback(&t->timer, on_timer);
    follow_thread(p, app);
    return 0;
}

static __always_inline void check(struct task_struct *p, struct tag *g)
{
    const __u32 slot = g->slot;
    struct asym_phases_slot *t = slot_at(slot);
    const __u32 old = t->word, is = word_of(g->app, state_of(p, ASYM_PHASES_BLOCKED));
    const __u64 now = bpf_ktime_get_ns();
    if (!slot)
        return;
    t->round = shared.round;
    if (p->exit_state && !p->on_rq && !p->on_cpu) {
        if (__sync_lock_test_and_set(&g->slot, 0))
            leave(slot, g->app, now);
    } else if (is_runnable_word(old) != is_runnable_word(is) && mend(t, slot, old, is, now))
        app_at(g->app)->n_repaired++;
}

/*
 * Compares each followed thread with the kernel's own record, and follows those of their threads that found no place before. The
 * last call frees a slot whose thread is gone, and notes who reads.
 */
SEC("iter/task")
int iter_reconcile(struct bpf_iter__task *ctx)
{
    struct task_struct *p = ctx->task;
    if (!p) {
        shared.level = bpf_get_current_task_btf()->thread_pid->level;
        const __u32 stale = shared.stale;
        const struct asym_phases_slot *t = slot_at(stale);
        if (stale && t->tid && t->round + 1 < shared.round)
            leave(stale, t->word >> STATE_BITS, bpf_ktime_get_ns());
        return 0;
    }
    struct tag *g = tag_of(p);
    if (g) {
        if (g->slot)
            check(p, g);
        return 0;
    }
    struct task_struct *leader = p->group_leader;
    struct tag *l = tag_of(leader);
    if (l && l->app && !p->exit_state)
        adopt(p, l->app, number_of(leader));
    return 0;
}

/* No thread has a static_prio of 0, so the first look at a thread finds a change. */
static __always_inline bool read_settings(const struct task_struct *p, struct settings *ret)
{
    const __u32 size = bpf_core_type_size(struct cpumask), most = MASK_WORDS * sizeof(__u64);
    __u64 words[MASK_WORDS] = {0};
    unsigned int policy;
    int prio;
    if (bpf_core_read(&prio, sizeof prio, &p->static_prio) || bpf_core_read(&policy, sizeof policy, &p->policy) ||
        bpf_core_read(words, size < most ? size : most, &p->cpus_mask))
        return false;
    ret->sched = policy << 8 | (__u32)prio;
    ret->mask = 0;
    for (int i = 0; i < MASK_WORDS; i++)
        ret->mask = (ret->mask ^ words[i]) * HASH_FACTOR;
    return true;
}

/*
 * A thread that ends meanwhile may have left its memory to another. Then it has no settings that matter. One that cannot be read
 * may have changed.
 */
static long compare_settings(__u32 i, void *none __attribute__((unused)))
{
    const __u32 slot = shared.listed[i & (ASYM_PHASES_SLOTS - 1)];
    struct settings *s = bpf_map_lookup_elem(&settings, &slot), now = {0};
    if (!s || !s->task)
        return 0;
    if (read_settings((const struct task_struct *)(unsigned long)s->task, &now) && now.sched == s->sched &&
        now.mask == s->mask)
        return 0;
    s->sched = now.sched;
    s->mask = now.mask;
    shared.settings[slot & (ASYM_PHASES_SLOTS - 1)] = ++shared.n_settings;
    return 0;
}

/* Carries out the order of asymd, in one system call for all threads. */
SEC("syscall")
int run_settings(void *ctx __attribute__((unused)))
{
    bpf_loop(shared.n_listed, compare_settings, 0, 0);
    return 0;
}
