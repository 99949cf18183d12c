/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF programs as plain C, without a kernel: counts, times, events and their limits, and what is lost or comes twice. */
#include "phases-plain.h"

#include "linux/observe/phases.bpf.c"

#include "linux/observe/phases-list.h"
#include "support/test.h"

enum { APP = 7, TGID = 100, TASKS = 64, EVENTS = 1 << 16, US = 1000, MS = 1000000 };

/* Above the layout's own ids; prev_state of the kernel. */
enum { SLEEPS = 1, ENDS = TASK_DEAD };

static struct task_struct task[TASKS];
static struct tag tag_at[TASKS];
static struct timer timer_at[ASYM_PHASES_APP_RECORDS];
static struct settings settings_at[ASYM_PHASES_SLOTS];
static uint64_t due[ASYM_PHASES_APP_RECORDS];
static uint32_t stack[ASYM_PHASES_SLOTS], n_stack;
static struct asym_phases_record got[EVENTS];
static uint32_t n_got, room, n_woken;
static bool no_storage;
static struct asym_phases kernel = {.shared = &shared};
static struct pid numbers = {.level = 0};
static struct task_struct idle;

static void *map_at(const void *map, const uint32_t *key)
{
    if (map == &settings)
        return *key < ASYM_PHASES_SLOTS ? &settings_at[*key] : NULL;
    assert_ptr_equal(map, &timers);
    return *key < ASYM_PHASES_APP_RECORDS ? &timer_at[*key] : NULL;
}

static int pop(uint32_t *ret)
{
    if (n_stack == 0)
        return -1;
    *ret = stack[--n_stack];
    return 0;
}

static void push(uint32_t slot)
{
    assert_true(slot > 0 && slot < ASYM_PHASES_SLOTS && n_stack < ASYM_PHASES_SLOTS);
    stack[n_stack++] = slot;
}

static void repeat(uint32_t n, long (*fn)(uint32_t i, void *ctx))
{
    for (uint32_t i = 0; i < n && fn(i, NULL) == 0; i++)
        continue;
}

static struct tag *storage_of(struct task_struct *p, const struct tag *tag, int flags)
{
    if (flags && interrupt)
        interrupt(p);
    if (p->bpf_storage || !flags || no_storage)
        return (struct tag *)p->bpf_storage;
    tag_at[p - task] = *tag;
    p->bpf_storage = (struct bpf_local_storage *)&tag_at[p - task];
    return &tag_at[p - task];
}

static void forget_storage(struct task_struct *p)
{
    p->bpf_storage = NULL;
}

static void call_once(void (**which)(void))
{
    void (*const call)(void) = *which;
    *which = NULL;
    if (call)
        call();
}

static void at_barrier(void)
{
    call_once(&interrupt_change);
}

static uint64_t read_ns(void)
{
    call_once(&interrupt_clock);
    return clock_ns;
}

static void *reserve(void)
{
    call_once(&interrupt_emit);
    return n_got < room ? &got[n_got++] : NULL;
}

static void submit(uint64_t flags)
{
    assert_true(flags == BPF_RB_FORCE_WAKEUP || flags == BPF_RB_NO_WAKEUP);
    n_woken += flags == BPF_RB_FORCE_WAKEUP;
}

static int timer_start(void *timer, uint64_t ns)
{
    due[(struct timer *)timer - timer_at] = clock_ns + ns;
    return 0;
}

static void limits(uint64_t gap_us, uint64_t settle_us, uint64_t rate)
{
    shared.gap_ns = gap_us * US;
    shared.settle_ns = settle_us * US;
    shared.pair_ns = UINT64_C(2000000000) / rate;
}

static int set_up(void **state __attribute__((unused)))
{
    memset(&shared, 0, sizeof shared);
    memset(settings_at, 0, sizeof settings_at);
    memset(due, 0, sizeof due);
    memset(task, 0, sizeof task);
    for (int i = 0; i < TASKS; i++)
        task[i] = (struct task_struct){
            .static_prio = 120, .pid = TGID + i, .tgid = TGID, .group_leader = &task[0], .thread_pid = &numbers};
    n_stack = n_got = n_woken = 0;
    room = EVENTS;
    no_storage = false;
    interrupt = NULL;
    interrupt_change = interrupt_emit = interrupt_clock = NULL;
    current = &task[0];
    current_cpu = 0;
    clock_ns = UINT64_C(1000000000);
    limits(1000, 200, 1000);
    return 0;
}

#define TEST_F(name) TEST_WITH(name, set_up, NULL)

/* Let time pass, with the timers that are due in it. */
static void pass(uint64_t us)
{
    const uint64_t end = clock_ns + us * US;
    for (uint32_t app = APP; due[app] && due[app] <= end;) {
        clock_ns = due[app];
        due[app] = 0;
        on_timer(NULL, &app, &timer_at[app]);
    }
    clock_ns = end;
}

static void follow_all(uint32_t n, uint32_t app)
{
    shared.tgid = TGID;
    shared.app = app;
    shared.apps[app].holey = 1;
    for (uint32_t i = 0; i < n; i++)
        iter_follow(&(struct bpf_iter__task){&task[i]});
    iter_follow(&(struct bpf_iter__task){NULL});
}

