/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/placement/boost.h"

#include <stddef.h>

#include "base/mask.h"

const struct asym_option asym_boost_options[] = {
    ASYM_OPTION(
        struct asym_boost_params, NICE, sp_boost, .def = "-5", .min = -20, .max = 19,
        .help =
            "While all CPUs are busy, asymd adds this to the nice value of a thread that shares a fast CPU because it "
            "sleeps much, and is in a serial phase or belongs to a serial program; the source changes no nice "
            "value."),
    {.key = NULL},
};

/* Less than one CPU is left. */
static bool is_busy(const struct asym_policy_input *in)
{
    double duties = 0;
    for (size_t t = 0; t < in->n_threads; t++)
        duties += in->threads[t].duty;
    return duties > (double)asym_mask_count(&in->machine->usable) - 1;
}

static bool is_serial(const struct asym_policy_input *in, const struct asym_policy_thread *thread)
{
    return thread->class == ASYM_CLASS_SP || thread->master || in->apps[thread->app].phase == ASYM_PHASE_SERIAL;
}

void asym_boost_light(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    const struct asym_boost_params *params = in->params;
    if (!is_busy(in))
        return;
    for (size_t t = 0; t < in->n_threads; t++)
        if (in->threads[t].light && ret[t].cpu >= 0 && asym_mask_has(&in->machine->fast, ret[t].cpu) &&
            is_serial(in, &in->threads[t]))
            ret[t].nice_delta = (int8_t)params->sp_boost;
}
