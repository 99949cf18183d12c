/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests crash recovery against a fake kernel. restore searches the real /proc for threads with an inherited affinity. So
 * these have the TIDs of real, idle threads of this test. Their masks and nice values are fake.
 */
#include <dirent.h>
#include <pthread.h>

#include "base/mask.h"
#include "linux/enforce/ledger-internal.h"
#include "linux/enforce/enforce.h"
#include "support/fake-kernel.h"
#include "support/test.h"
#include "support/tree.h"

/* No real process has this number: kernel.pid_max is at most 4194304. */
#define TID     2000000000

#define SINCE   50000 /* when steering began, clock ticks */

#define KTHREAD 0x00200000u

enum { N_INHERITED = 2 };

static bool no_memory;

/* Each allocating function of the C library, which fails while there is no memory. */
#define ALLOCATES(type, name, arguments, values)                                                                       \
    type __real_##name arguments;                                                                                      \
    type __wrap_##name arguments;                                                                                      \
    type __wrap_##name arguments                                                                                       \
    {                                                                                                                  \
        errno = ENOMEM;                                                                                                \
        return no_memory ? NULL : __real_##name values;                                                                \
    }
ALLOCATES(void *, malloc, (size_t size), (size))
ALLOCATES(void *, calloc, (size_t n, size_t size), (n, size))
ALLOCATES(void *, realloc, (void *p, size_t size), (p, size))
ALLOCATES(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
ALLOCATES(DIR *, opendir, (const char *path), (path))

struct restore_fixture {
    struct tree tree;
    struct asym_ledger *ledger;
    struct fake_thread *self; /* the leader of this process; it started before the steering */
    struct fake_thread *inherited_affinity[N_INHERITED]; /* threads of this process; they started after it */
    pthread_t threads[N_INHERITED];
    int32_t tids[N_INHERITED];
    pthread_barrier_t begin, end;
    size_t next;
};

static void *be_there(void *fixture)
{
    struct restore_fixture *f = fixture;
    f->tids[__atomic_fetch_add(&f->next, 1, __ATOMIC_RELAXED)] = gettid();
    pthread_barrier_wait(&f->begin);
    pthread_barrier_wait(&f->end);
    return NULL;
}

static struct fake_thread *born_at(int32_t tid, uint64_t start, uint64_t mask)
{
    struct fake_thread *t = fake_kernel_thread(getpid(), tid, fake_mask(mask));
    t->start = start;
    return t;
}

static int higher_first(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x > y ? -1 : x < y;
}

/* The machine has CPUs 0-7. */
static void set_up(struct restore_fixture *f)
{
    fake_kernel_reset();
    tree_make(&f->tree);
    assert_int_equal(asym_ledger_open(f->tree.path, &f->ledger, NULL), 0);
    fake_kernel_cpus(f->ledger, "0-7", "0-7", "");
    pthread_barrier_init(&f->begin, NULL, N_INHERITED + 1);
    pthread_barrier_init(&f->end, NULL, N_INHERITED + 1);
    for (size_t i = 0; i < N_INHERITED; i++)
        assert_int_equal(pthread_create(&f->threads[i], NULL, be_there, f), 0);
    pthread_barrier_wait(&f->begin);
    /* /proc lists threads by TID. So the second of these threads is checked before the first. */
    qsort(f->tids, N_INHERITED, sizeof *f->tids, higher_first);
    f->self = born_at(getpid(), 1000, 0xff);
    for (size_t i = 0; i < N_INHERITED; i++)
        f->inherited_affinity[i] = born_at(f->tids[i], SINCE + 10, 0xf0);
}

static void tear_down(struct restore_fixture *f)
{
    pthread_barrier_wait(&f->end);
    for (size_t i = 0; i < N_INHERITED; i++)
        pthread_join(f->threads[i], NULL);
    pthread_barrier_destroy(&f->begin);
    pthread_barrier_destroy(&f->end);
    asym_ledger_close(f->ledger);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct restore_fixture, f, set_up, tear_down)

/* Adds an entry: a thread of this process with these originals, for which asymd set 0xf0. */
static struct asym_ledger_entry *on_record(struct restore_fixture *f, int32_t tid, uint64_t original, int8_t nice)
{
    const struct asym_taskid id = {tid, getpid(), 1000};
    struct asym_ledger_entry *e = asym_ledger_add(f->ledger, &id);
    assert_non_null(e);
    e->original = e->before = fake_mask(original);
    e->set = fake_mask(0xf0);
    e->original_nice = e->set_nice = e->before_nice = nice;
    e->since = SINCE;
    assert_int_equal(asym_ledger_note(f->ledger, e), 0);
    return e;
}

static struct asym_restore_report restore(struct restore_fixture *f)
{
    struct asym_restore_report report;
    asym_ledger_restore(f->ledger, &report);
    return report;
}

static void assert_mask(const struct fake_thread *t, uint64_t bits)
{
    const struct asym_mask want = fake_mask(bits);
    if (!asym_mask_equal(&t->mask, &want))
        fail_msg("thread %d: mask %#llx", t->tid, (unsigned long long)t->mask.w[0]);
}

TEST_F(each_thread_on_record_is_counted_once)
{
    static const struct {
        uint64_t mask;
        int refusal;
        bool gone;
        int8_t nice;
    } rows[] = {{0xf0, 0, false, 0},      {0xf0, 0, true, 0},  {0x81, 0, false, 0},
                {0xf0, -EPERM, false, 0}, {0xf0, 0, false, 0}, {0xf0, 0, false, 7}};
    for (size_t i = 0; i < N_INHERITED; i++)
        f->inherited_affinity[i]->mask = fake_mask(0xff);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        on_record(f, TID + (int32_t)i, 0x3f, 0);
        struct fake_thread *t = rows[i].gone ? NULL : born_at(TID + (int32_t)i, 1000, rows[i].mask);
        if (t)
            fake_kernel_fail(t, FAKE_SET_MASK, rows[i].refusal, 0);
        if (t && rows[i].nice)
            t->nice = rows[i].nice, asym_ledger_find(f->ledger, t->tid)->boosted = true;
    }
    const struct asym_restore_report report = restore(f);
    assert_int_equal(report.restored, 3);
    assert_int_equal(report.nice_kept, 1);
    assert_int_equal(report.gone, 1);
    assert_int_equal(report.foreign, 1);
    assert_int_equal(report.failed, 1);
    assert_int_equal(report.error, -EPERM);
    assert_int_equal(report.inherited, 0);
    assert_mask(fake_kernel_find(TID), 0x3f);
    assert_mask(fake_kernel_find(TID + 2), 0x81);
    assert_mask(fake_kernel_find(TID + 4), 0x3f);
    assert_mask(fake_kernel_find(TID + 5), 0x3f);
    assert_int_equal(fake_kernel_find(TID + 5)->nice, 7);
    assert_int_equal(asym_ledger_count(f->ledger), 1); /* the entry of the failed thread stays, for another try */
    assert_non_null(asym_ledger_find(f->ledger, TID + 3));
    fake_kernel_fail(fake_kernel_find(TID + 3), FAKE_SET_MASK, 0, 0);
    assert_int_equal(restore(f).restored, 1);
    assert_mask(fake_kernel_find(TID + 3), 0x3f);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

TEST_F(inherited_masks_are_found_and_replaced_by_those_of_the_creator)
{
    on_record(f, TID, 0x3f, 0); /* has exited */
    f->inherited_affinity[1]->mask = fake_mask(0x81);
    const struct asym_restore_report report = restore(f);
    assert_int_equal(report.gone, 1);
    assert_int_equal(report.inherited, 1);
    assert_mask(f->inherited_affinity[0], 0x3f);
    assert_mask(f->inherited_affinity[1], 0x81);
    assert_mask(f->self, 0xff);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

/* A thread that started before the steering has inherited nothing from it. Kernel threads never inherit. */
TEST_F(a_thread_that_chose_the_same_mask_keeps_it)
{
    on_record(f, TID, 0x3f, 0);
    f->inherited_affinity[0]->start = SINCE - 2;
    f->inherited_affinity[1]->flags = KTHREAD;
    f->self->mask = fake_mask(0xf0);
    assert_int_equal(restore(f).inherited, 0);
    for (size_t i = 0; i < N_INHERITED; i++)
        assert_mask(f->inherited_affinity[i], 0xf0);
    assert_mask(f->self, 0xf0);
}

/* The entry belongs to an earlier process with the same number. */
TEST_F(an_entry_of_an_earlier_process_says_nothing_of_this_one)
{
    on_record(f, TID, 0x3f, 0);
    f->self->start = 1001;
    assert_int_equal(restore(f).inherited, 0);
    assert_mask(f->inherited_affinity[0], 0xf0);
}

/* The order of the two entries must not matter: compare_content sorts them by nice values, then by masks. */
TEST_F(of_several_creators_the_best_is_believed)
{
    static const struct {
        const char *what;
        uint64_t masks[2];
        int8_t nice[2], found;
        uint64_t want;
    } rows[] = {
        {"more CPUs, first", {0x7f, 0x80}, {0, 0}, 0, 0x7f},
        {"more CPUs, last", {0x01, 0xfe}, {0, 0}, 0, 0xfe},
        {"the nice value, first", {0x01, 0xfe}, {-5, 0}, -5, 0x01},
        {"the nice value, last", {0xfe, 0x01}, {0, 5}, 5, 0x01},
        {"neither has it: more CPUs, last", {0x01, 0xfe}, {3, 4}, 0, 0xfe},
        {"neither has it: more CPUs, first", {0x7f, 0x80}, {3, 4}, 0, 0x7f},
        {"both have it: more CPUs", {0x7f, 0x80}, {4, 4}, 4, 0x7f},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        f->inherited_affinity[0]->mask = fake_mask(0xf0);
        f->inherited_affinity[0]->nice = rows[i].found;
        f->inherited_affinity[1]->mask = fake_mask(0xff);
        for (int k = 0; k < 2; k++)
            on_record(f, TID + k, rows[i].masks[k], rows[i].nice[k]);
        if (restore(f).inherited != 1 || f->inherited_affinity[0]->mask.w[0] != rows[i].want)
            fail_msg("%s: mask %#llx", rows[i].what, (unsigned long long)f->inherited_affinity[0]->mask.w[0]);
    }
}

/* A thread may fork during the search and leave a child with its mask. So restore repeats the pass until it finds none. */
static struct restore_fixture *forks;

static void fork_now(const struct fake_thread *t)
{
    if (t == forks->inherited_affinity[0])
        forks->inherited_affinity[1]->mask = fake_mask(0xf0);
}

/* asymd is killed: another one has what the file says. */
static void read_again(struct restore_fixture *f)
{
    for (size_t i = 0; i < f->ledger->n; i++)
        assert_int_equal(asym_ledger_note(f->ledger, &f->ledger->entries[i]), 0);
    assert_int_equal(asym_ledger_flush(f->ledger), 0);
    asym_ledger_close(f->ledger);
    assert_int_equal(asym_ledger_open(f->tree.path, &f->ledger, NULL), 0);
    fake_kernel_cpus(f->ledger, "0-7", "0-7", "");
}

/* The former leader, another thread and the one that called exec had one mask. Only the last explains the nice value. */
TEST_F(a_thread_that_has_called_exec_gets_its_own_nice_value)
{
    for (int round = 0; round < 4; round++) {
        const int leader_is_known = round % 2;
        f->self->mask = fake_mask(0xf0);
        f->self->nice = -5;
        for (int32_t i = 1 - leader_is_known; i < 3; i++) {
            struct asym_ledger_entry *e = on_record(f, i ? TID + i : f->self->tid, 0xff, 0);
            e->image.stack = 100; /* the fake kernel shows none: the process has called exec */
            e->set_nice = i == 2 ? -5 : 0;
            e->boosted = i == 2;
        }
        if (round >= 2)
            read_again(f);
        restore(f);
        assert_mask(f->self, 0xff);
        assert_int_equal(f->self->nice, 0);
    }
}

TEST_F(grandchildren_with_inherited_masks_are_found)
{
    on_record(f, TID, 0x3f, 0);
    forks = f;
    f->inherited_affinity[1]->mask = fake_mask(0xff);
    fake_kernel_watch(fork_now);
    assert_int_equal(restore(f).inherited, 2);
    assert_mask(f->inherited_affinity[0], 0x3f);
    assert_mask(f->inherited_affinity[1], 0x3f);
}

TEST_F(a_child_has_the_mask_that_its_creator_had_in_transit)
{
    struct asym_ledger_entry *e = on_record(f, TID, 0x3f, 0);
    e->transit_cpu = 6 + 1;
    e->under_way = true;
    f->inherited_affinity[0]->mask = fake_mask(0x40);
    f->inherited_affinity[1]->mask = fake_mask(0x80);
    assert_int_equal(restore(f).inherited, 1);
    assert_mask(f->inherited_affinity[0], 0x3f);
    assert_mask(f->inherited_affinity[1], 0x80);
}

TEST_F(what_an_asymd_that_died_has_left_is_counted)
{
    static const uint64_t masks[] = {0xf0, 0x3f, 0x81,
                                     0x3f}; /* left; its own; of another program; left with a nice value */
    for (size_t i = 0; i < ASYM_LENGTH(masks) + 1; i++) {
        struct asym_ledger_entry *e = on_record(f, TID + (int32_t)i, 0x3f, 0);
        e->boosted = true;
        e->set_nice = -5;
        assert_int_equal(asym_ledger_note(f->ledger, e), 0);
        if (i < ASYM_LENGTH(masks)) /* the last one has ended */
            born_at(TID + (int32_t)i, 1000, masks[i])->nice = i == ASYM_LENGTH(masks) - 1 ? -5 : 0;
    }
    assert_int_equal(asym_ledger_flush(f->ledger), 0);
    assert_int_equal(asym_ledger_in_use(f->tree.path), 1);
    assert_int_equal(asym_ledger_left(f->tree.path), 0);
    asym_ledger_close(ASYM_TAKE(f->ledger));
    assert_int_equal(asym_ledger_in_use(f->tree.path), 0);
    assert_int_equal(asym_ledger_left(f->tree.path), 2);
    assert_int_equal(asym_ledger_in_use("/proc"), -ENOENT);
    assert_int_equal(asym_ledger_in_use("/nonexistent-asymd"), -ENOENT);
    assert_int_equal(asym_ledger_left("/nonexistent-asymd"), 0);
}

TEST_F(without_memory_all_is_restored)
{
    on_record(f, TID, 0x3f, 0);
    born_at(TID, 1000, 0xf0);
    f->inherited_affinity[1]->mask = fake_mask(0x81);
    no_memory = true;
    const struct asym_restore_report report = restore(f);
    no_memory = false;
    assert_int_equal(report.restored, 1);
    assert_int_equal(report.inherited, 1);
    assert_mask(fake_kernel_find(TID), 0x3f);
    assert_mask(f->inherited_affinity[0], 0x3f);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

/* As where /proc is not mounted, or was mounted anew with hidepid. */
TEST_F(a_thread_that_proc_does_not_show_has_not_ended)
{
    on_record(f, TID, 0x3f, 0);
    for (size_t i = 0; i < N_INHERITED; i++)
        f->inherited_affinity[i]->mask = fake_mask(0xff);
    struct fake_thread *t = born_at(TID, 1000, 0xf0);
    fake_kernel_fail(t, FAKE_GET_STAT, -ESRCH, 0);
    struct asym_restore_report report = restore(f);
    assert_int_equal(report.gone, 0);
    assert_int_equal(report.failed, 1);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    fake_kernel_fail(t, FAKE_GET_STAT, 0, 0);
    assert_int_equal(restore(f).restored, 1);
    assert_mask(t, 0x3f);
}

/* A child that could not be repaired is found by the next restore: its creator stays on record. */
TEST_F(a_child_that_could_not_be_repaired_keeps_its_creator_on_record)
{
    on_record(f, TID, 0x3f, 0);
    f->inherited_affinity[1]->mask = fake_mask(0xff);
    fake_kernel_fail(f->inherited_affinity[0], FAKE_SET_MASK, -EPERM, 0);
    assert_int_equal(restore(f).search_error, -EPERM);
    assert_int_equal(asym_ledger_count(f->ledger), 1);
    fake_kernel_fail(f->inherited_affinity[0], FAKE_SET_MASK, 0, 0);
    assert_int_equal(restore(f).inherited, 1);
    assert_mask(f->inherited_affinity[0], 0x3f);
    assert_int_equal(asym_ledger_count(f->ledger), 0);
}

TEST(a_report_leaves_out_what_did_not_happen)
{
    static const struct {
        struct asym_restore_report report;
        const char *text;
    } rows[] = {
        {{.restored = 4}, "restored 4 threads"},
        {{.restored = 1, .gone = 1}, "restored 1 thread; 1 has ended"},
        {{.restored = 1, .nice_kept = 1}, "restored 1 thread; its nice value was changed by others and stays"},
        {{.restored = 5, .nice_kept = 2, .gone = 1},
         "restored 5 threads; the nice value of 2 of them was changed by others and stays; 1 has ended"},
        {{.inherited = 2, .foreign = 1},
         "restored 0 threads and 2 that had inherited a mask; skipped 1: another "
         "program has changed its affinity"},
        {{.restored = 2, .failed = 3, .error = -EPERM}, "restored 2 threads; 3 failed: Operation not permitted"},
        {{.restored = 2, .search_error = -EMFILE},
         "restored 2 threads; the search for inherited masks failed: Too many open files"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[256];
        assert_string_equal(asym_restore_text(&rows[i].report, text, sizeof text), rows[i].text);
    }
}

TEST_MAIN
