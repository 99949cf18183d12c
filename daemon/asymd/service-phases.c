/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An early plan, or an exchange, when a program has come down to one runnable thread, or has left that state (observer bpf). */
#include "daemon/asymd/service-internal.h"

#include "linux/observe/bpf.h"
#include "linux/observe/phases-kernel.h"

static enum asym_bpf_hears hears(const struct asym_service *s)
{
    const struct asym_policy *policy = s->run->policy;
    if (asym_overrides_is_paused(s->control.overrides))
        return ASYM_BPF_NOTHING;
    return policy->exchange ? ASYM_BPF_BEGINS : policy->serves_alone ? ASYM_BPF_PHASES : ASYM_BPF_NOTHING;
}

void asym_service_phases_wake_up(struct asym_service *s)
{
    if (!s->phases.dozes || s->sampling || asym_phases_dozes(asym_bpf_kernel(s->phases.bpf)))
        return;
    s->phases.dozes = false;
    sd_event_source_set_time(s->timer, s->phases.next);
}

static bool serve(void *ctx)
{
    struct asym_service *s = ctx;
    const bool has_changed = asym_bpf_take(s->phases.bpf);
    asym_service_phases_wake_up(s);
    return has_changed && hears(s) != ASYM_BPF_NOTHING;
}

static void charge(void *ctx, asym_usec cost)
{
    asym_bpf_charge(((const struct asym_service *)ctx)->phases.bpf, cost);
}

int asym_service_phases_attach(struct asym_service *s)
{
    struct asym_service_phases *p = &s->phases;
    p->bpf = s->observer.observers.links[ASYM_OBSERVER_BPF];
    if (!p->bpf)
        return 0;
    p->asker = (struct asym_asker){.fd = asym_bpf_fd(p->bpf),
                                   .serve = serve,
                                   .charge = charge,
                                   .ctx = s,
                                   .without = "asymd sees serial phases later"};
    const int r = asym_prompt_add(&s->run->prompt, &p->asker, s->event);
    asym_service_phases_housekeeping(s);
    return r;
}

/* Returns true if the last sample shows no program. asymd itself runs in each. */
static bool is_idle(const struct asym_service *s)
{
    const struct asym_snapshot *last = &s->cycle.snapshot;
    /* After a sample that failed the last one is no more. */
    if (s->failing_since != 0 || asym_engine_again(s->cycle.engine) != 0)
        return false;
    for (size_t i = 0; i < last->n_procs; i++)
        if (!(last->procs[i].flags & ASYM_PROC_SELF))
            return false;
    return true;
}

asym_usec asym_service_phases_sleep(struct asym_service *s, asym_usec now, asym_usec wait)
{
    struct asym_service_phases *p = &s->phases;
    p->next = now + wait;
    p->dozes = p->bpf && is_idle(s) && asym_phases_doze(asym_bpf_kernel(p->bpf));
    return p->dozes ? ASYM_MAX(p->next, now + ASYM_SERVICE_HOUSEKEEPING) : p->next;
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
    asym_prompt_want(&p->asker, is_busy && what == ASYM_BPF_PHASES && s->run->settings->enforce.realtime);
}
