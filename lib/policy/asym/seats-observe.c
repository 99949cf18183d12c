/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Step 1 of asym: the means of each thread. */
#include "policy/asym/seats-internal.h"

#include <math.h>

#include "base/mask.h"

/* An interval counts for progress only if the thread needed a CPU for this share of it: below, its ratio is noise. */
#define RATE_FROM 0.2

/* No thread has made less progress than this: a rank is a ratio by it. */
#define RATE_LEAST 1e-3

/* One that was runnable for less slept in it for so long that it may have waited for others. */
#define PARTIAL_BELOW 0.75

/* The rate of a thread before any is known. */
#define RATE_FIRST 0.5

/* A sample of fewer instructions, or of less time, says nothing about the thread. */
#define SAMPLE_INSTRUCTIONS 1e5
#define SAMPLE_SECONDS      0.002

/* Misses explain at most this share of a thread's time. */
#define STALL_MOST 0.97

struct interval {
    double seconds, duty, couple; /* what the new values count in the means */
    double rate[2];               /* the same of a thread that never sleeps, with quick turns and with slow ones */
    asym_usec until;              /* asym_seats_until */
};

double asym_seats_gain(double seconds, asym_usec tau)
{
    return tau == 0 ? 1 : 1 - exp(-seconds * (double)ASYM_SEC / (double)tau);
}

static asym_usec tau_of(const struct asym_seats *q, bool slow)
{
    return q->p->tau * (slow ? 5 : 1);
}

bool asym_seats_is_remote(const struct asym_seats *q, size_t t, int cpu)
{
    const int16_t node = asym_seats_of(q, t)->node;
    return node > 0 && q->in->machine->cpus[cpu].node != node - 1;
}

double asym_seats_sigma(const struct asym_seats *q, size_t t, double speed, bool is_remote)
{
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    if (s->exec <= 0)
        return speed;
    return (s->exec + s->stall) / (s->exec / speed + s->stall * (is_remote ? q->p->remote : 1));
}

double asym_seats_speed_given(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    return asym_seats_sigma(q, t, q->speed[s->given], asym_seats_is_remote(q, t, s->given)) * s->smt;
}

/* The mean of the speeds that it had in its seats since the last plan. */
static double mean_speed(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    const double now = asym_seats_speed_given(q, t);
    if (s->sat_at <= s->last)
        return now;
    return (s->left + now * (double)(q->in->now - s->sat_at)) / (double)(q->in->now - s->last);
}

/* Split the time of an instruction into that of the core, which the speed divides, and that of the memory, which it does not. */
static void observe_counters(struct asym_seats *q, size_t t, int cpu)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const struct asym_sample *sample = thread->sample;
    struct asym_seats_thread *s = asym_seats_of(q, t);
    if (!sample || sample->instructions < SAMPLE_INSTRUCTIONS || sample->seconds < SAMPLE_SECONDS ||
        thread->sampled_on != q->in->machine->cpus[cpu].type)
        return;
    const double remote = asym_seats_is_remote(q, t, cpu) ? q->p->remote : 1;
    const double each = sample->seconds / sample->instructions;
    const double misses = ASYM_MAX(sample->llc_misses, 0) / sample->instructions * q->p->miss_ns * 1e-9;
    const double stall = ASYM_MIN(misses * remote, STALL_MOST * each);
    const double share = s->exec > 0 ? 0.5 : 1;
    s->exec += share * ((each - stall) * q->speed[cpu] * s->smt - s->exec);
    s->stall += share * (stall / remote - s->stall);
}

/* While the thread was not in the input, it slept. */
static void fade(const struct asym_seats *q, struct asym_seats_thread *s, double gap)
{
    const double duty = 1 - asym_seats_gain(gap, q->p->tau_duty), couple = 1 - asym_seats_gain(gap, q->p->tau_couple);
    s->duty *= duty;
    s->critical *= couple;
    s->needed *= couple;
    s->pace *= couple;
    s->usual *= couple;
    s->partial *= couple;
}

/* A thread that woke and slept again within the interval woke in the middle of it, for all that is known. */
static void observe_round(const struct asym_policy_thread *thread, struct asym_seats_thread *s, double seconds,
                          double done, bool was_away)
{
    s->step = done * seconds;
    s->woke = thread->awake && (!s->awake || was_away);
    if (s->woke)
        s->since = thread->runnable * seconds;
    else if (thread->runnable < ASYM_SEATS_SLEPT_BELOW &&
             (thread->awake || (thread->runnable > 0 && (!s->awake || was_away))))
        s->since = seconds / 2;
    s->awake = thread->awake;
}

