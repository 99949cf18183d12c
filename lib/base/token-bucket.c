/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/token-bucket.h"

#include <math.h>

#include "base/macro.h"

struct asym_token_bucket asym_token_bucket_full(double rate, double capacity, asym_usec now)
{
    return (struct asym_token_bucket){
        .rate = rate, .capacity = capacity, .most_debt = (double)INFINITY, .tokens = capacity, .at = now};
}

void asym_token_bucket_add(struct asym_token_bucket *b, double tokens)
{
    b->tokens = ASYM_MAX(ASYM_MIN(b->tokens + tokens, b->capacity), -b->most_debt);
    b->is_overdrawn = b->is_overdrawn ? b->tokens < b->resume : b->tokens < 0;
}

void asym_token_bucket_fill(struct asym_token_bucket *b, asym_usec now)
{
    asym_token_bucket_charge(b, 0, now);
}

void asym_token_bucket_charge(struct asym_token_bucket *b, double cost, asym_usec now)
{
    if (now > b->at)
        b->tokens = ASYM_MIN(b->tokens + b->rate * (double)(now - b->at), b->capacity);
    b->at = ASYM_MAX(b->at, now);
    asym_token_bucket_add(b, -cost);
}

bool asym_token_bucket_has(struct asym_token_bucket *b, asym_usec now)
{
    asym_token_bucket_fill(b, now);
    return !b->is_overdrawn;
}

asym_usec asym_token_bucket_due(const struct asym_token_bucket *b)
{
    if (!b->is_overdrawn)
        return b->at;
    if (b->rate <= 0)
        return b->at + ASYM_SEC;
    return b->at + (asym_usec)((b->resume - b->tokens) / b->rate) + 1;
}
