/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/proc-read-limit.h"

#include <errno.h>

void asym_read_limit_init(struct asym_read_limit *r, asym_usec now)
{
    *r = (struct asym_read_limit){.common = asym_token_bucket_full(0, ASYM_READ_LIMIT_BURST, now)};
}

void asym_read_limit_set(struct asym_read_limit *r, double percent)
{
    r->common.rate = percent / 100;
}

/*
 * Root keeps its bucket: the first use by another user would fill it. A refused user keeps its bucket while another one can go:
 * its reuse would end the refusal. If all users are refused, the oldest bucket goes.
 */
static struct asym_read_limit_user *least_used(struct asym_read_limit *r, asym_usec now)
{
    struct asym_read_limit_user *best = NULL, *oldest = NULL;
    for (size_t i = 0; i < ASYM_READ_LIMIT_USERS; i++) {
        struct asym_read_limit_user *u = &r->users[i];
        if (u->uid == 0 && u->bucket.at > 0)
            continue;
        if (!oldest || u->bucket.at < oldest->bucket.at)
            oldest = u;
        if (u->refused_until <= now && (!best || u->bucket.at < best->bucket.at))
            best = u;
    }
    return best ? best : oldest;
}

static struct asym_read_limit_user *find_user(struct asym_read_limit *r, uint32_t uid, asym_usec now)
{
    for (size_t i = 0; i < ASYM_READ_LIMIT_USERS; i++)
        if (r->users[i].bucket.at > 0 && r->users[i].uid == uid)
            return &r->users[i];
    struct asym_read_limit_user *u = least_used(r, now);
    *u = (struct asym_read_limit_user){.uid = uid,
                                       .bucket = asym_token_bucket_full(0, ASYM_READ_LIMIT_USER_BURST, now)};
    if (uid == 0)
        u->bucket.most_debt = ASYM_READ_LIMIT_HANG_COST;
    return u;
}

/* A program of root that a user has started, and that has made its real UID root's, hangs as the user wants. */
static bool root_may_read(const struct asym_read_limit *r, const struct asym_read_limit_user *root,
                          enum asym_read_limit_record record, asym_usec now)
{
    if (r->common.tokens < 0)
        return false;
    return root->bucket.tokens >= 0 || record == ASYM_READ_LIMIT_READ ||
           (record == ASYM_READ_LIMIT_UNREAD && now - root->hung_at >= ASYM_READ_LIMIT_ROOT_PAUSE);
}

int asym_read_limit_charge(struct asym_read_limit *r, uint32_t uid, enum asym_read_limit_record record, double cost,
                           asym_usec now)
{
    struct asym_read_limit_user *u = find_user(r, uid, now);
    if (u->refused_until > now)
        return -EPERM;
    if (u->refused_until > 0)
        u->hangs = 0;
    u->refused_until = 0;
    u->bucket.rate = r->common.rate / 2;
    asym_token_bucket_fill(&r->common, now);
    asym_token_bucket_fill(&u->bucket, now);
    if (uid == 0 ? !root_may_read(r, u, record, now)
                 : r->common.tokens < ASYM_READ_LIMIT_BURST / 2 || u->bucket.tokens < 0)
        return -EAGAIN;
    asym_token_bucket_add(&r->common, -cost);
    if (uid != 0)
        asym_token_bucket_add(&u->bucket, -cost);
    return 0;
}

asym_usec asym_read_limit_refused_until(const struct asym_read_limit *r, uint32_t uid)
{
    for (size_t i = 0; i < ASYM_READ_LIMIT_USERS; i++)
        if (r->users[i].bucket.at > 0 && r->users[i].uid == uid)
            return r->users[i].refused_until;
    return 0;
}

void asym_read_limit_settle(struct asym_read_limit *r, uint32_t uid, double charged, double cost)
{
    asym_token_bucket_add(&r->common, charged - cost);
    for (size_t i = 0; uid != 0 && i < ASYM_READ_LIMIT_USERS; i++)
        if (r->users[i].bucket.at > 0 && r->users[i].uid == uid)
            asym_token_bucket_add(&r->users[i].bucket, charged - cost);
}

bool asym_read_limit_hung(struct asym_read_limit *r, uint32_t uid, bool repeated, asym_usec now)
{
    struct asym_read_limit_user *u = find_user(r, uid, now);
    asym_token_bucket_add(&u->bucket, -ASYM_READ_LIMIT_HANG_COST);
    if (uid == 0) {
        u->hung_at = now;
        return false;
    }
    asym_token_bucket_add(&r->common, -ASYM_READ_LIMIT_HANG_COST);
    if (!repeated)
        return false;
    if (now - u->hung_at >= ASYM_READ_LIMIT_REFUSED)
        u->hangs = 0;
    u->hung_at = now;
    if (++u->hangs < ASYM_READ_LIMIT_HANGS)
        return false;
    u->refused_until = now + ASYM_READ_LIMIT_REFUSED;
    return true;
}
