/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/syscall-timeout.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* glibc before 2.39 has no name for this field. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define AGAIN (10 * ASYM_MSEC)

static void ignore(int number)
{
    (void)number;
}

static struct timespec timespec_of(asym_usec t)
{
    return (struct timespec){.tv_sec = (time_t)(t / ASYM_SEC), .tv_nsec = (long)(t % ASYM_SEC) * 1000};
}

int asym_syscall_timeout_begin(struct asym_syscall_timeout *t, asym_usec time)
{
    struct sigaction action = {.sa_handler = ignore};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    const struct itimerspec when = {.it_value = timespec_of(time), .it_interval = timespec_of(AGAIN)};
    sigset_t alarm;
    memset(t, 0, sizeof *t);
    event.sigev_notify_thread_id = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &t->timer) < 0)
        return -errno;
    t->armed = true;
    sigemptyset(&action.sa_mask);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &action, &t->action);
    pthread_sigmask(SIG_UNBLOCK, &alarm, &t->mask);
    if (timer_settime(t->timer, 0, &when, NULL) == 0)
        return 0;
    const int error = -errno;
    asym_syscall_timeout_end(t);
    return error;
}

void asym_syscall_timeout_end(struct asym_syscall_timeout *t)
{
    const int error = errno;
    if (!t->armed)
        return;
    timer_delete(t->timer);
    pthread_sigmask(SIG_SETMASK, &t->mask, NULL);
    sigaction(SIGALRM, &t->action, NULL);
    t->armed = false;
    errno = error;
}
