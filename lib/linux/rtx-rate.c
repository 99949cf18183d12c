/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-rate.h"

#include "base/macro.h"
#include "linux/rtx-acceptor.h"

static void fill(struct asym_rtx_bucket *b, long long now)
{
    const double earned = b->used ? (double)(now - b->at) / 1000 * ASYM_RTX_PER_SEC : ASYM_RTX_BURST;
    b->tokens = ASYM_MIN(b->tokens + ASYM_MAX(earned, 0.0), ASYM_RTX_BURST);
    b->at = now;
    b->used = true;
}

/* A bucket that is full says no more of its user than a new one would. */
static struct asym_rtx_bucket *bucket_of(struct asym_rtx_rate *r, uid_t uid, long long now)
{
    struct asym_rtx_bucket *spare = NULL;
    for (size_t i = 0; i < ASYM_RTX_RATE_USERS; i++) {
        struct asym_rtx_bucket *b = &r->users[i];
        if (b->used && b->uid == uid)
            return b;
        if (!spare && (!b->used || b->tokens + (double)(now - b->at) / 1000 * ASYM_RTX_PER_SEC >= ASYM_RTX_BURST))
            spare = b;
    }
    if (!spare)
        return &r->others;
    *spare = (struct asym_rtx_bucket){.uid = uid};
    return spare;
}

bool asym_rtx_rate_take(struct asym_rtx_rate *r, uid_t uid, long long now)
{
    const double cost = uid == 0 ? 0.25 : 1;
    struct asym_rtx_bucket *b = bucket_of(r, uid, now);
    fill(b, now);
    if (b->tokens < cost)
        return false;
    b->tokens -= cost;
    return true;
}
