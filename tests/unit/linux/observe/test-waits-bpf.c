/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF program that sees who wakes whom as plain C, without a kernel: maps are variables, the clock is one, too. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KERNEL_STRUCT
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, type)  __typeof__(type) *name
#define BPF_PROG(name, ...)                                                                                            \
    name(__VA_ARGS__);                                                                                                 \
    int name(__VA_ARGS__)

struct task_struct;
struct tag;

static uint64_t clock_ns;
static struct task_struct *current;
static bool in_interrupt;

static void *map_at(const void *map, const uint32_t *key);
static struct tag *storage_of(const struct task_struct *p);

#define bpf_ktime_get_ns()                         clock_ns
#define bpf_get_current_task_btf()                 current
#define bpf_map_lookup_elem(map, key)              map_at(map, key)
#define bpf_task_storage_get(map, task, tag, flag) storage_of(task)
#define is_interrupt(task)                         in_interrupt

#include "linux/observe/waits.bpf.c"

#include "linux/observe/waits-kernel.h"
#include "support/test.h"

enum { APP = 7, TGID = 100, TASKS = 16, MS = 1000000 };

static struct asym_phases_shared followed;
static struct task_struct task[TASKS];
static struct tag tag_at[TASKS];

static void *map_at(const void *map, const uint32_t *key)
{
    assert_ptr_equal(map, &phases);
    assert_int_equal(*key, 0);
    return &followed;
}

static struct tag *storage_of(const struct task_struct *p)
{
    return &tag_at[p - task];
}

static void become(int i, uint32_t state)
{
    struct asym_phases_slot *t = &followed.slots[i + 1];
    if (t->word >> 8 && (t->word & 255) >= ASYM_PHASES_WAITING)
        t->running_ns += clock_ns - t->since;
    t->word = APP << 8 | state;
    t->since = clock_ns;
}

/* Tasks 0 to TASKS - 1 have the slots from 1 on, and run. */
static int set_up(void **state __attribute__((unused)))
{
    memset(&followed, 0, sizeof followed);
    memset(&waits, 0, sizeof waits);
    memset(task, 0, sizeof task);
    clock_ns = UINT64_C(1000000000);
    in_interrupt = false;
    for (int i = 0; i < TASKS; i++) {
        tag_at[i] = (struct tag){(uint32_t)i + 1, APP};
        task[i].bpf_storage = (struct bpf_local_storage *)&tag_at[i];
        followed.slots[i + 1].tid = (uint32_t)(TGID + i);
        followed.slots[i + 1].tgid = TGID;
        become(i, ASYM_PHASES_RUNNING);
    }
    followed.n_fresh = TASKS;
    clock_ns += 1000 * (uint64_t)MS;
    waits.begin = clock_ns;
    return 0;
}

#define TEST_F(name) TEST_WITH(name, set_up, NULL)

static void pass(unsigned ms)
{
    clock_ns += ms * (uint64_t)MS;
}

static void wake(int i, int by)
{
    current = &task[by];
    on_waking(&task[i]);
    become(i, ASYM_PHASES_RUNNING);
}

static void sleep_for(int i, unsigned ms, int by)
{
    become(i, ASYM_PHASES_BLOCKED);
    pass(ms);
    wake(i, by);
}

struct found {
    struct asym_waits_thread thread;
    int tid, n;
};

static void keep(void *ctx, const struct asym_waits_thread *t)
{
    struct found *f = ctx;
    f->n++;
    if (t->tid == f->tid)
        f->thread = *t;
}

/* The thread as asymd sees it. */
static struct asym_waits_thread seen(int i)
{
    struct found f = {.tid = TGID + i};
    asym_waits_list(&waits, &followed, APP, clock_ns, keep, &f);
    assert_int_equal(f.thread.tid, TGID + i);
    return f.thread;
}

/* Returns the ms for which thread i has waited for thread k. */
static unsigned waited(int i, int k)
{
    const struct asym_waits_thread t = seen(i);
    for (size_t j = 0; j < t.n; j++)
        if (t.waits[j].tid == TGID + k)
            return (unsigned)(t.waits[j].ns / MS);
    return 0;
}

TEST_F(a_thread_waits_for_the_one_that_wakes_it)
{
    pass(5);
    sleep_for(0, 30, 1);
    sleep_for(0, 10, 2);
    sleep_for(0, 10, 1);
    assert_int_equal(waited(0, 1), 40);
    assert_int_equal(waited(0, 2), 10);
    assert_int_equal(waited(1, 0), 0);
    const struct asym_waits_thread t = seen(0);
    assert_int_equal(t.slept_ns, 50 * MS);
    assert_int_equal(t.kernel_ns + t.outside_ns + t.rest_ns + t.asleep_ns, 0);
    assert_int_equal(t.waits[0].tgid, TGID);
}

TEST_F(it_does_not_wait_for_a_waker_that_sleeps_itself)
{
    become(0, ASYM_PHASES_BLOCKED);
    pass(10);
    sleep_for(1, 20, 2);
    pass(3);
    wake(0, 1);
    assert_int_equal(waited(0, 1), 3);
    assert_int_equal(waited(1, 2), 20);
    assert_int_equal(seen(0).slept_ns, 33 * MS);
}

