/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * asymd --restore against hostile processes: very many threads have the mask of steered ones. The test writes ledgers as a kill -9
 * would leave them.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/mask.h"
#include "linux/sys/thread.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/stranger.h"
#include "support/test.h"

#define STEERED   189
#define STRANGERS 1000
#define DEPTH     60

/* CPU time. Before the fix, 189 entries and 1,000 threads took a minute. */
#define RESTORE_SECONDS 5

/* The limit by the clock: a busy machine gives a program only a part of a CPU. */
#define PATIENCE_SECONDS 60

/* Number of threads in a process, and of entries with different masks. */
#define MANY 4000

struct sleepers {
    int n;
    const struct asym_mask *mask;
    atomic_int ready, pid, tids[MANY];
};

static struct asym_mask all_cpus, last;

static struct sleepers *share(int n)
{
    struct sleepers *c = asym_live_share(sizeof *c);
    c->n = n;
    c->mask = &last;
    return c;
}

static int set_up(void **state)
{
    assert_int_equal(asym_thread_get_mask(0, &all_cpus), 0);
    last = (struct asym_mask){0};
    asym_mask_set(&last, (unsigned)asym_mask_next(&all_cpus, asym_mask_next(&all_cpus, 0) + 1));
    return asym_service_set_up(state);
}

static void *sleep_on(void *slot)
{
    *(atomic_int *)slot = (int)gettid();
    for (;;)
        pause();
    return NULL;
}

/* Starts n threads, all with the mask. */
static void gather(struct sleepers *c)
{
    pthread_attr_t attr;
    pthread_t t;
    MUST(asym_thread_set_mask(0, c->mask, false) == 0);
    MUST(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 16384) == 0);
    for (int i = 1; i < c->n; i++)
        MUST(pthread_create(&t, &attr, sleep_on, &c->tids[i]) == 0);
    for (int i = 1; i < c->n; i++)
        while (c->tids[i] == 0)
            usleep(100);
    c->pid = (int)getpid();
    c->ready = 1;
    sleep_on(&c->tids[0]);
}

static void gather_here(void *arg)
{
    gather(arg);
}

/* Does so at the end of a long chain of ancestors. */
static void gather_deep(void *arg)
{
    for (int depth = 0; depth < DEPTH; depth++) {
        if (asym_process_fork() > 0)
            for (;;)
                pause();
        alarm(60);
    }
    gather(arg);
}

static void await(const struct sleepers *c)
{
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; !c->ready; asym_live_sleep(0.001))
        assert_true(asym_live_now() < end);
}