static void observe_progress(struct asym_seats *q, size_t t, const struct interval *i, double done)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    struct asym_seats_thread *s = asym_seats_of(q, t);
    const double needed = ASYM_MAX(thread->runnable, thread->running);
    if (!s->roams || s->rests)
        s->usual += i->couple * (thread->runnable - s->usual);
    if (!s->roams) {
        s->work += done * i->seconds;
        s->pace += i->couple * (done - s->pace);
    }
    if (needed < RATE_FROM)
        return;
    const bool slow = asym_seats_slowness(q, t) > 1;
    const double gain = thread->runnable >= 1 ? i->rate[slow]
                                              : asym_seats_gain(i->seconds * thread->runnable, tau_of(q, slow));
    s->rate += gain * (done / needed - s->rate);
    s->rate = ASYM_MAX(s->rate, RATE_LEAST);
}

/* Returns whether another thread of its process is in the plan. */
static bool has_mate_here(const struct asym_policy_input *in, size_t t)
{
    const struct asym_policy_thread *thread = &in->threads[t];
    return (t > 0 && thread[-1].app == thread->app && thread[-1].proc == thread->proc) ||
           (t + 1 < in->n_threads && thread[1].app == thread->app && thread[1].proc == thread->proc);
}

static void observe_thread(struct asym_seats *q, size_t t, const struct interval *i)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const struct asym_machine *m = q->in->machine;
    struct asym_seats_thread *s = asym_seats_of(q, t);
    if (s->node == 0 && thread->preferred_cpu >= 0)
        s->node = (int16_t)(m->cpus[thread->preferred_cpu].node + 1);
    if (s->last == 0) {
        s->duty = thread->runnable;
        s->critical = thread->critical;
        s->needed = thread->runnable;
        s->awake = thread->awake;
    }
    s->step = s->since = 0;
    s->woke = false;
    if (has_mate_here(q->in, t))
        s->mate_until = i->until;
    if (q->in->apps[thread->app].n_threads > 1)
        s->job_until = i->until;
    if (s->last == 0 || q->in->interval == 0)
        return;
    const asym_usec away = q->in->now - s->last;
    if (away > q->in->interval)
        fade(q, s, (double)(away - q->in->interval) / (double)ASYM_SEC);
    s->duty += i->duty * (thread->runnable - s->duty);
    if (thread->critical <= 0 && thread->runnable > 0)
        s->critical = 0; /* it is measured no more */
    else
        s->critical += (s->critical > 0 ? i->couple : 1) * (thread->critical - s->critical);
    s->needed += i->couple * (thread->runnable - s->needed);
    s->partial += i->couple * ((away <= q->in->interval && thread->runnable < PARTIAL_BELOW) - s->partial);
    s->seen += q->in->interval;
    s->coupled = s->coupled && (!s->roams || s->rests);
    if (!asym_mask_has(&m->usable, s->given))
        return;
    if (away <= q->in->interval)
        observe_counters(q, t, s->given);
    const double done = thread->running * mean_speed(q, t);
    observe_round(thread, s, i->seconds, done, away > q->in->interval);
    if (away <= q->in->interval)
        observe_progress(q, t, i, done);
}

void asym_seats_observe(struct asym_seats *q)
{
    const double seconds = (double)q->in->interval / (double)ASYM_SEC;
    const struct interval i = {
        .seconds = seconds,
        .duty = asym_seats_gain(seconds, q->p->tau_duty),
        .couple = asym_seats_gain(seconds, q->p->tau_couple),
        .rate = {asym_seats_gain(seconds, tau_of(q, false)), asym_seats_gain(seconds, tau_of(q, true))},
        .until = asym_seats_until(q)};
    double sum = 0;
    size_t known = 0;
    for (size_t t = 0; t < q->in->n_threads; t++) {
        observe_thread(q, t, &i);
        sum += asym_seats_of(q, t)->rate;
        known += asym_seats_of(q, t)->rate > 0;
    }
    /* A newcomer is where the others are on average: it neither waits nor claims what it missed. */
    const double mean = known ? sum / (double)known : RATE_FIRST;
    for (size_t t = 0; t < q->in->n_threads && known < q->in->n_threads; t++)
        if (asym_seats_of(q, t)->rate <= 0)
            asym_seats_of(q, t)->rate = mean;
}
