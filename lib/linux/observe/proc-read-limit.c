/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/proc-read-limit.h"

#include <errno.h>

#include "base/macro.h"

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

/* The number of users who wait for longer. One that has not asked for a while may have no process to read any more. */
static unsigned count_before(const struct asym_read_limit *r, const struct asym_read_limit_user *u, asym_usec now)
{
    unsigned n = 0;
    for (size_t i = 0; i < ASYM_READ_LIMIT_USERS; i++) {
        const struct asym_read_limit_user *v = &r->users[i];
        n += v != u && v->turn > 0 && (u->turn == 0 || v->turn < u->turn) && now - v->bucket.at < ASYM_READ_LIMIT_WAITS;
    }
    return ASYM_MIN(n, ASYM_READ_LIMIT_BEFORE);
}

/*
 * Each user that waits for the common bucket has the reserve of one request there before all users that came later. Without that,
 * two users who always ask first would use up the common rate for ever.
 */
static bool user_may_read(struct asym_read_limit *r, struct asym_read_limit_user *u, asym_usec now)
{
    if (u->bucket.tokens < 0) {
        u->turn = 0;
        return false;
    }
    if (r->common.tokens >= ASYM_READ_LIMIT_BURST / 2 + count_before(r, u, now) * ASYM_READ_LIMIT_HANG_COST)
        return true;
    if (u->turn == 0)
        u->turn = ++r->last_turn;
    return false;
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
    if (now - u->bucket.at >= ASYM_READ_LIMIT_WAITS)
        u->turn = 0;
    asym_token_bucket_fill(&r->common, now);
    asym_token_bucket_fill(&u->bucket, now);
    if (uid == 0 ? !root_may_read(r, u, record, now) : !user_may_read(r, u, now))
        return -EAGAIN;
    asym_token_bucket_add(&r->common, -cost);
    if (uid == 0)
        return 0;
    asym_token_bucket_add(&u->bucket, -cost);
    u->turn = 0;
    return 0;
}

asym_usec asym_read_limit_refused_until(const struct asym_read_limit *r, uint32_t uid)
{
    for (size_t i = 0; i < ASYM_READ_LIMIT_USERS; i++)
        if (r->users[i].bucket.at > 0 && r->users[i].uid == uid)
            return r->users[i].refused_until;
    return 0;
}

/*
 * A user can have many requests open, and their cost is known when they are answered. The user's own bucket bears all of it. The
 * common one owes at most a hang: slow answers of one user do not stop the readings of others, and of root, for minutes.
 */
void asym_read_limit_settle(struct asym_read_limit *r, uint32_t uid, double charged, double cost)
{
    const double least = ASYM_MIN(r->common.tokens, -ASYM_READ_LIMIT_HANG_COST);
    asym_token_bucket_add(&r->common, ASYM_MAX(charged - cost, least - r->common.tokens));
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