static void reconcile_all(uint32_t n)
{
    uint32_t slot = 0;
    shared.round++;
    shared.apps[APP].missed = 0;
    for (uint32_t i = 0; i < n; i++)
        iter_reconcile(&(struct bpf_iter__task){&task[i]});
    iter_reconcile(&(struct bpf_iter__task){NULL});
    shared.apps[APP].holey = shared.apps[APP].missed;
    do
        slot = asym_phases_list_old(&shared, slot, clock_ns);
    while (slot && shared.slots[slot].round == shared.round);
    shared.stale = slot;
}

static void wake(int i)
{
    task[i].on_rq = 1;
    on_wakeup(&task[i]);
}

static void run(int i)
{
    on_switch(false, &idle, &task[i], 0);
    task[i].on_cpu = 1;
}

static void stop(int i, unsigned int state)
{
    task[i].on_rq = state == 0;
    task[i].exit_state = state == ENDS ? 16 : 0;
    on_switch(false, &task[i], &idle, state);
    task[i].on_cpu = 0;
}

static void start(int i)
{
    wake(i);
    run(i);
}

/* Follow n threads, the first of which run. */
static void follow_running(uint32_t n, int n_running)
{
    follow_all(n, APP);
    for (int i = 0; i < n_running; i++)
        start(i);
}

/* Two threads run, and what was told of it is forgotten. */
static void start_both(void)
{
    start(0);
    start(1);
    for (int i = 0; i < 10; i++)
        pass(1000);
    n_got = 0;
}

static uint32_t n_runnable(void)
{
    int32_t tid;
    return asym_phases_runnable(&kernel, APP, &tid);
}

static struct asym_phases *begin_reading(void)
{
    memset(kernel.threads, 0, sizeof kernel.threads);
    asym_phases_list_begin(&kernel, &shared);
    return &kernel;
}

static size_t read_list(struct asym_phases *l, const struct asym_phases_thread **ret_threads,
                        const uint32_t **ret_slots)
{
    const size_t n = asym_phases_list_find(&shared);
    run_settings(NULL);
    asym_phases_list_read(l, clock_ns, true, ret_threads, ret_slots);
    return n;
}

/* The thread as asymd sees it; tid 0: it is not there. */
static struct asym_phases_thread seen(int i)
{
    struct asym_phases *l = begin_reading();
    const struct asym_phases_thread *t;
    const uint32_t *slots;
    struct asym_phases_thread found = {0};
    const size_t n = read_list(l, &t, &slots);
    for (size_t k = 0; k < n; k++)
        if (t[slots[k]].tid == task[i].pid)
            found = t[slots[k]];
    return found;
}

static void expect(uint32_t n, int tid_index)
{
    assert_int_equal(n_got, n);
    assert_int_equal(got[n - 1].app, APP);
    assert_int_equal(got[n - 1].tid, tid_index < 0 ? 0 : TGID + tid_index);
}

TEST_F(a_thread_that_is_not_followed_changes_nothing)
{
    start(0);
    stop(0, SLEEPS);
    on_fork(&task[0], &task[1]);
    on_exec(&task[0]);
    reconcile_all(2);
    assert_int_equal(n_runnable() + n_got + shared.n_threads + shared.n_fresh, 0);
}

TEST_F(the_first_serial_phase_is_told_at_once_and_its_end_too)
{
    follow_all(3, APP);
    start_both();
    stop(0, SLEEPS);
    expect(1, 1);
    assert_int_equal(got[0].changed_ns, clock_ns);
    pass(500);
    start(2);
    expect(2, -1);
    assert_int_equal(got[1].changed_ns, clock_ns);
    assert_int_equal(n_runnable(), 2);
}

TEST_F(where_nobody_answers_ends_they_wake_nobody_and_the_next_phase_does)
{
    follow_all(3, APP);
    start_both();
    for (int quiet = 0; quiet < 2; quiet++) {
        shared.quiet_ends = (uint8_t)quiet;
        n_got = n_woken = 0;
        stop(0, SLEEPS);
        assert_true(n_got == 1 && n_woken == 1);
        start(0);
        expect(2, -1);
        assert_int_equal(n_woken, 2 - quiet);
        pass(5000);
        stop(0, SLEEPS);
        assert_int_equal(n_woken, 3 - quiet);
        start(0);
        pass(5000);
    }
}

TEST_F(with_a_rate_of_0_none_is_told)
{
    shared.pair_ns = 0;
    follow_all(3, APP);
    start_both();
    stop(0, SLEEPS);
    pass(5000);
    start(2);
    assert_int_equal(n_got, 0);
    assert_int_equal(shared.apps[APP].n_timers, 0);
    assert_int_equal(n_runnable(), 2);
}

static void wake_the_first(void)
{
    wake(0);
}

TEST_F(a_phase_that_another_cpu_ends_while_it_is_told_is_told_to_end)
{
    follow_all(2, APP);
    start_both();
    interrupt_emit = wake_the_first;
    stop(0, SLEEPS);
    assert_int_equal(got[0].tid, TGID + 1);
    expect(2, -1);
    assert_int_equal(shared.apps[APP].told, 0);
}

