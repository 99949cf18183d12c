/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/proc-ration.h"

#include <errno.h>

#include "base/macro.h"

void asym_ration_init(struct asym_ration *r, asym_usec now)
{
    *r = (struct asym_ration){.left = ASYM_RATION_BURST, .filled_at = now};
}

void asym_ration_set(struct asym_ration *r, double percent)
{
    r->rate = percent / 100;
}

static void fill(double *left, asym_usec *at, double rate, double most, asym_usec now)
{
    if (now > *at)
        *left = ASYM_MIN(*left + rate * (double)(now - *at), most);
    *at = ASYM_MAX(*at, now);
}

/* A user that is refused keeps the account, or another user's first use would end the refusal. */
static struct asym_ration_user *least_used(struct asym_ration *r, asym_usec now)
{
    struct asym_ration_user *best = NULL, *oldest = &r->users[0];
    for (size_t i = 0; i < ASYM_RATION_USERS; i++) {
        struct asym_ration_user *u = &r->users[i];
        if (u->filled_at < oldest->filled_at)
            oldest = u;
        if (u->refused_until <= now && (!best || u->filled_at < best->filled_at))
            best = u;
    }
    return best ? best : oldest;
}

static struct asym_ration_user *account(struct asym_ration *r, uint32_t uid, asym_usec now)
{
    for (size_t i = 0; i < ASYM_RATION_USERS; i++)
        if (r->users[i].filled_at > 0 && r->users[i].uid == uid)
            return &r->users[i];
    struct asym_ration_user *u = least_used(r, now);
    *u = (struct asym_ration_user){.uid = uid, .left = ASYM_RATION_USER_BURST, .filled_at = now};
    return u;
}

int asym_ration_charge(struct asym_ration *r, uint32_t uid, double cost, asym_usec now)
{
    struct asym_ration_user *u = account(r, uid, now);
    if (u->refused_until > now)
        return -EPERM;
    if (u->refused_until > 0)
        u->hangs = 0;
    u->refused_until = 0;
    fill(&r->left, &r->filled_at, r->rate, ASYM_RATION_BURST, now);
    fill(&u->left, &u->filled_at, r->rate / 2, ASYM_RATION_USER_BURST, now);
    if (r->left < (uid == 0 ? 0 : ASYM_RATION_BURST / 2) || (uid != 0 && u->left < 0))
        return -EAGAIN;
    r->left -= cost;
    u->left -= cost;
    return 0;
}

void asym_ration_settle(struct asym_ration *r, uint32_t uid, double charged, double cost)
{
    r->left = ASYM_MIN(r->left + charged - cost, ASYM_RATION_BURST);
    for (size_t i = 0; i < ASYM_RATION_USERS; i++)
        if (r->users[i].filled_at > 0 && r->users[i].uid == uid)
            r->users[i].left = ASYM_MIN(r->users[i].left + charged - cost, ASYM_RATION_USER_BURST);
}

bool asym_ration_hung(struct asym_ration *r, uint32_t uid, asym_usec now)
{
    struct asym_ration_user *u = account(r, uid, now);
    if (now - u->hung_at >= ASYM_RATION_REFUSED)
        u->hangs = 0;
    u->hung_at = now;
    if (++u->hangs < ASYM_RATION_HANGS)
        return false;
    u->refused_until = now + ASYM_RATION_REFUSED;
    return true;
}
