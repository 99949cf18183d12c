/* SPDX-License-Identifier: GPL-2.0-or-later */
/** How often each user may connect: a token bucket a user. No I/O. */
#ifndef ASYM_LINUX_RTX_RATE_H
#define ASYM_LINUX_RTX_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Users that are told apart; those who come while all of these have connected of late share one bucket. */
#define ASYM_RTX_RATE_USERS 256

struct asym_rtx_bucket {
    double tokens;
    long long at; /* milliseconds; when tokens was right */
    uid_t uid;
    bool used;
};

/** All zero at first. */
struct asym_rtx_rate {
    struct asym_rtx_bucket users[ASYM_RTX_RATE_USERS], others;
};

/** Take a token of this user. now: milliseconds, not 0. Whether there was one. */
bool asym_rtx_rate_take(struct asym_rtx_rate *r, uid_t uid, long long now);

#endif