TEST_F(a_serial_thread_that_sleeps_is_told_once_and_another_one_that_follows_it_too)
{
    follow_all(3, APP);
    for (int i = 0; i < 100; i++) {
        start(0);
        pass(5000);
        stop(0, SLEEPS);
        pass(5000);
    }
    expect(1, 0);
    start(1);
    expect(2, 1);
    assert_int_equal(shared.apps[APP].n_timers, 0);
}

TEST_F(a_program_of_one_thread_has_no_phases)
{
    follow_running(1, 1);
    pass(5000);
    assert_int_equal(n_got, 0);
}

/* Two threads that alternate: one is runnable alone for alone_us, then both for both_us. */
static void flicker(int times, uint64_t alone_us, uint64_t both_us)
{
    for (int i = 0; i < times; i++) {
        stop(i % 2, SLEEPS);
        pass(alone_us);
        start(i % 2);
        pass(both_us);
    }
}

TEST_F(a_program_that_flickers_settles_first)
{
    follow_running(2, 2);
    flicker(100, 25, 25);
    n_got = 0;
    stop(0, SLEEPS);
    pass(150);
    assert_int_equal(n_got, 0);
    /* The timer has backed off by now. */
    pass(ASYM_PHASES_BACK_OFF * 200);
    expect(1, 1);
    assert_true(got[0].changed_ns < clock_ns);
}

TEST_F(a_few_short_phases_after_a_quiet_while_are_told_at_once)
{
    follow_all(2, APP);
    start_both();
    for (int i = 0; i < 10; i++) {
        n_got = 0;
        flicker(ASYM_PHASES_CALM, 10, 10);
        assert_int_equal(n_got, 2 * ASYM_PHASES_CALM);
        flicker(1, 10, 10);
        assert_int_equal(n_got, 2 * ASYM_PHASES_CALM);
        pass(10000);
    }
}

TEST_F(flicker_of_20000_a_second_is_held_to_its_rate_and_costs_few_timers)
{
    limits(1000, 10, 100);
    follow_all(2, APP);
    start_both();
    const uint64_t begin = clock_ns;
    for (int i = 0; i < 10; i++)
        flicker(20000, 25, 25);
    const double seconds = (double)(clock_ns - begin) / 1e9;
    /* Each phase lasts longer than the settle time, so the rate alone holds them. */
    assert_true(n_got > 0.9 * 100 * seconds && n_got <= 100 * (seconds + 0.25) + 2);
    assert_true(shared.apps[APP].n_limited > 0);
    set_up(NULL);
    limits(1000, 200, 100);
    follow_all(2, APP);
    start_both();
    for (int i = 0; i < 10; i++)
        flicker(20000, 25, 25);
    /* None of the phases lasts for the settle time: only those of the beginning are told. */
    assert_int_equal(n_got, 2 * ASYM_PHASES_CALM);
    assert_true((double)shared.apps[APP].n_timers < 400 * seconds);
}

TEST_F(a_phase_that_the_rate_holds_back_is_told_later)
{
    limits(0, 0, 10);
    follow_running(2, 2);
    flicker(10, 10, 10);
    n_got = 0;
    stop(0, SLEEPS);
    assert_int_equal(n_got, 0);
    pass(1000000);
    expect(1, 1);
}

TEST_F(a_spurious_wake_up_changes_nothing)
{
    follow_running(2, 1);
    pass(1000);
    wake(0);
    wake(1);
    wake(1);
    pass(1000);
    assert_int_equal(n_runnable(), 2);
    assert_true(seen(0).running_ns == 2 * MS && seen(0).waiting_ns == 0);
    assert_true(seen(1).is_runnable && seen(1).running_ns == 0 && seen(1).waiting_ns == 1 * MS);
}

TEST_F(a_lost_wake_up_is_mended_by_the_switch)
{
    follow_running(2, 1);
    stop(0, SLEEPS);
    task[0].on_rq = 1;
    run(0);
    assert_int_equal(n_runnable(), 1);
    assert_int_equal(shared.apps[APP].n_repaired, 1);
    set_up(NULL);
    follow_all(3, APP);
    start_both();
    stop(2, SLEEPS);
    task[0].on_rq = 0;
    on_switch(false, &task[0], &task[2], SLEEPS);
    assert_int_equal(n_runnable(), 2);
    assert_int_equal(n_got, 0);
}

TEST_F(a_lost_switch_is_mended_by_the_wake_up)
{
    follow_running(2, 1);
    task[0].on_rq = task[0].on_cpu = 0;
    pass(1000);
    wake(0);
    pass(1000);
    assert_int_equal(n_runnable(), 1);
    assert_true(seen(0).waiting_ns == 1 * MS);
    assert_int_equal(shared.apps[APP].n_repaired, 1);
}

