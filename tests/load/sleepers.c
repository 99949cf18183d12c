/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-sleepers THREADS PROCESSES SECONDS [PERIOD]: THREADS sleeping threads in total, in PROCESSES processes. Each wakes for a
 * moment once in PERIOD seconds. It prints "ready" when all exist, or "short N" if the kernel allows only N threads.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

static unsigned period; /* 0: none wakes */

static void *sleep_on(void *arg)
{
    for (;;)
        period ? (void)sleep(period) : (void)pause();
    return arg;
}

/* Starts threads until the process has that many, this one included. Returns the number of threads. */
static int make_threads(int threads)
{
    pthread_attr_t attr;
    int n = 1;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384);
    for (; n < threads; n++) {
        pthread_t t;
        if (pthread_create(&t, &attr, sleep_on, NULL) != 0)
            break;
    }
    pthread_attr_destroy(&attr);
    return n;
}

/* Writes the number of its threads to the pipe, then sleeps forever. */
static void be_child(pid_t parent, int threads, int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    int n = make_threads(threads);
    if (write(fd, &n, sizeof n) != sizeof n)
        _exit(1);
    sleep_on(NULL);
}

int main(int argc, char **argv)
{
    int fds[2], there = 0, n;
    if (argc < 4 || argc > 5 || pipe(fds) < 0) {
        fputs("usage: load-sleepers THREADS PROCESSES SECONDS [PERIOD]\n", stderr);
        return 2;
    }
    period = argc == 5 ? (unsigned)atoi(argv[4]) : 0;
    const int threads = atoi(argv[1]), processes = atoi(argv[2]);
    /* The first process is this one. */
    for (int i = 1; i < processes; i++) {
        const pid_t parent = getpid();
        pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0)
            be_child(parent, (i + 1) * threads / processes - i * threads / processes, fds[1]);
        if (read(fds[0], &n, sizeof n) != sizeof n)
            return 1;
        there += n;
    }
    alarm((unsigned)atoi(argv[3]));
    there += make_threads(threads / processes);
    if (there == threads)
        puts("ready");
    else
        printf("short %d\n", there);
    fflush(stdout);
    sleep_on(NULL);
    return 0;
}
