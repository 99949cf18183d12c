/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Operations on struct asym_mask, and its text formats. The functions do not allocate and do no I/O. */
#ifndef ASYM_BASE_MASK_H
#define ASYM_BASE_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <asym/types.h>

#define ASYM_MASK_WORDS (ASYM_MAX_CPUS / 64)

/** Bytes of the longest list text with its NUL: every second CPU, four digits and a comma each. */
#define ASYM_MASK_LIST_MAX (ASYM_MAX_CPUS / 2 * 5 + 1)

static inline void asym_mask_set(struct asym_mask *m, unsigned cpu)
{
    m->w[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static inline void asym_mask_clear(struct asym_mask *m, unsigned cpu)
{
    m->w[cpu / 64] &= ~(UINT64_C(1) << cpu % 64);
}

/** Returns false for any cpu outside 0..ASYM_MAX_CPUS-1, -1 included. */
static inline bool asym_mask_has(const struct asym_mask *m, int cpu)
{
    return cpu >= 0 && cpu < ASYM_MAX_CPUS && (m->w[cpu / 64] >> cpu % 64 & 1) != 0;
}

static inline struct asym_mask asym_mask_and(const struct asym_mask *a, const struct asym_mask *b)
{
    struct asym_mask r;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        r.w[i] = a->w[i] & b->w[i];
    return r;
}

static inline struct asym_mask asym_mask_or(const struct asym_mask *a, const struct asym_mask *b)
{
    struct asym_mask r;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        r.w[i] = a->w[i] | b->w[i];
    return r;
}

/** Returns the CPUs of a that are not in b. */
static inline struct asym_mask asym_mask_minus(const struct asym_mask *a, const struct asym_mask *b)
{
    struct asym_mask r;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        r.w[i] = a->w[i] & ~b->w[i];
    return r;
}

static inline bool asym_mask_equal(const struct asym_mask *a, const struct asym_mask *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static inline bool asym_mask_empty(const struct asym_mask *m)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        any |= m->w[i];
    return any == 0;
}

static inline bool asym_mask_meets(const struct asym_mask *a, const struct asym_mask *b)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        any |= a->w[i] & b->w[i];
    return any != 0;
}

/** Returns true if every CPU of a is in b. */
static inline bool asym_mask_within(const struct asym_mask *a, const struct asym_mask *b)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        any |= a->w[i] & ~b->w[i];
    return any == 0;
}

static inline unsigned asym_mask_count(const struct asym_mask *m)
{
    /* Most words are empty on most machines, and without SSE4.2 the compiler makes popcount a function call. */
    unsigned n = 0;
    for (unsigned i = 0; i < ASYM_MASK_WORDS; i++)
        n += m->w[i] ? (unsigned)__builtin_popcountll(m->w[i]) : 0;
    return n;
}

/** Returns the first CPU >= from, or -1. */
static inline int asym_mask_next(const struct asym_mask *m, int from)
{
    if (from >= ASYM_MAX_CPUS)
        return -1;
    unsigned i = (unsigned)from / 64;
    uint64_t w = m->w[i] & ~UINT64_C(0) << (unsigned)from % 64;
    for (;;) {
        if (w)
            return (int)(i * 64 + (unsigned)__builtin_ctzll(w));
        if (++i == ASYM_MASK_WORDS)
            return -1;
        w = m->w[i];
    }
}

#define ASYM_MASK_FOREACH(cpu, mask)                                                                                   \
    for (int cpu = asym_mask_next((mask), 0); cpu >= 0; cpu = asym_mask_next((mask), cpu + 1))

/**
 * Parse the kernel's list format, such as "0-3,8"; "0-6:2/4" is not accepted. Surrounding white space is ignored. An empty text
 * is the empty set.
 * Returns 0; -EINVAL (not a list), -ERANGE (a CPU number of ASYM_MAX_CPUS or more).
 */
int asym_mask_parse_list(const char *text, size_t len, struct asym_mask *ret);

/**
 * Parse the kernel's hex format of Cpus_allowed: comma-separated 32-bit groups, most significant first. Bits of CPUs from
 * ASYM_MAX_CPUS on are ignored: a kernel built for 8192 CPUs prints them for a thread that may run on all CPUs.
 * Returns 0; -EINVAL.
 */
int asym_mask_parse_hex(const char *text, size_t len, struct asym_mask *ret);

/** Write the list format, "" for the empty set. Returns buf. If size is too small, the text ends after a whole range. */
const char *asym_mask_format_list(const struct asym_mask *m, char *buf, size_t size);

#endif