TEST_F(what_is_lost_is_mended_by_the_reconciliation)
{
    follow_running(3, 2);
    stop(1, SLEEPS);
    task[0].on_rq = task[0].on_cpu = 0;
    task[1].on_rq = 1;
    task[2].on_rq = 1;
    reconcile_all(3);
    assert_int_equal(n_runnable(), 2);
    assert_true(!seen(0).is_runnable && seen(1).is_runnable && seen(2).is_runnable);
    assert_int_equal(shared.apps[APP].n_repaired, 3);
    reconcile_all(3);
    assert_int_equal(shared.apps[APP].n_repaired, 3);
}

TEST_F(a_thread_that_sleeps_on_the_run_queue_is_not_runnable)
{
    task[0].on_rq = 1;
    task[0].se.sched_delayed = 1;
    task[1].on_rq = 1;
    follow_all(2, APP);
    assert_int_equal(n_runnable(), 1);
    assert_true(seen(1).is_runnable);
}

TEST_F(threads_that_run_when_following_begins_are_known_and_those_that_sleep_are_not)
{
    task[0].on_rq = task[0].on_cpu = 1;
    task[1].on_rq = 1;
    follow_all(3, APP);
    assert_int_equal(shared.n_met, 3);
    assert_int_equal(n_runnable(), 2);
    pass(1000);
    assert_true(seen(0).running_ns == 1 * MS);
    assert_true(seen(1).running_ns == 0 && seen(1).waiting_ns == 1 * MS);
    assert_true(seen(2).tid && !seen(2).is_runnable && seen(2).running_ns + seen(2).waiting_ns == 0);
    start(2);
    pass(1000);
    assert_true(seen(2).running_ns == 1 * MS);
}

TEST_F(preempted_threads_wait)
{
    follow_running(2, 1);
    pass(1000);
    on_switch(true, &task[0], &idle, SLEEPS);
    pass(2000);
    assert_int_equal(n_runnable(), 1);
    assert_true(seen(0).running_ns == 1 * MS && seen(0).waiting_ns == 2 * MS);
}

TEST_F(a_thread_that_a_signal_keeps_from_sleep_waits)
{
    follow_running(2, 1);
    on_switch(false, &task[0], &idle, SLEEPS);
    pass(1000);
    assert_true(n_runnable() == 1 && seen(0).waiting_ns == 1 * MS);
    run(0);
    assert_int_equal(shared.apps[APP].n_repaired, 0);
}

TEST_F(a_cpu_that_goes_from_thread_to_thread_of_a_program_is_no_phase)
{
    follow_all(3, APP);
    start_both();
    wake(2);
    stop(1, SLEEPS);
    task[0].on_rq = 0;
    on_switch(false, &task[0], &task[2], SLEEPS);
    assert_int_equal(n_runnable(), 1);
    expect(1, 2);
}

TEST_F(new_threads_are_followed_and_children_are_not)
{
    follow_running(1, 1);
    on_fork(&task[0], &task[1]);
    assert_true(seen(1).tid && !seen(1).is_runnable && seen(1).tgid == TGID && seen(1).app == APP);
    on_wakeup_new(&task[1]);
    assert_int_equal(n_runnable(), 2);
    task[2].tgid = task[2].pid;
    on_fork(&task[0], &task[2]);
    assert_int_equal(shared.n_threads, 2);
    /* The iterator came first. */
    on_fork(&task[0], &task[1]);
    assert_true(shared.n_threads == 2 && shared.apps[APP].n_full == 0);
}

static void enter_too(struct task_struct *p)
{
    interrupt = NULL;
    on_fork(&task[0], p);
}

TEST_F(a_thread_that_the_fork_and_the_iterator_find_at_once_has_one_slot)
{
    follow_all(1, APP);
    interrupt = enter_too;
    shared.n_met = 0;
    iter_follow(&(struct bpf_iter__task){&task[1]});
    assert_int_equal(shared.n_threads, 2);
    assert_int_equal(n_stack, 1);
    assert_true(shared.n_met == 1 && shared.n_failed == 0 && shared.apps[APP].n_full == 0);
}

TEST_F(a_dead_thread_frees_its_slot_and_is_counted_no_more)
{
    follow_all(3, APP);
    start_both();
    const uint32_t slot = tag_at[1].slot;
    stop(1, ENDS);
    assert_true(n_runnable() == 1 && shared.n_threads == 2 && shared.apps[APP].n_threads == 2);
    expect(1, 0);
    assert_int_equal(seen(1).tid, 0);
    wake(1);
    reconcile_all(3);
    assert_int_equal(n_runnable(), 1);
    on_fork(&task[0], &task[3]);
    assert_int_equal(tag_at[3].slot, slot);
    assert_true(seen(3).running_ns == 0 && seen(3).critical_ns == 0);
}

TEST_F(a_new_thread_in_the_slot_of_a_serial_one_is_told_anew)
{
    follow_all(3, APP);
    start_both();
    stop(0, SLEEPS);
    expect(1, 1);
    stop(1, ENDS);
    pass(5000);
    on_fork(&task[2], &task[3]);
    assert_int_equal(tag_at[3].slot, 2);
    start(3);
    expect(2, 3);
}

