/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-prompt.h"

#include "base/macro.h"

/* Nobody waits longer than this to be told that it still may not. */
#define FAR_AWAY ASYM_SEC

/* CPU time earned in a unit of time. */
static double rate(double percent, double part)
{
    return percent / 100 * ASYM_PROMPT_SHARE * part;
}

void asym_prompt_init(struct asym_prompt *p, asym_usec now)
{
    *p = (struct asym_prompt){.saved = ASYM_PROMPT_SAVED_MAX, .last = now};
}

bool asym_prompt_may(struct asym_prompt *p, double percent, double part, asym_usec now)
{
    if (now > p->last) {
        const double earned = (double)(now - p->last) * rate(percent, part);
        p->saved = ASYM_MIN(p->saved + earned, ASYM_PROMPT_SAVED_MAX * part);
        p->last = now;
    }
    return p->saved > 0;
}

asym_usec asym_prompt_when(const struct asym_prompt *p, double percent, double part)
{
    const double wait = p->saved > 0 ? 0 : 1 - p->saved / ASYM_MAX(rate(percent, part), 1e-9);
    return p->last + (wait < (double)FAR_AWAY ? (asym_usec)wait + 1 : FAR_AWAY);
}

void asym_prompt_spend(struct asym_prompt *p, double cpu)
{
    p->saved -= cpu;
}
