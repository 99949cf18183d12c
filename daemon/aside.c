/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/aside.h"

#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/thread.h"

static struct asym_mask claimed_cpus(const struct asym_plan *plan)
{
    struct asym_mask claimed = {0};
    for (size_t t = 0; plan && t < plan->n_tasks; t++)
        if (plan->tasks[t].claim && plan->tasks[t].target >= 0)
            asym_mask_set(&claimed, (unsigned)plan->tasks[t].target);
    return claimed;
}

struct asym_mask asym_aside_choose(const struct asym_mask *own, const struct asym_machine *m,
                                   const struct asym_plan *plan)
{
    const struct asym_mask claimed = claimed_cpus(plan), here = asym_mask_and(own, &m->online);
    const struct asym_mask slow = asym_mask_and(&here, asym_machine_is_asymmetric(m) ? &m->slow : &here);
    const struct asym_mask choices[] = {asym_mask_minus(&slow, &claimed), asym_mask_minus(&here, &claimed), slow};
    for (size_t i = 0; i < ASYM_LENGTH(choices); i++)
        if (!asym_mask_empty(&choices[i]))
            return choices[i];
    return *own;
}

int asym_aside_init(struct asym_aside *a)
{
    struct asym_mask own;
    int r = asym_thread_get_mask(0, &own);
    if (r >= 0)
        *a = (struct asym_aside){.own = own, .set = own};
    return r;
}

void asym_aside_mind(struct asym_aside *a, const struct asym_machine *m, const struct asym_plan *plan)
{
    const struct asym_mask mask = asym_aside_choose(&a->own, m, plan);
    if (asym_mask_empty(&a->own) || asym_mask_equal(&mask, &a->set))
        return;
    if (asym_thread_set_mask((int32_t)gettid(), &mask, false) >= 0)
        a->set = mask;
}