TEST_F(the_threads_of_a_process_whose_leader_has_ended_are_found)
{
    follow_all(2, APP);
    start(1);
    start(0);
    stop(0, ENDS);
    reconcile_all(3);
    assert_true(seen(2).tid && seen(2).tgid == TGID);
    set_up(NULL);
    task[0].exit_state = 16;
    follow_all(2, APP);
    assert_int_equal(shared.n_met, 1);
    reconcile_all(3);
    assert_int_equal(shared.n_threads, 2);
}

TEST_F(a_thread_whose_end_was_lost_goes_with_the_reconciliation)
{
    follow_all(3, APP);
    start(1);
    task[1].on_rq = task[1].on_cpu = 0;
    task[1].exit_state = 16;
    reconcile_all(3);
    assert_true(shared.n_threads == 2 && n_runnable() == 0);
    /* This one is reaped, too: no iterator meets it. */
    start(2);
    pass(600000);
    for (int i = 0; i < 2; i++)
        reconcile_all(2);
    assert_true(shared.n_threads == 1 && n_runnable() == 0 && n_stack == 2);
    /* Another thread has its slot by now. */
    shared.stale = 1;
    reconcile_all(1);
    assert_int_equal(shared.n_threads, 1);
}

TEST_F(an_exec_by_a_thread_changes_its_number)
{
    follow_running(2, 2);
    stop(0, ENDS);
    const int was = task[1].pid;
    task[1].pid = TGID;
    on_exec(&task[1]);
    assert_int_equal(seen(1).tid, TGID);
    task[1].pid = was;
    assert_int_equal(seen(1).tid, 0);
}

TEST_F(a_thread_has_the_cpu_that_it_got_last)
{
    task[1].on_rq = task[1].on_cpu = 1;
    follow_all(2, APP);
    assert_true(seen(0).cpu == -1 && seen(1).cpu == -1 && seen(1).is_runnable);
    current_cpu = 300;
    start(0);
    assert_int_equal(seen(0).cpu, 300);
    current_cpu = 2;
    stop(0, SLEEPS);
    wake(0);
    assert_int_equal(seen(0).cpu, 300);
    run(0);
    assert_int_equal(seen(0).cpu, 2);
    stop(0, ENDS);
    iter_follow(&(struct bpf_iter__task){&task[2]});
    assert_int_equal(seen(2).cpu, -1);
}

TEST_F(an_exec_and_another_name_renew_a_thread)
{
    follow_all(2, APP);
    const uint16_t was = seen(1).renewed;
    start(1);
    stop(1, SLEEPS);
    assert_int_equal(seen(1).renewed, was);
    on_rename(&task[1]);
    assert_int_equal(seen(1).renewed, was + 1);
    on_exec(&task[1]);
    assert_int_equal(seen(1).renewed, was + 2);
    on_rename(&task[0]);
    on_rename(&task[5]);
    assert_int_equal(seen(1).renewed, was + 2);
}

TEST_F(the_mark_of_a_process_lasts_for_two_intervals)
{
    struct task_struct other = {.tgid = TGID + 1};
    asym_phases_begin_interval(&kernel);
    assert_false(asym_phases_slept(&kernel, TGID) || asym_phases_slept(&kernel, other.tgid));
    for (int round = 0; round < 3; round++) {
        on_switch(false, &other, &task[5], 0);
        for (int i = 0; i < 3; i++) {
            assert_false(asym_phases_slept(&kernel, TGID));
            asym_phases_begin_interval(&kernel);
        }
        assert_true(asym_phases_slept(&kernel, TGID));
        assert_true(asym_phases_slept(&kernel, other.tgid));
        on_switch(false, &task[5], &other, 0);
        assert_true(asym_phases_slept(&kernel, TGID));
        assert_false(asym_phases_slept(&kernel, other.tgid));
        for (int i = 0; i < 3; i++)
            asym_phases_begin_interval(&kernel);
    }
    /* In another PID namespace asymd does not know the kernel's numbers. */
    shared.level = 1;
    assert_false(asym_phases_slept(&kernel, TGID));
}

/* Where they begin anew, the mark of a process that sleeps has to become old again. */
TEST_F(the_numbers_of_intervals_begin_anew)
{
    const int round = ASYM_PHASES_LAST - ASYM_PHASES_FIRST + 1;
    asym_phases_begin_interval(&kernel);
    assert_false(asym_phases_slept(&kernel, TGID));
    for (int i = 1; i < 3 * round; i++) {
        asym_phases_begin_interval(&kernel);
        assert_int_equal(asym_phases_slept(&kernel, TGID), i % round > 1);
    }
    assert_true(asym_phases_doze(&kernel));
    on_switch(false, &idle, &task[5], 0);
    assert_int_equal(n_woken, 1);
}

