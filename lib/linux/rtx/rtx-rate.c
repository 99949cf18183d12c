/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-rate.h"

#include "linux/rtx/rtx-orders.h"

static void fill(struct asym_rtxd_rate_user *u, asym_usec now)
{
    if (u->connections.at == 0)
        u->connections = asym_token_bucket_full(ASYM_RTXD_PER_SEC / (double)ASYM_SEC, ASYM_RTXD_BURST, now);
    asym_token_bucket_fill(&u->connections, now);
}

/* An entry with a full bucket holds no history: it may go to another user. */
static bool is_spare(struct asym_rtxd_rate_user *u, asym_usec now)
{
    fill(u, now);
    return u->connections.tokens >= ASYM_RTXD_BURST;
}

static struct asym_rtxd_rate_user *find_user(struct asym_rtxd_rate *r, uid_t uid, asym_usec now)
{
    struct asym_rtxd_rate_user *spare = NULL;
    if (uid == 0)
        return &r->root;
    for (size_t i = 0; i < ASYM_RTXD_RATE_USERS; i++) {
        struct asym_rtxd_rate_user *u = &r->users[i];
        if (u->uid == uid && u->connections.at > 0)
            return u;
        if (!spare && is_spare(u, now))
            spare = u;
    }
    if (!spare)
        return &r->others;
    spare->uid = uid;
    return spare;
}

bool asym_rtxd_rate_take(struct asym_rtxd_rate *r, uid_t uid, asym_usec now)
{
    const double cost = uid == 0 ? 0.25 : 1;
    struct asym_rtxd_rate_user *u = find_user(r, uid, now);
    fill(u, now);
    if (u->connections.tokens < cost)
        return false;
    asym_token_bucket_add(&u->connections, -cost);
    return true;
}
