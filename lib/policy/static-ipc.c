/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The threads with the highest ratio of fast to slow performance hold the fast CPUs. The ratio comes from profiles that
 * were measured beforehand (Saez 2010, 2.3, Static-IPC-Driven). It is the ratio of instructions per second, not per cycle,
 * because that is what a program gains from a fast CPU. On a machine with more than two core types it compares the fastest
 * type with the slowest type that was measured. Threads without a profile come last: their gain is unknown.
 */
#include <asym/policy.h>

#include "policy/placement/spread.h"

struct thread_state {
    uint8_t holds; /* as in struct asym_spread, of the last plan */
};

/* Returns 0 if the program was not measured on two core types, the fastest among them. */
static float gain_of(const struct asym_machine *m, const struct asym_profile *p)
{
    for (unsigned type = m->n_types; p && p->ips[0] > 0 && type-- > 1;)
        if (p->ips[type] > 0)
            return (float)(p->ips[0] / p->ips[type]);
    return 0;
}

static const struct asym_reason no_profile = {
    .text = "no profile of its program: others go first",
    .sentence = "belongs to a program without a profile, so threads of programs with one come before it"};

static int plan(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    struct asym_spread sp;
    struct asym_ranked ranked;
    asym_spread_init(&sp, in, ret);
    asym_ranked_init(&ranked, &sp);
    const int r = asym_spread_begin(&sp, ranked.order);
    if (r <= 0)
        return r;
    for (size_t t = 0; t < in->n_threads; t++) {
        const struct thread_state *s = in->threads[t].state;
        ranked.gain[t] = gain_of(in->machine, in->threads[t].profile);
        ranked.holds[t] = s->holds;
    }
    asym_ranked_place(&ranked);
    for (size_t t = 0; t < in->n_threads; t++) {
        struct thread_state *s = in->threads[t].state;
        s->holds = ranked.holds[t];
        asym_ranked_explain(&ranked, t, &no_profile);
    }
    return 0;
}

const struct asym_policy asym_policy_static_ipc = {
    .name = "static-ipc",
    .summary = "the programs that gain most, by their profiles, get the fast CPUs",
    .source = "Saez 2010, 2.3 (Static-IPC-Driven)",
    .needs = 1u << ASYM_SIGNAL_PROFILE,
    .pin = ASYM_PIN_TYPE,
    .task_state_size = sizeof(struct thread_state),
    .plan = plan,
};