/* Asked once, in an interval of its own: the next sample looks at the clock of each process for which it has asked. */
TEST_F(the_first_process_that_runs_in_a_doze_wakes_asymd)
{
    struct task_struct other = {.tgid = TGID + 1};
    asym_phases_begin_interval(&kernel);
    assert_false(asym_phases_slept(&kernel, TGID));
    on_switch(false, &idle, &other, 0);
    assert_true(asym_phases_doze(&kernel));
    on_switch(false, &other, &idle, 0);
    on_switch(false, &idle, &other, 0);
    assert_int_equal(n_got, 0);
    on_switch(false, &other, &task[5], 0);
    assert_true(n_got == 1 && n_woken == 1 && got[0].app == 0 && got[0].tid == 0);
    on_switch(false, &task[5], &idle, SLEEPS);
    on_switch(false, &idle, &task[6], 0);
    assert_int_equal(n_got, 1);
    assert_false(asym_phases_doze(&kernel));
    asym_phases_begin_interval(&kernel);
    on_switch(false, &task[5], &task[6], 0);
    assert_false(asym_phases_doze(&kernel));
    asym_phases_begin_interval(&kernel);
    assert_true(asym_phases_doze(&kernel));
    /* A sample ends it. */
    asym_phases_begin_interval(&kernel);
    on_switch(false, &idle, &task[5], 0);
    assert_int_equal(n_got, 1);
    /* In another PID namespace asymd has asked for other processes. */
    shared.level = 1;
    asym_phases_begin_interval(&kernel);
    assert_false(asym_phases_doze(&kernel));
}

TEST_F(numbers_are_those_of_the_namespace_of_asymd)
{
    struct {
        struct pid pid;
        struct upid more[2];
    } inner = {.pid = {.level = 2, .numbers = {{1000}}}, .more = {{200}, {30}}}, own = {.pid = {.level = 1}};
    struct task_struct asymd = {.thread_pid = &own.pid};
    current = &asymd;
    iter_reconcile(&(struct bpf_iter__task){NULL});
    task[0].thread_pid = &inner.pid;
    follow_all(1, APP);
    task[0].pid = 200;
    assert_int_equal(seen(0).tid, 200);
}

TEST_F(when_all_slots_are_used_no_phase_is_told_until_one_is_free)
{
    shared.n_fresh = ASYM_PHASES_SLOTS - 3;
    follow_all(2, APP);
    assert_int_equal(shared.n_failed, 0);
    start_both();
    stop(1, SLEEPS);
    n_got = 0;
    on_fork(&task[0], &task[2]);
    assert_true(shared.n_threads == 2 && shared.apps[APP].n_full == 1 && shared.apps[APP].holey);
    start(1);
    expect(1, -1);
    pass(5000);
    stop(1, SLEEPS);
    pass(5000);
    assert_int_equal(n_got, 1);
    follow_all(4, APP);
    assert_int_equal(shared.n_failed, 2);
    start(1);
    stop(1, ENDS);
    task[2].on_rq = 1;
    reconcile_all(3);
    assert_true(seen(2).is_runnable && n_runnable() == 2);
    stop(0, SLEEPS);
    expect(2, 2);
}

TEST_F(a_process_without_storage_is_not_followed)
{
    no_storage = true;
    follow_all(2, APP);
    assert_true(shared.n_failed == 2 && shared.n_met == 0 && shared.n_threads == 0 && n_stack == 1);
}

TEST_F(a_full_ring_is_counted)
{
    follow_all(2, APP);
    start_both();
    room = 1;
    stop(0, SLEEPS);
    start(0);
    assert_true(n_got == 1 && shared.n_lost == 1);
    pass(5000);
    stop(0, SLEEPS);
    assert_true(n_got == 1 && shared.n_lost == 2 && shared.apps[APP].told == 0);
    room = EVENTS;
    start(0);
    pass(5000);
    stop(1, SLEEPS);
    expect(2, 0);
}

TEST_F(unfollowed_threads_leave_nothing_behind)
{
    follow_running(3, 2);
    stop(1, SLEEPS);
    follow_all(3, 0);
    assert_true(n_runnable() == 0 && shared.n_threads == 0 && shared.apps[APP].n_threads == 0 && n_stack == 3);
    assert_true(shared.apps[APP].told == 0 && shared.apps[APP].alone == 0);
    stop(0, SLEEPS);
    start(1);
    assert_int_equal(n_runnable(), 0);
}

static void unfollow_now(void)
{
    follow_all(2, 0);
}

TEST_F(an_event_that_finds_the_slot_just_before_it_is_freed_counts_nothing)
{
    follow_all(2, APP);
    interrupt_change = unfollow_now;
    wake(0);
    assert_int_equal(n_runnable(), 0);
    assert_int_equal(shared.n_threads, 0);
}

TEST_F(an_event_that_finds_the_tag_just_before_the_slot_is_gone_counts_nothing)
{
    follow_all(2, APP);
    interrupt_clock = unfollow_now;
    wake(0);
    assert_true(n_runnable() == 0 && shared.slots[0].word == 0);
    follow_running(2, 1);
    interrupt_clock = unfollow_now;
    stop(0, ENDS);
    assert_true(n_runnable() == 0 && shared.n_threads == 0 && shared.apps[APP].n_threads == 0 && n_stack == 2);
}

static void move_now(void)
{
    follow_all(2, APP);
}

