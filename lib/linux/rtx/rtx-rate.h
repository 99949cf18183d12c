/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Limits the connections of each user by a token bucket. No I/O. */
#ifndef ASYM_LINUX_RTX_RATE_H
#define ASYM_LINUX_RTX_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/token-bucket.h"

/** Users with a bucket of their own, besides root. While none of these is full again, further users share one bucket. */
#define ASYM_RTXD_RATE_USERS 256

/** The connections of one user, or of several. All zero: not used yet. */
struct asym_rtxd_rate_user {
    struct asym_token_bucket connections;
    uid_t uid;
};

/** All zero initially. */
struct asym_rtxd_rate {
    struct asym_rtxd_rate_user users[ASYM_RTXD_RATE_USERS], others, root;
};

/** Take a token of this user (root: a quarter). now: microseconds, not 0. Returns whether the user had one. */
bool asym_rtxd_rate_take(struct asym_rtxd_rate *r, uid_t uid, asym_usec now);

#endif
