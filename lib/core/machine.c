/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <asym/machine.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"

bool asym_machine_is_asymmetric(const struct asym_machine *m)
{
    return !asym_mask_empty(&m->slow);
}

const char *asym_origin_name(enum asym_origin origin)
{
    static const char *const names[ASYM_N_ORIGINS] = {
        [ASYM_ORIGIN_NONE] = "none",       [ASYM_ORIGIN_CONFIG] = "configuration",
        [ASYM_ORIGIN_CAP] = "cap",         [ASYM_ORIGIN_CAPACITY] = "cpu_capacity",
        [ASYM_ORIGIN_CPUFREQ] = "cpufreq", [ASYM_ORIGIN_CPUKINDS] = "cpukinds",
    };
    return (unsigned)origin < ASYM_N_ORIGINS ? names[origin] : "unknown";
}

/* Group numbers become dense in the order of the first CPU of each; those of unusable CPUs become -1. */
static unsigned make_dense(struct asym_machine *m, size_t field)
{
    int16_t numbers[ASYM_MAX_CPUS];
    unsigned n = 0;
    for (unsigned c = 0; c < m->n_cpus; c++) {
        int16_t *group = (int16_t *)(void *)((char *)&m->cpus[c] + field);
        if (!asym_mask_has(&m->usable, (int)c)) {
            *group = -1;
            continue;
        }
        unsigned i = 0;
        while (i < n && numbers[i] != *group)
            i++;
        if (i == n)
            numbers[n++] = *group;
        *group = (int16_t)i;
    }
    return n;
}

/* A CPU of which nobody says what core or frequency domain it is in shares neither. */
static void separate_unknown(struct asym_machine *m)
{
    ASYM_MASK_FOREACH (c, &m->usable) {
        if (m->cpus[c].core < 0)
            m->cpus[c].core = (int16_t)(INT16_MAX - c);
        if (m->cpus[c].freq_domain < 0)
            m->cpus[c].freq_domain = (int16_t)(INT16_MAX - c);
    }
}

static void rank_siblings(struct asym_machine *m)
{
    uint8_t seen[ASYM_MAX_CPUS] = {0};
    ASYM_MASK_FOREACH (c, &m->usable)
        m->cpus[c].smt_rank = seen[m->cpus[c].core]++;
}

static int check_speeds(const struct asym_machine *m, double *ret_slowest)
{
    double slowest = 0;
    unsigned n = 0, unknown = 0;
    if (m->n_cpus > ASYM_MAX_CPUS || asym_mask_empty(&m->usable))
        return -EINVAL;
    ASYM_MASK_FOREACH (c, &m->usable) {
        double speed = m->cpus[c].speed;
        if ((unsigned)c >= m->n_cpus || !(speed >= 0) || isinf(speed))
            return -EINVAL;
        unknown += speed <= 0;
        slowest = n++ == 0 ? speed : ASYM_MIN(slowest, speed);
    }
    /* Some with a figure and some without cannot be compared. */
    if (unknown != 0 && unknown != n)
        return -EINVAL;
    *ret_slowest = slowest;
    return 0;
}

static int by_speed(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_cpu *cpus = ctx;
    if (cpus[a].speed > cpus[b].speed)
        return -1;
    if (cpus[a].speed < cpus[b].speed)
        return 1;
    return cpus[a].kind - cpus[b].kind;
}

/* A CPU belongs to the type whose fastest CPU is within the tolerance and of its kind. */
static unsigned find_type(const struct asym_machine *m, const int16_t *kinds, const struct asym_cpu *cpu)
{
    for (unsigned t = 0; t < m->n_types; t++)
        if (kinds[t] == cpu->kind && cpu->speed >= m->types[t].speed * (1 - ASYM_TYPE_TOLERANCE))
            return t;
    return m->n_types;
}

static void make_types(struct asym_machine *m)
{
    uint32_t order[ASYM_MAX_CPUS], scratch[ASYM_MAX_CPUS];
    int16_t kinds[ASYM_MAX_TYPES];
    size_t n = 0;
    ASYM_MASK_FOREACH (c, &m->usable)
        order[n++] = (uint32_t)c;
    asym_sort_index(order, n, scratch, by_speed, m->cpus);
    m->n_types = 0;
    for (size_t i = 0; i < n; i++) {
        struct asym_cpu *cpu = &m->cpus[order[i]];
        unsigned t = find_type(m, kinds, cpu);
        if (t == ASYM_MAX_TYPES)
            t = ASYM_MAX_TYPES - 1;
        if (t == m->n_types) {
            kinds[t] = cpu->kind;
            m->types[t].cpus = (struct asym_mask){0};
            m->types[t].speed = cpu->speed;
            m->types[t].origin = (enum asym_origin)cpu->origin;
            m->n_types++;
        }
        asym_mask_set(&m->types[t].cpus, order[i]);
        cpu->type = (int16_t)t;
    }
}

static void name_types(struct asym_machine *m)
{
    for (unsigned t = 0; t < ASYM_MAX_TYPES; t++) {
        struct asym_core_type *type = &m->types[t];
        if (t >= m->n_types)
            *type = (struct asym_core_type){0};
        else if (m->n_types == 1)
            snprintf(type->name, sizeof type->name, "all");
        else if (m->n_types == 2)
            snprintf(type->name, sizeof type->name, t == 0 ? "fast" : "slow");
        else
            snprintf(type->name, sizeof type->name, "type %u", t);
    }
}