TEST_F(an_event_in_whose_middle_the_process_moves_counts_in_the_new_application)
{
    follow_all(2, APP + 1);
    interrupt_change = move_now;
    wake(0);
    assert_true(n_runnable() == 1 && shared.apps[APP + 1].runnable == 0 && seen(0).app == APP);
}

TEST_F(a_process_moves_with_its_counts)
{
    follow_all(2, APP + 1);
    start_both();
    follow_all(2, APP);
    assert_true(n_runnable() == 2 && shared.apps[APP + 1].runnable == 0);
    assert_true(shared.apps[APP + 1].n_threads == 0 && shared.apps[APP].n_threads == 2);
    pass(1000);
    assert_int_equal(seen(0).critical_ns, 11 * MS / 2);
    assert_int_equal(seen(0).running_ns, 11 * MS);
    assert_int_equal(seen(0).app, APP);
    assert_int_equal(n_got, 0);
    stop(1, SLEEPS);
    expect(1, 0);
}

TEST_F(a_phase_in_which_following_begins_is_told_if_it_lasts)
{
    task[0].on_rq = task[0].on_cpu = 1;
    follow_all(3, APP);
    assert_int_equal(n_got, 0);
    pass(1000);
    expect(1, 0);
}

static uint32_t draw(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* A plain count beside the programs: 0 sleeps, 1 waits, 2 runs. */
struct plain {
    int state[8];
    long double critical[8], runnable[8];
};

static void plain_pass(struct plain *c, uint64_t us)
{
    int n = 0;
    for (int i = 0; i < 8; i++)
        n += c->state[i] > 0;
    for (int i = 0; i < 8; i++)
        if (c->state[i]) {
            c->critical[i] += (long double)us * US / n;
            c->runnable[i] += us * US;
        }
    pass(us);
}

TEST_F(after_100000_random_changes_critical_is_that_of_a_plain_count)
{
    struct plain c = {.state = {0}};
    uint32_t seed = 1;
    limits(1000, 200, 1000000);
    follow_all(8, APP);
    for (int k = 0; k < 100000; k++) {
        const int i = (int)(draw(&seed) % 8);
        if (c.state[i] == 0)
            wake(i);
        else if (c.state[i] == 1)
            run(i);
        else
            stop(i, draw(&seed) % 4 ? SLEEPS : 0);
        c.state[i] = !task[i].on_rq ? 0 : task[i].on_cpu ? 2 : 1;
        plain_pass(&c, draw(&seed) % 500);
        if (k % 10000 == 0)
            reconcile_all(8);
        n_got = 0;
    }
    for (int i = 0; i < 8; i++) {
        const struct asym_phases_thread t = seen(i);
        const long double off = (long double)t.critical_ns - c.critical[i];
        assert_true(off < 100 && off > -100);
        assert_int_equal(t.running_ns + t.waiting_ns, (uint64_t)c.runnable[i]);
    }
    assert_int_equal(shared.apps[APP].n_repaired, 0);
}

TEST_F(clocks_of_two_cpus_that_cross_do_not_drift)
{
    follow_running(2, 1);
    for (int k = 0; k < 1000; k++) {
        pass(100);
        start(1);
        clock_ns -= 50;
        stop(1, SLEEPS);
        clock_ns += 50;
    }
    /* It was alone for 100 us each time. */
    const uint64_t critical = seen(0).critical_ns;
    assert_true(critical > 99 * MS && critical <= 100 * MS + 50 * 1000);
    assert_true(seen(1).critical_ns <= 50 * 1000);
}

TEST_F(changes_can_be_counted_when_their_number_runs_over)
{
    follow_all(2, APP);
    shared.slots[tag_at[0].slot].seq = UINT32_MAX - 1;
    const uint32_t before = seen(0).seq;
    start(0);
    pass(1000);
    stop(0, SLEEPS);
    assert_in_range((uint32_t)(seen(0).seq - before) / 2, 2, 3);
}

/* The slots that a list reads now, in one number: 1 for the first one, 2, 4. */
static unsigned read_now(struct asym_phases *l, const struct asym_phases_thread **ret)
{
    const uint32_t *slots;
    unsigned which = 0;
    for (size_t n = read_list(l, ret, &slots); n > 0; n--)
        which |= 1u << (slots[n - 1] - 1);
    return which;
}

TEST_F(a_reader_sees_times_that_never_go_back)
{
    follow_running(2, 1);
    pass(1000);
    struct asym_phases *l = begin_reading();
    const struct asym_phases_thread *t;
    const uint32_t slot = tag_at[0].slot;
    assert_int_equal(read_now(l, &t), 3);
    assert_int_equal(t[slot].critical_ns, 1 * MS);
    /* A program on another CPU is in the middle of a change. */
    shared.slots[slot].seq++;
    shared.slots[slot].running_ns = 0;
    assert_int_equal(read_now(l, &t), 1);
    assert_true(t[slot].running_ns == 1 * MS && t[slot].critical_ns == 1 * MS);
    shared.slots[slot].seq++;
    shared.apps[APP].last = clock_ns;
    assert_int_equal(read_now(l, &t), 1);
    assert_int_equal(t[slot].critical_ns, 1 * MS);
}

TEST_F(a_reader_reads_what_has_changed_and_what_is_runnable)
{
    struct asym_phases *l = begin_reading();
    const struct asym_phases_thread *t;
    assert_int_equal(read_now(l, &t), 0);
    follow_all(3, APP);
    assert_int_equal(read_now(l, &t), 7);
    assert_int_equal(read_now(l, &t), 0);
    start(1);
    for (int i = 1; i < 4; i++) {
        pass(1000);
        assert_int_equal(read_now(l, &t), 2);
        assert_int_equal(t[2].running_ns, i * MS);
    }
    stop(1, SLEEPS);
    assert_int_equal(read_now(l, &t), 2);
    assert_int_equal(read_now(l, &t), 0);
    assert_true(t[2].tid == task[1].pid && t[2].running_ns == 3 * MS && !t[2].is_runnable);
    /* From here to there within an interval. */
    start(0);
    pass(1000);
    stop(0, SLEEPS);
    start(2);
    stop(2, ENDS);
    assert_int_equal(read_now(l, &t), 5);
    assert_true(t[1].running_ns == 1 * MS && t[3].tid == 0);
    assert_int_equal(read_now(l, &t), 0);
    follow_all(2, APP + 1);
    assert_int_equal(read_now(l, &t), 3);
    assert_int_equal(t[1].app, APP + 1);
}

/* It is read again, although the program has found that asymd will read it. */
TEST_F(a_slot_that_a_reader_met_in_a_change_is_read_again)
{
    follow_all(2, APP);
    struct asym_phases *l = begin_reading();
    const struct asym_phases_thread *t;
    (void)read_now(l, &t);
    start(0);
    pass(1000);
    stop(0, SLEEPS);
    shared.slots[tag_at[0].slot].seq++;
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_now(l, &t), 1);
    assert_int_equal(t[1].running_ns, 0);
    shared.slots[tag_at[0].slot].seq++;
    assert_int_equal(read_now(l, &t), 1);
    assert_int_equal(t[1].running_ns, 1 * MS);
    assert_int_equal(read_now(l, &t), 0);
}

