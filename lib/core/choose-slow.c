/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choose the CPUs to slow when the configuration gives only their number. */
#include <asym/machine.h>

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* Groups of CPUs that change speed together: they share a core or a frequency domain, directly or through others. */
struct units {
    unsigned n;
    struct unit {
        unsigned size, llc; /* llc: of its first CPU */
        bool chosen;
    } unit[ASYM_MAX_CPUS];
    uint16_t of[ASYM_MAX_CPUS]; /* the unit of each usable CPU */
    unsigned llc_size[ASYM_MAX_CPUS], llc_slow[ASYM_MAX_CPUS], llc_units[ASYM_MAX_CPUS];
};

static unsigned root_of(uint16_t *up, unsigned c)
{
    while (up[c] != c)
        c = up[c] = up[up[c]];
    return c;
}

static void join(uint16_t *up, int16_t *first, int16_t group, unsigned c)
{
    if (first[group] < 0)
        first[group] = (int16_t)c;
    unsigned a = root_of(up, (unsigned)first[group]), b = root_of(up, c);
    up[ASYM_MAX(a, b)] = (uint16_t)ASYM_MIN(a, b);
}

static void find_units(const struct asym_machine *m, struct units *u)
{
    uint16_t up[ASYM_MAX_CPUS];
    int16_t core[ASYM_MAX_CPUS], domain[ASYM_MAX_CPUS];
    memset(core, -1, sizeof core);
    memset(domain, -1, sizeof domain);
    for (unsigned c = 0; c < ASYM_MAX_CPUS; c++)
        up[c] = (uint16_t)c;
    ASYM_MASK_FOREACH (c, &m->usable) {
        join(up, core, m->cpus[c].core, (unsigned)c);
        join(up, domain, m->cpus[c].freq_domain, (unsigned)c);
    }
    memset(u, 0, sizeof *u);
    ASYM_MASK_FOREACH (c, &m->usable) {
        unsigned root = root_of(up, (unsigned)c);
        if (root == (unsigned)c) {
            u->of[c] = (uint16_t)u->n;
            u->unit[u->n].llc = (unsigned)m->cpus[c].llc;
            u->llc_units[u->unit[u->n].llc]++;
            u->n++;
        }
        u->of[c] = u->of[root];
        u->unit[u->of[c]].size++;
        u->llc_size[u->unit[u->of[c]].llc]++;
    }
}

/*
 * The cost of slowing unit i next; less is better. A unit whose LLC has no slow CPU yet comes first, then any unit, by the
 * share of its LLC that is slow already. A unit that would leave its LLC without a fast CPU comes last.
 */
static double cost(const struct units *u, unsigned i)
{
    const unsigned llc = u->unit[i].llc;
    double share = (double)u->llc_slow[llc] / u->llc_size[llc];
    if (u->llc_units[llc] == 1)
        return 1 + share;
    if (u->llc_slow[llc] + u->unit[i].size == u->llc_size[llc])
        return 3;
    return u->llc_slow[llc] == 0 ? share : 1 + share;
}

/* Returns how many of the n CPUs it could not choose. On a tie it takes the last unit: the first CPUs stay fast. */
static unsigned choose(struct units *u, unsigned n)
{
    for (;;) {
        int best = -1;
        for (unsigned i = 0; i < u->n; i++)
            if (!u->unit[i].chosen && u->unit[i].size <= n && (best < 0 || cost(u, i) <= cost(u, (unsigned)best)))
                best = (int)i;
        if (best < 0)
            return n;
        u->unit[best].chosen = true;
        u->llc_slow[u->unit[best].llc] += u->unit[best].size;
        n -= u->unit[best].size;
    }
}

/* Units differ in size: find a choice of exactly n CPUs, and keep as much as possible of the one that fell short. */
static int choose_exactly(struct units *u, unsigned n)
{
    /* reach[i]: the sums that units from i on can make */
    struct asym_mask reach[ASYM_MAX_CPUS + 1];
    memset(reach, 0, sizeof reach);
    asym_mask_set(&reach[u->n], 0);
    for (unsigned i = u->n; i-- > 0;) {
        reach[i] = reach[i + 1];
        for (int s = asym_mask_next(&reach[i + 1], 0); s >= 0; s = asym_mask_next(&reach[i + 1], s + 1))
            if ((unsigned)s + u->unit[i].size < ASYM_MAX_CPUS)
                asym_mask_set(&reach[i], (unsigned)s + u->unit[i].size);
    }
    if (!asym_mask_has(&reach[0], (int)n))
        return -ERANGE;
    for (unsigned i = 0; i < u->n; i++) {
        bool can_take = asym_mask_has(&reach[i + 1], (int)n - (int)u->unit[i].size);
        bool can_leave = asym_mask_has(&reach[i + 1], (int)n);
        u->unit[i].chosen = can_take && (u->unit[i].chosen || !can_leave);
        if (u->unit[i].chosen)
            n -= u->unit[i].size;
    }
    return 0;
}

int asym_machine_choose_slow(const struct asym_machine *m, unsigned n, struct asym_mask *ret_slow)
{
    if (n == 0 || n >= asym_mask_count(&m->usable))
        return -ERANGE;
    struct units u;
    find_units(m, &u);
    if (choose(&u, n) > 0) {
        int r = choose_exactly(&u, n);
        if (r < 0)
            return r;
    }
    struct asym_mask slow = {{0}};
    ASYM_MASK_FOREACH (c, &m->usable) {
        if (u.unit[u.of[c]].chosen)
            asym_mask_set(&slow, (unsigned)c);
    }
    *ret_slow = slow;
    return 0;
}
