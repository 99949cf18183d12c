/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An early plan, or an exchange, when a program has come down to one runnable thread, or has left that state (observer bpf). */
#include "daemon/asymd/service-internal.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "linux/observe/bpf.h"

/* After an answer asymd gives none for this long, however many programs change meanwhile. */
#define REST ASYM_MSEC

static enum asym_bpf_hears hears(const struct asym_service *s)
{
    const struct asym_policy *policy = s->run->policy;
    if (asym_overrides_is_paused(s->control.overrides))
        return ASYM_BPF_NOTHING;
    return policy->exchange ? ASYM_BPF_BEGINS : policy->serves_alone ? ASYM_BPF_PHASES : ASYM_BPF_NOTHING;
}

static int answer(struct asym_service *s)
{
    struct asym_service_phases *p = &s->phases;
    const asym_usec before = asym_clock_thread_cpu(), bus = asym_bus_spent(s->bus);
    int r = 0;
    if (asym_bpf_take(p->bpf) && hears(s) != ASYM_BPF_NOTHING)
        r = asym_service_prompt_cycle(s);
    /* The bus has counted what it sent. */
    const asym_usec cost = asym_clock_thread_cpu() - before - (asym_bus_spent(s->bus) - bus);
    p->spent += cost;
    asym_bpf_charge(p->bpf, cost);
    return r;
}

static int on_phase(sd_event_source *io, int fd, uint32_t events, void *userdata)
{
    struct asym_service *s = userdata;
    (void)fd;
    (void)events;
    int r = answer(s);
    /* The rest starts after the answer: a long answer must not shorten it. */
    const asym_usec soonest = asym_clock_now() + REST;
    if (r >= 0)
        r = sd_event_source_set_enabled(io, SD_EVENT_OFF);
    if (r >= 0)
        r = sd_event_source_set_time(s->phases.rest, soonest);
    return r < 0 ? r : sd_event_source_set_enabled(s->phases.rest, SD_EVENT_ONESHOT);
}

static int on_rested(sd_event_source *timer, uint64_t usec, void *userdata)
{
    struct asym_service *s = userdata;
    (void)timer;
    (void)usec;
    return sd_event_source_set_enabled(s->phases.io, SD_EVENT_ON);
}

int asym_service_phases_attach(struct asym_service *s)
{
    struct asym_service_phases *p = &s->phases;
    p->bpf = s->observer.observers.links[ASYM_OBSERVER_BPF];
    if (!p->bpf)
        return 0;
    int r = sd_event_add_io(s->event, &p->io, asym_bpf_fd(p->bpf), EPOLLIN, on_phase, s);
    if (r >= 0)
        r = sd_event_add_time(s->event, &p->rest, CLOCK_MONOTONIC, 0, 1, on_rested, s);
    if (r >= 0)
        r = sd_event_source_set_enabled(p->rest, SD_EVENT_OFF);
    if (r >= 0)
        r = asym_prompt_add(&s->run->prompt, p->io);
    if (r >= 0)
        r = asym_prompt_add(&s->run->prompt, p->rest);
    asym_service_phases_housekeeping(s);
    return r < 0 ? r : 0;
}

void asym_service_phases_detach(struct asym_service *s)
{
    sd_event_source_unref(s->phases.io);
    sd_event_source_unref(s->phases.rest);
}

void asym_service_phases_housekeeping(struct asym_service *s)
{
    struct asym_service_phases *p = &s->phases;
    if (!p->bpf)
        return;
    const enum asym_bpf_hears what = hears(s);
    asym_bpf_set(p->bpf, &s->run->settings->daemon, what);
    const bool is_busy = asym_bpf_housekeeping(p->bpf);
    /*
     * An exchange comes when other threads have just left their CPUs, so asymd finds an idle one. With the priority its samples
     * come later, because a thread that waits with it earns no credit of a sleeper.
     */
    const int r = asym_prompt_want(&s->run->prompt, ASYM_PROMPT_BPF,
                                   is_busy && what == ASYM_BPF_PHASES && s->run->settings->enforce.realtime);
    if (r < 0)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "no real-time priority (%s): asymd sees serial phases later when all CPUs are busy", strerror(-r));
}