TEST_F(a_waker_that_has_begun_meanwhile_is_waited_for_since_then)
{
    become(0, ASYM_PHASES_BLOCKED);
    pass(10);
    followed.slots[2] = (struct asym_phases_slot){
        .word = APP << 8 | ASYM_PHASES_RUNNING, .tid = TGID + 1, .since = clock_ns};
    pass(4);
    become(1, ASYM_PHASES_WAITING);
    pass(2);
    wake(0, 1);
    assert_int_equal(waited(0, 1), 6);
}

TEST_F(a_sleep_that_the_kernel_ends_is_no_wait_for_a_thread)
{
    in_interrupt = true;
    sleep_for(0, 10, 1);
    in_interrupt = false;
    task[2].flags = PF_KTHREAD;
    sleep_for(0, 5, 2);
    assert_int_equal(seen(0).kernel_ns, 15 * MS);
    assert_int_equal(seen(0).slept_ns, 15 * MS);
    assert_int_equal(seen(0).n, 0);
}

TEST_F(a_waker_outside_of_the_application_has_no_name)
{
    tag_at[1].app = APP + 1;
    tag_at[2].slot = 0;
    task[3].bpf_storage = NULL;
    for (int by = 1; by <= 3; by++)
        sleep_for(0, 10, by);
    assert_int_equal(seen(0).outside_ns, 30 * MS);
    assert_int_equal(seen(0).n, 0);
}

TEST_F(a_thread_that_does_not_sleep_is_not_woken)
{
    pass(10);
    wake(0, 1);
    become(0, ASYM_PHASES_WAITING);
    pass(10);
    wake(0, 1);
    assert_int_equal(seen(0).slept_ns, 0);
    task[0].bpf_storage = NULL;
    sleep_for(0, 10, 1);
    assert_int_equal(waits.slots[1].slept_ns, 0);
}

TEST_F(a_second_waking_before_it_runs_counts_nothing_twice)
{
    become(0, ASYM_PHASES_BLOCKED);
    pass(10);
    current = &task[1];
    on_waking(&task[0]);
    pass(1);
    on_waking(&task[0]);
    assert_int_equal(seen(0).slept_ns, 11 * MS);
    assert_int_equal(waited(0, 1), 11);
}

TEST_F(a_sleep_counts_from_the_begin_of_the_measurement)
{
    become(0, ASYM_PHASES_BLOCKED);
    become(3, ASYM_PHASES_UNKNOWN);
    pass(100);
    waits.begin = clock_ns;
    pass(10);
    wake(0, 1);
    wake(3, 1);
    assert_int_equal(waited(0, 1), 10);
    assert_int_equal(waited(3, 1), 10);
    waits.begin = clock_ns;
    assert_int_equal(seen(0).slept_ns + seen(0).n, 0);
    sleep_for(0, 2, 1);
    assert_int_equal(waited(0, 1), 2);
}

TEST_F(a_slot_that_another_thread_has_now_begins_anew)
{
    sleep_for(0, 10, 1);
    followed.slots[2].tid = TGID + 50;
    sleep_for(0, 5, 1);
    assert_int_equal(waited(0, 1), 10);
    assert_int_equal(waited(0, 50), 5);
    /* The earlier thread of the slot has ended. */
    for (size_t i = 0; i < seen(0).n; i++)
        assert_int_equal(seen(0).waits[i].tgid, seen(0).waits[i].tid == TGID + 1 ? 0 : TGID);
    followed.slots[1].tid = TGID + 60;
    assert_int_equal(seen(60).n, 0);
    sleep_for(0, 3, 2);
    assert_int_equal(seen(60).slept_ns, 3 * MS);
}

TEST_F(of_many_wakers_those_that_are_waited_for_most_stay)
{
    for (unsigned round = 0; round < 20; round++)
        for (int by = 1; by < TASKS; by++)
            sleep_for(0, by < 4 ? 10 : 1, by);
    const struct asym_waits_thread t = seen(0);
    uint64_t sum = t.rest_ns;
    for (size_t i = 0; i < t.n; i++)
        sum += t.waits[i].ns;
    assert_int_equal(sum, t.slept_ns);
    assert_int_equal(t.n, ASYM_WAITS_PAIRS);
    for (int by = 1; by < 4; by++)
        assert_int_equal(waited(0, by), 200);
}

TEST_F(a_sleep_that_has_not_ended_is_said)
{
    sleep_for(0, 10, 1);
    pass(5);
    become(0, ASYM_PHASES_BLOCKED);
    pass(20);
    assert_int_equal(seen(0).asleep_ns, 20 * MS);
    assert_int_equal(seen(0).slept_ns, 30 * MS);
    assert_int_equal(seen(1).asleep_ns, 0);
}

TEST_F(only_the_threads_of_the_application_are_listed)
{
    struct found f = {.tid = 0};
    followed.slots[3].word = (APP + 1) << 8 | ASYM_PHASES_RUNNING;
    followed.slots[4].tid = 0;
    asym_waits_list(&waits, &followed, APP, clock_ns, keep, &f);
    assert_int_equal(f.n, TASKS - 2);
    /* A program that has lost its virtual CPU in the middle of a change. */
    sleep_for(0, 10, 1);
    waits.slots[1].seq |= 1;
    assert_int_equal(seen(0).slept_ns, 0);
}

TEST_MAIN
