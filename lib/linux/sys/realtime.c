/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/realtime.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* glibc before 2.39 has no name for this field. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The timer of the one thread that takes the priority. */
static struct {
    timer_t timer;
    bool is_made;
    volatile sig_atomic_t has_priority, n_expired;
} own;

bool asym_realtime_is_other(void)
{
    const int policy = sched_getscheduler(0);
    return policy >= 0 && (policy & ~SCHED_RESET_ON_FORK) == SCHED_OTHER;
}

static int set(int policy)
{
    if (policy == SCHED_OTHER && !own.has_priority)
        return 0;
    const struct sched_param param = {.sched_priority = policy == SCHED_FIFO};
    if (sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param) < 0)
        return -errno;
    own.has_priority = policy == SCHED_FIFO;
    return 0;
}

static int run_timer(asym_usec limit)
{
    const struct itimerspec when = {.it_value.tv_nsec = (long)limit * 1000,
                                    .it_interval.tv_nsec = ASYM_REALTIME_GRACE * 1000L};
    return timer_settime(own.timer, 0, &when, NULL) < 0 ? -errno : 0;
}

static void on_expiry(int number)
{
    const int error = errno;
    if (own.n_expired++ > 0 && set(SCHED_OTHER) == 0)
        (void)run_timer(0);
    errno = error;
}

/* The signal reaches no other thread and no child. A call that it interrupts goes on; one that does not has to block it. */
static int make_timer(void)
{
    sigset_t signals;
    const struct sigaction action = {.sa_handler = on_expiry, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    if (own.is_made)
        return 0;
    event.sigev_notify_thread_id = gettid();
    if (sigaction(SIGRTMIN, &action, NULL) < 0 || timer_create(CLOCK_MONOTONIC, &event, &own.timer) < 0)
        return -errno;
    own.is_made = true;
    sigemptyset(&signals);
    sigaddset(&signals, SIGRTMIN);
    return -pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

int asym_realtime_take(asym_usec limit)
{
    int r = make_timer();
    own.n_expired = 0;
    if (r >= 0 && !own.has_priority)
        r = set(SCHED_FIFO);
    if (r >= 0)
        r = run_timer(limit);
    if (r < 0)
        (void)set(SCHED_OTHER);
    return r;
}

void asym_realtime_do_without(asym_usec limit)
{
    const int r = make_timer();
    own.n_expired = 0;
    (void)set(SCHED_OTHER);
    if (r >= 0)
        (void)run_timer(limit);
}

void asym_realtime_give_up(void)
{
    (void)set(SCHED_OTHER);
}

bool asym_realtime_is_over(void)
{
    return own.n_expired > 0;
}