int asym_machine_finish(struct asym_machine *m)
{
    double slowest;
    int r = check_speeds(m, &slowest);
    if (r < 0)
        return r;
    for (unsigned c = 0; c < m->n_cpus; c++) {
        struct asym_cpu *cpu = &m->cpus[c];
        bool usable = asym_mask_has(&m->usable, (int)c);
        cpu->speed = !usable ? 0 : slowest > 0 ? cpu->speed / slowest : 1;
        cpu->type = -1;
        cpu->smt_rank = 0;
    }
    separate_unknown(m);
    m->n_cores = make_dense(m, offsetof(struct asym_cpu, core));
    m->n_llcs = make_dense(m, offsetof(struct asym_cpu, llc));
    m->n_nodes = make_dense(m, offsetof(struct asym_cpu, node));
    make_dense(m, offsetof(struct asym_cpu, freq_domain));
    rank_siblings(m);
    make_types(m);
    name_types(m);
    m->fast = m->types[0].cpus;
    m->slow = asym_mask_minus(&m->usable, &m->fast);
    return 0;
}

int asym_machine_assume_slow(struct asym_machine *m, const struct asym_mask *slow, double factor)
{
    if (!(factor > 0 && factor <= 1))
        return -EINVAL;
    if (!asym_mask_within(slow, &m->usable))
        return -ENXIO;
    ASYM_MASK_FOREACH (c, slow) {
        m->cpus[c].speed *= factor;
        m->cpus[c].origin = ASYM_ORIGIN_CONFIG;
    }
    return asym_machine_finish(m);
}

/*
 * Units that must not be split: CPUs connected through a shared core or frequency domain. unit[c] is the lowest CPU of
 * c's unit. Merging by relabelling is quadratic only in the number of CPUs that share something.
 */
static void find_units(const struct asym_machine *m, int16_t unit[ASYM_MAX_CPUS])
{
    int16_t core_unit[ASYM_MAX_CPUS], domain_unit[ASYM_MAX_CPUS];
    memset(core_unit, -1, sizeof core_unit);
    memset(domain_unit, -1, sizeof domain_unit);
    ASYM_MASK_FOREACH (c, &m->usable) {
        int16_t *owners[] = {&core_unit[m->cpus[c].core], &domain_unit[m->cpus[c].freq_domain]};
        unit[c] = (int16_t)c;
        for (size_t i = 0; i < ASYM_LENGTH(owners); i++) {
            if (*owners[i] < 0) {
                *owners[i] = (int16_t)c;
                continue;
            }
            int16_t from = unit[c], to = unit[*owners[i]];
            if (to > from) {
                int16_t swap = from;
                from = to;
                to = swap;
            }
            for (int k = 0; k <= c; k++)
                if (asym_mask_has(&m->usable, k) && unit[k] == from)
                    unit[k] = to;
        }
    }
}

/*
 * Take whole units, each time from the LLC domain with the smallest share of slow CPUs that can spare the unit, so that
 * every domain keeps a fast CPU while another way exists; high CPU numbers first, as CPU 0 has work of its own.
 */
static int pick_unit(const struct asym_machine *m, const int16_t *unit, const unsigned *size, const unsigned *llc_size,
                     const unsigned *llc_slow, const struct asym_mask *slow, unsigned left)
{
    int best = -1;
    double best_share = 0;
    for (int c = (int)m->n_cpus - 1; c >= 0; c--) {
        if (!asym_mask_has(&m->usable, c) || unit[c] != c || asym_mask_has(slow, c) || size[c] > left)
            continue;
        unsigned llc = (unsigned)m->cpus[c].llc;
        double share = (llc_slow[llc] + size[c]) / (double)llc_size[llc];
        if (best < 0 || share < best_share) {
            best = c;
            best_share = share;
        }
    }
    return best;
}

int asym_machine_choose_slow(const struct asym_machine *m, unsigned n, struct asym_mask *ret_slow)
{
    int16_t unit[ASYM_MAX_CPUS] = {0};
    unsigned size[ASYM_MAX_CPUS] = {0}, llc_size[ASYM_MAX_CPUS] = {0}, llc_slow[ASYM_MAX_CPUS] = {0};
    struct asym_mask slow = {0};
    if (n == 0 || n >= asym_mask_count(&m->usable))
        return -ERANGE;
    find_units(m, unit);
    ASYM_MASK_FOREACH (c, &m->usable) {
        size[unit[c]]++;
        llc_size[m->cpus[c].llc]++;
    }
    for (unsigned left = n; left > 0;) {
        int best = pick_unit(m, unit, size, llc_size, llc_slow, &slow, left);
        if (best < 0)
            return -ERANGE;
        ASYM_MASK_FOREACH (c, &m->usable) {
            if (unit[c] == best) {
                asym_mask_set(&slow, (unsigned)c);
                llc_slow[m->cpus[c].llc]++;
            }
        }
        left -= size[best];
    }
    *ret_slow = slow;
    return 0;
}
