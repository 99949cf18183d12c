/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event loop of the service: a cycle on each timer event, and one more when a program or the kernel reports a phase. */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/macro.h"

/* Between two pieces of a snapshot. */
#define PIECE_REST (5 * ASYM_MSEC)

/* Housekeeping may be this late, so that it mostly shares a wakeup with a sample. */
#define HOUSEKEEPING_ACCURACY (100 * ASYM_MSEC)

/* The bus has counted what it sent. */
static asym_usec spent_on_bus(void *userdata)
{
    return asym_bus_spent(((const struct asym_service *)userdata)->bus);
}

/*
 * When the next piece of this sample is due, at once after one that ended with the real-time priority; or the next sample, which is
 * early only as far as the CPU budget lasts.
 */
static asym_usec time_of_sample(struct asym_service *s, asym_usec now)
{
    if (s->sampling)
        return s->run->prompt.sample && s->run->prompt.is_realtime ? 0 : now + PIECE_REST;
    const asym_usec wait = asym_budget_wait(&s->budget, asym_cycle_wait(&s->cycle, s->run->settings->daemon.interval));
    return asym_service_phases_sleep(s, now, wait);
}

static int on_timer(sd_event_source *timer, uint64_t usec, void *userdata)
{
    struct asym_service *s = userdata;
    int r = asym_service_cycle(s);
    if (r < 0 && r != -EINPROGRESS)
        return asym_service_give_up(s, r);
    asym_usec now = asym_clock_now();
    asym_service_update_budget(s, now);
    /* Counted from now, not from when it was due: after a suspend asymd does not take the missed samples in a burst. */
    r = sd_event_source_set_time(timer, time_of_sample(s, now));
    s->run->prompt.sample = s->sampling ? NULL : timer;
    return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static int on_housekeeping(sd_event_source *timer, uint64_t usec, void *userdata)
{
    const asym_usec now = asym_clock_now();
    asym_service_housekeeping(userdata, now);
    const int r = sd_event_source_set_time(timer, now + ASYM_SERVICE_HOUSEKEEPING);
    return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

int asym_service_attach(struct asym_service *s)
{
    static const int ends[] = {SIGTERM, SIGINT};
    int r = sd_event_default(&s->event);
    for (size_t i = 0; r >= 0 && i < ASYM_LENGTH(ends); i++)
        r = sd_event_add_signal(s->event, NULL, ends[i], NULL, NULL);
    if (r >= 0)
        r = sd_event_add_signal(s->event, NULL, SIGHUP, asym_service_on_reload, s);
    if (r >= 0)
        r = sd_event_add_time(s->event, &s->timer, CLOCK_MONOTONIC, asym_clock_now(), ASYM_MSEC, on_timer, s);
    if (r >= 0)
        r = sd_event_source_set_priority(s->timer, SD_EVENT_PRIORITY_NORMAL - 1);
    if (r >= 0)
        r = sd_event_add_time(s->event, &s->housekeeping, CLOCK_MONOTONIC, asym_clock_now() + ASYM_SERVICE_HOUSEKEEPING,
                              HOUSEKEEPING_ACCURACY, on_housekeeping, s);
    /* Before a sample, of which the rest may be pending, too: then no other event gets the priority of the housekeeping. */
    if (r >= 0)
        r = sd_event_source_set_priority(s->housekeeping, SD_EVENT_PRIORITY_NORMAL - 2);
    s->run->prompt = (struct asym_prompt){.plan = asym_service_prompt_cycle,
                                          .others_pay = spent_on_bus,
                                          .sample = s->timer,
                                          .housekeeping = s->housekeeping,
                                          .userdata = s,
                                          .log = &s->run->log};
    if (r >= 0 && s->rtx)
        r = asym_rtx_service_attach(s->rtx, s->event);
    if (r >= 0)
        r = asym_service_phases_attach(s);
    if (r >= 0)
        r = asym_notify_watchdog(&s->notify, s->event);
    return r < 0 ? r : 0;
}

int asym_service_loop(struct asym_service *s)
{
    int exit_status = ASYM_EXIT_FAILED, r = 0;
    while (r >= 0 && sd_event_get_state(s->event) != SD_EVENT_FINISHED) {
        asym_bus_begin_turn(s->bus);
        r = asym_prompt_run_event(&s->run->prompt, s->event, UINT64_MAX);
    }
    if (r >= 0)
        r = sd_event_get_exit_code(s->event, &exit_status);
    return r < 0 ? r : exit_status;
}

void asym_service_block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}
