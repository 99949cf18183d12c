/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-burn BEGIN END KIND...: a program whose work is that of /dev/burn (tests/vm/burn), in nanoseconds of a CPU of full speed. It
 * runs until just after END, and prints what it did between BEGIN and END (milliseconds of CLOCK_MONOTONIC). Kinds, times in
 * microseconds:
 *   hog THREADS                                          threads that run without a pause
 *   barrier THREADS WORK SPIN TELLS                      each works and waits for all others: awake for SPIN, or for ever if that
 *                                                        is negative, and then asleep. TELLS: 1: it reports how (RTX)
 *   frames THREADS SERIAL PARALLEL CHUNK PERIOD SLEEP    the main thread works, then all take chunks. A frame begins PERIOD after
 *                                                        the one before at the earliest, and SLEEP after its end
 *   wakes THREADS PERIOD                                 each sleeps until the next period begins, as cyclictest does; it takes
 *                                                        the time from then until it runs, and from the timer's interrupt
 *   make JOBS LEAST MOST                                 JOBS processes at a time, of so much work
 *   copies JOBS WORK                                     JOBS processes, each a job of its own. They begin at once, and the
 *                                                        time counts until the last one has ended, whatever BEGIN and END
 */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "now.h"

#define MAX_FRAMES 100000
#define SPIN_NS    20000
#define SLICE_NS   10000000
/* All programs of a measurement run until then, so that none has the machine alone before END. */
#define AFTER_NS 300000000

static int64_t begin_ns, end_ns;
static int device;
/* Shared with the processes of make. */
static struct {
    atomic_llong ns;
    atomic_int jobs;
} * sum;

static int is_counted(int64_t at)
{
    return at >= begin_ns && at < end_ns;
}

static int is_over(void)
{
    return now_ns() >= end_ns + AFTER_NS;
}

static void work(int64_t ns)
{
    while (ns > 0) {
        const int done = ioctl(device, 0, ns < SLICE_NS ? ns : SLICE_NS);
        if (done < 0) {
            perror("load-burn: /dev/burn");
            exit(1);
        }
        if (is_counted(now_ns()))
            atomic_fetch_add(&sum->ns, done);
        ns -= done;
    }
}

static void start_threads(int n, void *(*body)(void *))
{
    pthread_t t;
    for (int i = 1; i < n; i++)
        if (pthread_create(&t, NULL, body, NULL) != 0)
            exit(1);
}

static void *hog(void *arg)
{
    while (!is_over())
        work(SLICE_NS);
    return arg;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;

static int64_t barrier_work, spin_ns;
static int n_meet, tells;
static atomic_int rounds, is_last, n_arrived, n_met;

static void *wait_for_all(void *arg)
{
    struct asym_rtx_slot *slot = tells ? asym_rtx_thread() : NULL;
    while (!is_last) {
        const int seen = n_met;
        work(barrier_work);
        if (atomic_fetch_add(&n_arrived, 1) + 1 == n_meet) {
            n_arrived = 0;
            rounds += is_counted(now_ns());
            is_last = is_over();
            pthread_mutex_lock(&lock);
            n_met++;
            pthread_cond_broadcast(&go);
            pthread_mutex_unlock(&lock);
            continue;
        }
        asym_rtx_set(slot, ASYM_RTX_SPINNING);
        const int64_t end = now_ns() + spin_ns;
        while (n_met == seen && (spin_ns < 0 || now_ns() < end))
            ioctl(device, 0, SPIN_NS); /* no work */
        asym_rtx_set(slot, ASYM_RTX_SLEEPING);
        pthread_mutex_lock(&lock);
        while (n_met == seen)
            pthread_cond_wait(&go, &lock);
        pthread_mutex_unlock(&lock);
        asym_rtx_set(slot, ASYM_RTX_WORKING);
    }
    return arg;
}

static int n_chunks, frame, n_working;
static int64_t chunk;

static void take_chunks(void)
{
    while (n_chunks > 0) {
        n_chunks--;
        pthread_mutex_unlock(&lock);
        work(chunk);
        pthread_mutex_lock(&lock);
    }
}

static void *help(void *arg)
{
    pthread_mutex_lock(&lock);
    for (int seen = 0;; seen = frame) {
        while (frame == seen)
            pthread_cond_wait(&go, &lock);
        take_chunks();
        if (--n_working == 0)
            pthread_cond_signal(&done);
    }
    return arg;
}

static void make_frame(int n_threads, int64_t serial, int64_t parallel)
{
    work(serial);
    pthread_mutex_lock(&lock);
    n_chunks = (int)(parallel / chunk);
    n_working = n_threads - 1;
    frame++;
    pthread_cond_broadcast(&go);
    take_chunks();
    while (n_working > 0)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void frames(int n_threads, const int64_t *ns)
{
    static int64_t took[MAX_FRAMES];
    int n = 0;
    chunk = ns[2];
    start_threads(n_threads, help);
    for (int64_t next = now_ns(), last = next; !is_over();) {
        make_frame(n_threads, ns[0], ns[1]);
        next = now_ns() + ns[4] > next + ns[3] ? now_ns() + ns[4] : next + ns[3];
        sleep_until_ns(next);
        const int64_t at = now_ns();
        if (is_counted(at) && n < MAX_FRAMES)
            took[n++] = at - last;
        last = at;
    }
    qsort(took, (size_t)n, sizeof *took, compare);
    const int slow = n * 99 / 100;
    const double p99 = n > 0 ? (double)took[slow] / 1e6 : 0;
    printf("fps=%.2f p99=%.2f ", n * 1e9 / (double)(end_ns - begin_ns), p99);
}

static int64_t late[MAX_FRAMES], woken[MAX_FRAMES], wake_period;
static atomic_int n_late;

static void *wake(void *arg)
{
    for (int64_t next = now_ns(); !is_over();) {
        next = next + wake_period > now_ns() ? next + wake_period : now_ns() + wake_period;
        const int took = ioctl(device, 1, next);
        const int64_t at = now_ns();
        const int i = is_counted(at) && took >= 0 ? atomic_fetch_add(&n_late, 1) : MAX_FRAMES;
        if (i >= MAX_FRAMES)
            continue;
        late[i] = at - next;
        woken[i] = took;
    }
    return arg;
}

static void wakes(int n_threads, int64_t period)
{
    wake_period = period;
    start_threads(n_threads, wake);
    wake(NULL);
    const int n = n_late < MAX_FRAMES ? n_late : MAX_FRAMES;
    qsort(late, (size_t)n, sizeof *late, compare);
    qsort(woken, (size_t)n, sizeof *woken, compare);
    const int last = n * 99 / 100;
    if (n > 0)
        printf("median=%.1f late=%.1f woken=%.1f ", (double)late[n / 2] / 1e3, (double)late[last] / 1e3,
               (double)woken[last] / 1e3);
}

static void make(char **argv, int n_jobs, const int64_t *ns, char *shared)
{
    char text[32], job[] = "job";
    char *arguments[] = {argv[0], argv[1], argv[2], job, text, shared, NULL};
    unsigned seed = 7;
    pid_t pid;
    for (int n = 0; !is_over() || n > 0; n--) {
        for (; n < n_jobs && !is_over(); n++) {
            seed = seed * 1103515245 + 12345;
            const int64_t took = ns[0] + (ns[1] - ns[0]) * (seed >> 8 & 0xffff) / 0x10000;
            snprintf(text, sizeof text, "%lld", (long long)took / 1000);
            if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ) != 0)
                exit(1);
        }
        wait(NULL);
    }
    printf("jobs=%d ", sum->jobs);
}

