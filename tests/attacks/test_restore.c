/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * asymd --restore against what others have arranged: very many threads with the mask of steered ones, and a successor that
 * has a steered process's number. Ledgers are written by hand, as a kill -9 would leave them.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/thread.h"
#include "support/live.h"
#include "support/must.h"
#include "support/service.h"
#include "support/stranger.h"

#define STEERED   189
#define STRANGERS 1000
#define DEPTH     60

/* 189 entries and 1,000 threads took a minute. */
#define RESTORE_SECONDS 5

struct crowd {
    int n;
    const struct asym_mask *mask;
    atomic_int ready, pid, tids[STRANGERS];
};

static struct asym_mask whole, last;

static struct crowd *share(int n)
{
    struct crowd *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(c != MAP_FAILED);
    c->n = n;
    c->mask = &last;
    return c;
}

static int set_up(void **state)
{
    assert_int_equal(asym_thread_get_mask(0, &whole), 0);
    last = (struct asym_mask){0};
    asym_mask_set(&last, (unsigned)asym_mask_next(&whole, asym_mask_next(&whole, 0) + 1));
    return asym_service_set_up(state);
}

static void *sleep_on(void *slot)
{
    *(atomic_int *)slot = (int)gettid();
    for (;;)
        pause();
    return NULL;
}

/* So many threads, all with the mask. */
static void gather(struct crowd *c)
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

/* At the end of a long line of ancestors. */
static void gather_deep(void *arg)
{
    for (int depth = 0; depth < DEPTH; depth++) {
        if (fork() > 0)
            for (;;)
                pause();
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        alarm(60);
    }
    gather(arg);
}

static void await(const struct crowd *c)
{
    for (double end = asym_live_now() + 20; !c->ready; asym_live_sleep(0.001))
        assert_true(asym_live_now() < end);
}

static FILE *begin_ledger(void)
{
    char path[128], boot[64];
    snprintf(path, sizeof path, "%s/ledger", asym_service_dir());
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_non_null(f);
    assert_non_null(fgets(boot, sizeof boot, f));
    fclose(f);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "asymd-ledger 1 %s", boot);
    return f;
}

/* It had all CPUs and was given the last one. */
static void record(FILE *f, pid_t tgid, pid_t tid, uint64_t start, uint64_t since)
{
    char all[ASYM_MASK_LIST_MAX], set[ASYM_MASK_LIST_MAX];
    asym_mask_format_list(&whole, all, sizeof all);
    asym_mask_format_list(&last, set, sizeof set);
    fprintf(f, "T %d %d %llu %llu 0 0 0 1 0 0 0 %s %s %s\n", (int)tid, (int)tgid, (unsigned long long)start,
            (unsigned long long)since, all, set, all);
}

static uint64_t start_of(pid_t tgid, pid_t tid)
{
    struct asym_stat stat;
    assert_int_equal(asym_thread_get_stat(tgid, tid, &stat), 0);
    return stat.start;
}

static int count_with(const struct crowd *c, const struct asym_mask *mask)
{
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        struct asym_mask found;
        n += asym_thread_get_mask(c->tids[i], &found) == 0 && asym_mask_equal(&found, mask);
    }
    return n;
}

/* Seconds that it took; -1: it was ended, or it failed. */
static double restore(double most)
{
    char dir[128];
    int status;
    snprintf(dir, sizeof dir, "--set=asymd.state_dir=%s", asym_service_dir());
    const char *const argv[] = {ASYM_SERVICE, "--restore", dir, NULL};
    const double begun = asym_live_now();
    pid_t pid = asym_live_start(argv, -1), ended = 0;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && asym_live_now() < begun + most)
        asym_live_sleep(0.005);
    if (ended == 0) {
        asym_live_end(pid, SIGKILL);
        return -1;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? asym_live_now() - begun : -1;
}

static void threads_of_the_same_mask_do_not_hold_it_up(void **state)
{
    (void)state;
    struct crowd *steered = share(STEERED), *strangers = share(STRANGERS);
    pid_t victim = asym_stranger_start(gather_here, steered);
    await(steered);
    FILE *f = begin_ledger();
    const uint64_t since = asym_thread_ticks();
    for (int i = 0; i < STEERED; i++)
        record(f, victim, steered->tids[i], start_of(victim, steered->tids[i]), since);
    assert_int_equal(fclose(f), 0);
    asym_live_sleep(0.03); /* descent is looked at only for processes born after the steering */
    pid_t attacker = asym_stranger_start(gather_deep, strangers);
    await(strangers);
    const double took = restore(2 * RESTORE_SECONDS);
    print_message("%d entries, %d threads of others at depth %d: restored in %.3f s (-1: not in %d s)\n", STEERED,
                  STRANGERS, DEPTH, took, 2 * RESTORE_SECONDS);
    const int given_back = count_with(steered, &whole), kept = count_with(strangers, &last);
    asym_live_end(attacker, SIGKILL);
    asym_live_end(victim, SIGKILL);
    assert_true(took >= 0 && took < RESTORE_SECONDS);
    assert_int_equal(given_back, STEERED);
    assert_int_equal(kept, STRANGERS); /* their own choice */
}

static void leave_a_child(void *arg)
{
    struct crowd *c = arg;
    MUST(asym_thread_set_mask(0, c->mask, false) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        sleep_on(&c->tids[1]);
    }
    while (c->tids[1] == 0)
        usleep(100);
    c->ready = 1;
    sleep_on(&c->tids[0]);
}

/* It has pinned itself to the very CPU that its namesake was given; so it, its thread and its child stay there. */
static void a_successor_with_the_same_number_keeps_its_own_masks(void **state)
{
    (void)state;
    struct crowd *threads = share(2), *children = share(2);
    pid_t successor = asym_stranger_start(gather_here, threads), parent = asym_stranger_start(leave_a_child, children);
    await(threads);
    await(children);
    FILE *f = begin_ledger();
    const pid_t namesakes[] = {successor, parent};
    for (size_t i = 0; i < ASYM_LENGTH(namesakes); i++) {
        const uint64_t start = start_of(namesakes[i], namesakes[i]);
        assert_true(start > 50);
        record(f, namesakes[i], namesakes[i], start - 50, start - 40);
        /* a thread of the namesake that was steered, too */
        record(f, namesakes[i], 4194303 - (int)i, start - 50, start - 40);
    }
    assert_int_equal(fclose(f), 0);
    assert_true(restore(2 * RESTORE_SECONDS) >= 0);
    const int kept = count_with(threads, &last) + count_with(children, &last);
    print_message("of 4 that have pinned themselves, 2 of them with the numbers of others before: %d still are\n",
                  kept);
    asym_live_end(successor, SIGKILL);
    asym_live_end(parent, SIGKILL);
    assert_int_equal(kept, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ROW(name) cmocka_unit_test_setup_teardown(name, set_up, asym_service_tear_down)
        ROW(threads_of_the_same_mask_do_not_hold_it_up),
        ROW(a_successor_with_the_same_number_keeps_its_own_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