static FILE *begin_ledger(void)
{
    char path[128], boot[64];
    snprintf(path, sizeof path, "%s/ledger", asym_service_dir());
    assert_true(file_read("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "asymd-ledger 1 %s", boot);
    return f;
}

static void write_record(FILE *f, const struct asym_taskid *id, uint64_t since, const struct asym_mask *original,
                         const struct asym_mask *given)
{
    char all[ASYM_MASK_LIST_MAX], set[ASYM_MASK_LIST_MAX];
    asym_mask_format_list(original, all, sizeof all);
    asym_mask_format_list(given, set, sizeof set);
    fprintf(f, "T %d %d %llu %llu 0 0 0 1 0 0 0 %s %s %s\n", (int)id->tid, (int)id->tgid, (unsigned long long)id->start,
            (unsigned long long)since, all, set, all);
}

/* Writes an entry: the thread had all CPUs, and asymd set the last one. */
static void record(FILE *f, pid_t tgid, pid_t tid, uint64_t start, uint64_t since)
{
    write_record(f, &(struct asym_taskid){tid, tgid, start}, since, &all_cpus, &last);
}

/* Writes entries of threads that have exited. Each mask also has other CPUs, which this machine does not have. */
static void record_many(FILE *f, pid_t tgid, int32_t first_tid, uint64_t start, uint64_t since)
{
    for (int i = 0; i < MANY; i++) {
        struct asym_mask absent = {.w = {[ASYM_MASK_WORDS - 1] = (uint64_t)i + 1}};
        const struct asym_mask original = asym_mask_or(&all_cpus, &absent), set = asym_mask_or(&last, &absent);
        write_record(f, &(struct asym_taskid){first_tid + i, tgid, start}, since, &original, &set);
    }
}

static uint64_t start_of(pid_t tgid, pid_t tid)
{
    struct asym_stat stat;
    assert_int_equal(asym_thread_get_stat(tgid, tid, &stat), 0);
    return stat.start;
}

static int count_with(const struct sleepers *c, const struct asym_mask *mask)
{
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        struct asym_mask found;
        n += asym_thread_get_mask(c->tids[i], &found) == 0 && asym_mask_equal(&found, mask);
    }
    return n;
}

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Returns the seconds of CPU time that it took; -1: it failed, or took too long and was killed. */
static double restore(void)
{
    int status;
    const char *other = getenv("ASYM_TEST_SERVICE"); /* as in support/service.c */
    const char *const argv[] = {other ? other : ASYM_SERVICE, "--restore", asym_service_dir_option(), NULL};
    struct rusage used;
    const double end = asym_live_now() + PATIENCE_SECONDS;
    pid_t pid = asym_live_start(argv, -1), ended = 0;
    while ((ended = wait4(pid, &status, WNOHANG, &used)) == 0 && asym_live_now() < end)
        asym_live_sleep(0.005);
    if (ended == 0) {
        asym_live_end(pid, SIGKILL);
        return -1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? seconds_of(&used.ru_utime) + seconds_of(&used.ru_stime) : -1;
}

TEST_WITH(threads_of_the_same_mask_do_not_delay_it, set_up, asym_service_tear_down)
{
    struct sleepers *steered = share(STEERED), *strangers = share(STRANGERS);
    pid_t victim = asym_stranger_start(gather_here, steered);
    await(steered);
    FILE *f = begin_ledger();
    const uint64_t since = asym_thread_ticks();
    for (int i = 0; i < STEERED; i++)
        record(f, victim, steered->tids[i], start_of(victim, steered->tids[i]), since);
    assert_int_equal(fclose(f), 0);
    asym_live_sleep(0.03); /* restore checks ancestors only for processes that started after the steering */
    pid_t attacker = asym_stranger_start(gather_deep, strangers);
    await(strangers);
    const double took = restore();
    print_message("%d entries, %d threads of others at depth %d: restored with %.3f s of CPU time (-1: not in %d s)\n",
                  STEERED, STRANGERS, DEPTH, took, PATIENCE_SECONDS);
    const int given_back = count_with(steered, &all_cpus), kept = count_with(strangers, &last);
    asym_live_end(attacker, SIGKILL);
    asym_live_end(victim, SIGKILL);
    assert_true(took >= 0 && took < RESTORE_SECONDS);
    assert_int_equal(given_back, STEERED);
    assert_int_equal(kept, STRANGERS); /* the threads chose this mask themselves */
}

/* There are 32 million pairs of a thread and an entry that may be its creator's. */
TEST_WITH(a_mask_for_each_entry_does_not_delay_it, set_up, asym_service_tear_down)
{
    struct sleepers *inherited = share(MANY), *elders = share(MANY);
    pid_t parent = asym_stranger_start(gather_here, inherited), attacker = asym_stranger_start(gather_here, elders);
    await(inherited);
    await(elders);
    asym_live_sleep(0.05); /* the kernel rounds starts to whole ticks */
    FILE *f = begin_ledger();
    const uint64_t parent_start = start_of(parent, parent);
    record_many(f, parent, 4000000, parent_start, parent_start);
    record_many(f, attacker, 4000000 + MANY, start_of(attacker, attacker), asym_thread_ticks());
    assert_int_equal(fclose(f), 0);
    const double took = restore();
    const int given_back = count_with(inherited, &all_cpus), kept = count_with(elders, &last);
    print_message(
        "2 processes with %d entries and %d threads each: restored with %.3f s of CPU time (-1: not in %d s)\n", MANY,
        MANY, took, PATIENCE_SECONDS);
    asym_live_end(attacker, SIGKILL);
    asym_live_end(parent, SIGKILL);
    assert_int_equal(given_back, MANY);
    assert_int_equal(kept, MANY); /* they started before any thread was steered */
    assert_true(took >= 0 && took < RESTORE_SECONDS);
}

TEST_MAIN