static void copies(int n, int64_t each)
{
    begin_ns = now_ns();
    end_ns = INT64_MAX;
    for (int i = 0; i < n; i++) {
        const pid_t pid = fork();
        if (pid < 0)
            exit(1);
        if (pid == 0) {
            setpgid(0, 0);
            work(each);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    end_ns = now_ns();
}

static int run(char **argv, int n, const int64_t *ns, char *shared)
{
    const char *kind = argv[3];
    if (!strcmp(kind, "hog")) {
        start_threads(n, hog);
        hog(NULL);
    } else if (!strcmp(kind, "barrier")) {
        barrier_work = ns[0];
        spin_ns = ns[1];
        tells = ns[2] != 0 && asym_rtx_join(NULL) == 0;
        n_meet = n;
        start_threads(n, wait_for_all);
        wait_for_all(NULL);
        printf("rounds=%d rtx=%d ", rounds, tells && asym_rtx_is_joined());
    } else if (!strcmp(kind, "frames")) {
        frames(n, ns);
    } else if (!strcmp(kind, "wakes")) {
        wakes(n, ns[0]);
    } else if (!strcmp(kind, "make")) {
        make(argv, n, ns, shared);
    } else if (!strcmp(kind, "copies")) {
        copies(n, ns[0]);
    } else {
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int64_t ns[5] = {0};
    char shared[16];
    if (argc < 5) {
        fputs("usage: load-burn BEGIN END hog|barrier|frames|wakes|make|copies NUMBER...\n", stderr);
        return 2;
    }
    const int is_job = argc == 6 && !strcmp(argv[3], "job");
    const int fd = is_job ? atoi(argv[5]) : memfd_create("load-burn", 0);
    begin_ns = atoll(argv[1]) * 1000000;
    end_ns = atoll(argv[2]) * 1000000;
    device = open("/dev/burn", O_RDWR | O_CLOEXEC);
    if (ftruncate(fd, sizeof *sum) < 0)
        return 1;
    sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(shared, sizeof shared, "%d", fd);
    if (is_job) {
        work(atoll(argv[4]) * 1000);
        sum->jobs += is_counted(now_ns());
        return 0;
    }
    for (int i = 5; i < argc && i < 10; i++)
        ns[i - 5] = atoll(argv[i]) * 1000;
    if (run(argv, atoi(argv[4]), ns, shared) != 0)
        return 2;
    printf("work=%.4f\n", (double)sum->ns / (double)(end_ns - begin_ns));
    return 0;
}
