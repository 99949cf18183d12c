/* SPDX-License-Identifier: GPL-2.0-or-later */
/** SplitMix64: small, takes any seed, gives the same numbers on every machine. Each program instance has its own stream. */
#ifndef ASYM_SIM_RNG_H
#define ASYM_SIM_RNG_H

#include <math.h>
#include <stdint.h>

struct sim_rng {
    uint64_t state;
};

static inline uint64_t sim_rng_next(struct sim_rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/** Returns the stream for a key under a seed. */
static inline struct sim_rng sim_rng_stream(uint64_t seed, uint64_t key)
{
    struct sim_rng r = {seed};
    r.state = sim_rng_next(&r) ^ key * UINT64_C(0xd1342543de82ef95);
    sim_rng_next(&r);
    return r;
}

/** Returns a number from 0 to n-1; n > 0. The bias is below n / 2^32. */
static inline uint32_t sim_rng_below(struct sim_rng *r, uint32_t n)
{
    return (uint32_t)((sim_rng_next(r) >> 32) * n >> 32);
}

/** Returns a number in (0, 1]. */
static inline double sim_rng_unit(struct sim_rng *r)
{
    return (double)((sim_rng_next(r) >> 11) + 1) * 0x1p-53;
}

static inline double sim_rng_exponential(struct sim_rng *r, double mean)
{
    return -mean * log(sim_rng_unit(r));
}

#endif
