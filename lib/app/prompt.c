/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/prompt.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/sys/realtime.h"

/*
 * After an answer asymd gives that asker none for this long, however many events come, and however soon serve is due. There is one
 * exception: if serve was due and found nothing, asymd answers the next event at once.
 */
#define REST ASYM_MSEC

/* Returns 1: asymd has planned; 0: it had no reason to; -errno. */
static int answer(const struct asym_asker *a)
{
    struct asym_prompt *p = a->prompt;
    const asym_usec begun = asym_clock_thread_cpu(), others = p->others_pay(p->userdata);
    if (a->receive)
        a->receive(a->ctx);
    const asym_usec received = a->receive ? asym_clock_thread_cpu() : begun;
    const bool plans = a->serve(a->ctx);
    const int r = plans ? p->plan(p->userdata) : 0;
    const asym_usec end = asym_clock_thread_cpu() - (p->others_pay(p->userdata) - others);
    /* Events without a plan are charged, too. */
    a->charge(a->ctx, end - received);
    p->spent += end - begun;
    return r < 0 ? r : plans;
}

static int wake_at(const struct asym_asker *a, asym_usec when)
{
    const int r = sd_event_source_set_time(a->rest, when);
    return r < 0 ? r : sd_event_source_set_enabled(a->rest, SD_EVENT_ONESHOT);
}

/* The rest starts after the answer: a long answer must not shorten it. */
static int rest(const struct asym_asker *a)
{
    const int r = sd_event_source_set_enabled(a->io, SD_EVENT_OFF);
    return r < 0 ? r : wake_at(a, asym_clock_now() + REST);
}

static asym_usec due(const struct asym_asker *a)
{
    return a->due ? a->due(a->ctx) : 0;
}

static int on_io(sd_event_source *io, int fd, uint32_t events, void *userdata)
{
    const int r = answer(userdata);
    return r < 0 ? r : rest(userdata);
}

static int on_rested(sd_event_source *timer, uint64_t usec, void *userdata)
{
    const struct asym_asker *a = userdata;
    const asym_usec before = due(a);
    /* If no one is due, there is no one to charge for the CPU time. */
    int r = before > 0 && before <= asym_clock_now() ? answer(a) : 0;
    if (r != 0)
        return r < 0 ? r : rest(a);
    const asym_usec next = due(a), soonest = asym_clock_now() + REST;
    r = next > 0 ? wake_at(a, ASYM_MAX(next, soonest)) : 0;
    return r < 0 ? r : sd_event_source_set_enabled(a->io, SD_EVENT_ON);
}

int asym_prompt_add(struct asym_prompt *p, struct asym_asker *a, sd_event *event)
{
    size_t i = 0;
    while (i < ASYM_LENGTH(p->askers) && p->askers[i])
        i++;
    if (i == ASYM_LENGTH(p->askers))
        return -ENOSPC;
    p->askers[i] = a;
    a->prompt = p;
    int r = sd_event_add_io(event, &a->io, a->fd, EPOLLIN, on_io, a);
    /* An accuracy of 1 us: systemd may delay the other timers of the service, but not this one. */
    if (r >= 0)
        r = sd_event_add_time(event, &a->rest, CLOCK_MONOTONIC, 0, 1, on_rested, a);
    if (r >= 0)
        r = sd_event_source_set_enabled(a->rest, SD_EVENT_OFF);
    /* If several events are pending, the answer comes first: dispatch() knows by that which one is next. */
    if (r >= 0)
        r = sd_event_source_set_priority(a->io, SD_EVENT_PRIORITY_IMPORTANT);
    if (r >= 0)
        r = sd_event_source_set_priority(a->rest, SD_EVENT_PRIORITY_IMPORTANT);
    return r < 0 ? r : 0;
}

void asym_prompt_remove(struct asym_asker *a)
{
    for (size_t i = 0; a->prompt && i < ASYM_LENGTH(a->prompt->askers); i++)
        if (a->prompt->askers[i] == a)
            a->prompt->askers[i] = NULL;
    a->io = sd_event_source_unref(a->io);
    a->rest = sd_event_source_unref(a->rest);
}

void asym_prompt_want(struct asym_asker *a, bool wants)
{
    struct asym_prompt *p = a->prompt;
    bool any = false;
    a->wants = wants;
    for (size_t i = 0; i < ASYM_LENGTH(p->askers); i++)
        any |= p->askers[i] && p->askers[i]->wants;
    if (any == p->is_realtime || (any && p->has_failed))
        return;
    if (!any)
        asym_realtime_give_up();
    const int r = any ? asym_realtime_take(ASYM_REALTIME_ACT) : 0;
    p->is_realtime = any && r >= 0;
    p->has_failed |= r < 0;
    if (r < 0)
        asym_log_say(p->log, LOG_NOTICE, "no real-time priority (%s): %s when all CPUs are busy", strerror(-r),
                     a->without);
}

/*
 * The kernel looks for an idle CPU only when a thread wakes, and not for a real-time thread (select_task_rq_rt). A trace shows
 * the cost: a sample ran on the CPU of a working thread, with a better nice value. The thread waited 36 to 670 ms of a slow
 * guest's clock in 8 of 13 runs, and a barrier waited for it, while another slow CPU was idle.
 */
static void move_to_idle_cpu(void)
{
    const struct timespec shortest = {.tv_nsec = 1};
    nanosleep(&shortest, NULL);
}

static bool is_pending(sd_event_source *source)
{
    return source && sd_event_source_get_pending(source) > 0;
}

/* Returns for how long the next event that is pending keeps the priority, us; 0: not at all. */
static asym_usec limit_of(const struct asym_prompt *p)
{
    for (size_t i = 0; i < ASYM_LENGTH(p->askers); i++)
        if (p->askers[i] && (is_pending(p->askers[i]->io) || is_pending(p->askers[i]->rest)))
            return ASYM_REALTIME_ACT;
    return is_pending(p->sample) || is_pending(p->housekeeping) ? ASYM_REALTIME_SAMPLE : 0;
}

/* Runs that event. If asymd cannot take the priority back after it, the next answer tries again. */
static int dispatch(struct asym_prompt *p, sd_event *event)
{
    const asym_usec limit = p->is_realtime ? limit_of(p) : 0;
    if (limit > 0)
        (void)asym_realtime_take(limit);
    else
        asym_realtime_do_without(ASYM_REALTIME_NONE);
    if (limit == 0 && p->is_realtime)
        move_to_idle_cpu();
    const int r = sd_event_dispatch(event), loop = sd_event_get_state(event);
    /* asymd ends without the priority. */
    if (p->is_realtime && loop != SD_EVENT_EXITING && loop != SD_EVENT_FINISHED)
        p->is_realtime = asym_realtime_take(0) == 0;
    else
        asym_realtime_do_without(0);
    return r;
}

int asym_prompt_run_event(struct asym_prompt *p, sd_event *event, uint64_t timeout)
{
    int r = sd_event_prepare(event);
    if (r == 0)
        r = sd_event_wait(event, timeout);
    if (r > 0)
        r = dispatch(p, event);
    return r;
}