TEST_F(a_thread_that_a_reader_meets_in_its_first_change_is_listed)
{
    follow_running(2, 1);
    pass(1000);
    shared.slots[tag_at[0].slot].seq++;
    assert_true(seen(0).tid == TGID && seen(0).app == APP && seen(0).running_ns == 0);
}

TEST_F(a_slot_that_a_second_writer_left_odd_can_be_read_after_the_next_change)
{
    follow_all(2, APP);
    shared.slots[tag_at[1].slot].seq = 5;
    start(1);
    assert_int_equal(shared.slots[tag_at[1].slot].seq % 2, 0);
    pass(1000);
    assert_int_equal(seen(1).running_ns, 1 * MS);
}

/* Thread 0 runs, so it is read. Returns whether asymd finds its settings changed. */
static bool has_changed(struct asym_phases *l)
{
    static uint32_t last;
    const struct asym_phases_thread *t;
    (void)read_now(l, &t);
    const uint32_t before = last;
    last = t[tag_at[0].slot].settings;
    return before != last;
}

TEST_F(a_reader_sees_that_settings_have_changed)
{
    follow_all(2, APP);
    struct asym_phases *l = begin_reading();
    start(0);
    assert_true(has_changed(l));
    assert_false(has_changed(l));
    task[0].static_prio++;
    assert_true(has_changed(l));
    task[0].policy = 3;
    assert_true(has_changed(l));
    for (int i = 0; i < MASK_WORDS; i++) {
        task[0].cpus_mask.bits[i] = 1ul << 63;
        assert_true(has_changed(l));
        task[0].cpus_mask.bits[i] = 1;
        assert_true(has_changed(l));
        assert_false(has_changed(l));
    }
    task[1].static_prio++;
    assert_false(has_changed(l));
}

/* asymd keeps the number by thread. The place may have had another one, and the thread another place. */
TEST_F(no_two_threads_and_no_two_places_have_the_same_settings)
{
    uint32_t of[6], n = 0;
    follow_running(2, 2);
    of[n++] = seen(0).settings;
    of[n++] = seen(1).settings;
    stop(1, ENDS);
    task[1].bpf_storage = task[2].bpf_storage = NULL;
    on_fork(&task[0], &task[2]);
    start(2);
    of[n++] = seen(2).settings;
    follow_all(1, 0);
    follow_all(1, APP);
    of[n++] = seen(0).settings;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k <= i; k++)
            assert_true(of[i] != 0 && (i == k || of[i] != of[k]));
}

TEST_F(without_the_program_no_settings_are_known)
{
    follow_running(2, 1);
    assert_true(seen(0).settings != 0);
    struct asym_phases *l = begin_reading();
    const struct asym_phases_thread *t;
    const uint32_t *slots;
    (void)asym_phases_list_find(&shared);
    asym_phases_list_read(l, clock_ns, false, &t, &slots);
    assert_int_equal(t[tag_at[0].slot].settings, 0);
}

TEST_MAIN
