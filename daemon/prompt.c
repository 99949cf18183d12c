/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/prompt.h"

#include "base/macro.h"

void asym_prompt_init(struct asym_prompt *p, asym_usec now)
{
    *p = (struct asym_prompt){.saved = ASYM_PROMPT_SAVED_MAX, .last = now};
}

bool asym_prompt_may(struct asym_prompt *p, double percent, asym_usec now)
{
    if (now > p->last) {
        const double earned = (double)(now - p->last) * percent / 100 * ASYM_PROMPT_SHARE;
        p->saved = ASYM_MIN(p->saved + earned, ASYM_PROMPT_SAVED_MAX);
        p->last = now;
    }
    return p->saved > 0;
}

void asym_prompt_spend(struct asym_prompt *p, asym_usec cpu)
{
    p->saved -= (double)cpu;
}
