/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-waits KIND SECONDS: threads that wait for each other.
 *
 * frame     a thread works for 4 ms, has five workers do ten jobs of 0.6 ms, waits for them, and works for 1 ms
 * vsync     the same, and then it sleeps until the next 16.7 ms are over
 * barrier   four threads meet after 2 ms of work each
 * pipeline  three stages of 1, 3 and 1.2 ms, with queues of four
 * lock      a thread holds a lock for 3 of 3.3 ms, and three others need it for 0.3 of 2.3 ms
 * held      the same with one other thread, which sleeps for the 2 ms: however few CPUs there are, it waits for the first one only
 * serial    one busy thread, and three that sleep most of the time
 * pingpong  two threads, of which each wakes the other one at once
 * turns     two threads, of which each works for 1.5 ms and wakes the other one: one after the other is alone
 * handover  the same with 0.3 ms
 * churn     a thread starts eight threads that end at once, again and again
 * exec      a thread that is not the first one becomes the program with kind frame, after half a second
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "now.h"

#define MS 1e-3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int n_jobs, n_left, queue[4], there[2], back[2];

static void work(double seconds)
{
    for (double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds; seconds_of(CLOCK_THREAD_CPUTIME_ID) < end;)
        ;
}

static void nap(double seconds)
{
    if (seconds > 0)
        nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

/* Wait until *n is at least least and at most most, then add by. */
static void change(int *n, int least, int most, int by)
{
    pthread_mutex_lock(&mutex);
    while (*n < least || *n > most)
        pthread_cond_wait(&changed, &mutex);
    *n += by;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void *frame_worker(void *arg)
{
    for (;;) {
        change(&n_jobs, 1, 10, -1);
        work(0.6 * MS);
        change(&n_left, 1, 10, -1);
    }
    return arg;
}

static void frames(double period)
{
    for (double next = now();; next += period) {
        if (period > 0)
            nap(next - now());
        work(4 * MS);
        change(&n_left, 0, 0, 10);
        change(&n_jobs, 0, 0, 10);
        change(&n_left, 0, 0, 0);
        work(1 * MS);
    }
}

static void *frame(void *arg)
{
    frames(0);
    return arg;
}

static void *vsync(void *arg)
{
    frames(16.7 * MS);
    return arg;
}

static void *meet(void *arg)
{
    for (;;) {
        work(2 * MS);
        pthread_barrier_wait(&barrier);
    }
    return arg;
}

static void *stage(void *arg)
{
    static const double cost[] = {1 * MS, 3 * MS, 1.2 * MS};
    const int i = *(const int *)arg;
    for (;;) {
        if (i > 0)
            change(&queue[i], 1, 4, -1);
        work(cost[i]);
        if (i < 2)
            change(&queue[i + 1], 0, 3, 1);
    }
    return arg;
}

static void *need_lock(void *arg)
{
    const int i = *(const int *)arg;
    for (;;) {
        pthread_mutex_lock(&mutex);
        work(i == 0 ? 3 * MS : 0.3 * MS);
        pthread_mutex_unlock(&mutex);
        work(i == 0 ? 0.3 * MS : 2 * MS);
    }
    return arg;
}

static void *need_lock_after_nap(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&mutex);
        work(0.3 * MS);
        pthread_mutex_unlock(&mutex);
        nap(2 * MS);
    }
    return arg;
}

static void *work_or_sleep(void *arg)
{
    const int i = *(const int *)arg;
    for (;;) {
        work(i == 0 ? 50 * MS : 0.2 * MS);
        nap(i == 0 ? 0 : 20 * MS);
    }
    return arg;
}

static void *pass(void *arg, double ms)
{
    char c = 0;
    const int i = *(const int *)arg;
    for (;;) {
        if (i == 1 && read(there[0], &c, 1) != 1)
            exit(1);
        if (ms > 0)
            work(ms * MS);
        if (i == 0 && (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1))
            exit(1);
        if (i == 1 && write(back[1], &c, 1) != 1)
            exit(1);
    }
    return arg;
}

static void *pingpong(void *arg)
{
    return pass(arg, 0);
}

static void *turns(void *arg)
{
    return pass(arg, 1.5);
}

static void *handover(void *arg)
{
    return pass(arg, 0.3);
}

static void *end(void *arg)
{
    return arg;
}

static void *churn(void *arg)
{
    pthread_t t[8];
    for (;;) {
        for (int i = 0; i < 8; i++)
            if (pthread_create(&t[i], NULL, end, NULL) != 0)
                exit(1);
        for (int i = 0; i < 8; i++)
            pthread_join(t[i], NULL);
    }
    return arg;
}

static void *become_frame(void *arg)
{
    nap(0.5);
    execl("/proc/self/exe", "load-waits", "frame", "60", (char *)NULL);
    exit(1);
    return arg;
}

/* The first thread runs first, the others, if any, run other. */
static const struct kind {
    const char *name;
    void *(*first)(void *), *(*other)(void *);
    int threads;
} kinds[] = {
    {"frame", frame, frame_worker, 6},   {"vsync", vsync, frame_worker, 6},
    {"barrier", meet, meet, 4},          {"pipeline", stage, stage, 3},
    {"lock", need_lock, need_lock, 4},   {"serial", work_or_sleep, work_or_sleep, 4},
    {"pingpong", pingpong, pingpong, 2}, {"churn", churn, NULL, 1},
    {"exec", become_frame, NULL, 1},     {"held", need_lock, need_lock_after_nap, 2},
    {"turns", turns, turns, 2},          {"handover", handover, handover, 2},
};

int main(int argc, char **argv)
{
    static int number[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct kind *k = kinds, *const end_of_kinds = kinds + sizeof kinds / sizeof kinds[0];
    pthread_t t;
    while (argc == 3 && k < end_of_kinds && strcmp(k->name, argv[1]) != 0)
        k++;
    if (argc != 3 || k == end_of_kinds || pipe(there) < 0 || pipe(back) < 0) {
        fputs("usage: load-waits frame|vsync|barrier|pipeline|lock|held|serial|pingpong|turns|churn|exec SECONDS\n",
              stderr);
        return 2;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)k->threads);
    for (int i = 0; i < k->threads; i++)
        if (pthread_create(&t, NULL, i == 0 ? k->first : k->other, &number[i]) != 0)
            return 1;
    puts("ready");
    fflush(stdout);
    nap(atof(argv[2]));
    return 0;
}
