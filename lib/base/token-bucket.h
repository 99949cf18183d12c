/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A token bucket: it earns tokens at a constant rate, holds a limited number of them, and may owe some. Pure: the caller passes
 * the time. The caller says what a token is; here most are a microsecond of CPU time.
 */
#ifndef ASYM_BASE_TOKEN_BUCKET_H
#define ASYM_BASE_TOKEN_BUCKET_H

#include <stdbool.h>

#include <asym/types.h>

struct asym_token_bucket {
    double rate;       /**< tokens that it earns in a microsecond, from 0; may be changed at any time */
    double capacity;   /**< the most tokens that it holds, above 0 */
    double most_debt;  /**< the most tokens that it owes; the caller bears a larger cost. INFINITY: no bound */
    double resume;     /**< tokens that end an overdraft, 0 to capacity: with more, the caller wakes less often */
    double tokens;     /**< -most_debt to capacity; below 0: it owes them */
    asym_usec at;      /**< tokens has what the bucket earned up to this time */
    bool is_overdrawn; /**< tokens fell below 0, and have not come back to resume since */
};

/** Returns a full bucket. Its debt has no bound, and an overdraft ends at 0 tokens. */
struct asym_token_bucket asym_token_bucket_full(double rate, double capacity, asym_usec now);

/** Add the tokens that it has earned up to now. A time before the last one earns nothing. */
void asym_token_bucket_fill(struct asym_token_bucket *b, asym_usec now);

/** Add tokens, or take them (below 0), without regard to the time. Tokens beyond the capacity or the debt are lost. */
void asym_token_bucket_add(struct asym_token_bucket *b, double tokens);

/** Fill the bucket, then take the cost, from 0, whether the bucket has it or not. */
void asym_token_bucket_charge(struct asym_token_bucket *b, double cost, asym_usec now);

/** Fill the bucket. Returns whether it is not overdrawn. */
bool asym_token_bucket_has(struct asym_token_bucket *b, asym_usec now);

/** Returns when it is no longer overdrawn; not after `at`: it is not. A rate of 0 never earns: returns one second after `at`. */
asym_usec asym_token_bucket_due(const struct asym_token_bucket *b);

#endif
