/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine as the core sees it: which CPUs count as fast, favoured CPUs, caps, and which CPUs share a cache. */
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

struct asym_mask asym_machine_ordinary(const struct asym_machine *m)
{
    const struct asym_mask ordinary = asym_mask_minus(&m->usable, &m->isolated);
    return asym_mask_empty(&ordinary) ? m->usable : ordinary;
}

bool asym_machine_speeds_differ(const struct asym_machine *m)
{
    const struct asym_mask ordinary = asym_machine_ordinary(m);
    double fastest = 0, slowest = 0;
    for (unsigned t = 0; t < m->n_types; t++) {
        if (!asym_mask_meets(&m->types[t].cpus, &ordinary))
            continue;
        slowest = m->types[t].speed;
        fastest = fastest > 0 ? fastest : slowest;
    }
    return slowest < fastest;
}

bool asym_machine_kernel_knows(const struct asym_machine *m)
{
    ASYM_MASK_FOREACH (c, &m->usable)
        if (m->cpus[c].origin != ASYM_ORIGIN_CAPACITY)
            return false;
    return asym_machine_speeds_differ(m);
}

struct asym_mask asym_machine_ordinary_fast(const struct asym_machine *m)
{
    const struct asym_mask ordinary = asym_machine_ordinary(m), fast = asym_mask_and(&ordinary, &m->fast);
    return asym_mask_empty(&fast) ? ordinary : fast;
}

bool asym_machine_favoured(const struct asym_machine *m, unsigned type, struct asym_mask *ret)
{
    *ret = (struct asym_mask){0};
    ASYM_MASK_FOREACH (c, &m->types[type].cpus)
        if (m->cpus[c].rank == 0)
            asym_mask_set(ret, (unsigned)c);
    return !asym_mask_equal(ret, &m->types[type].cpus);
}

const char *asym_origin_name(enum asym_origin origin)
{
    static const char *const names[ASYM_N_ORIGINS] = {
        [ASYM_ORIGIN_NONE] = "none",
        [ASYM_ORIGIN_CONFIG] = "configuration",
        [ASYM_ORIGIN_CAP] = "cap",
#define ASYM_SPEED_SOURCE(origin, name, ...) [ASYM_ORIGIN_##origin] = (name),
#include <asym/speed-sources.def>
#undef ASYM_SPEED_SOURCE
    };
    return (unsigned)origin < ASYM_N_ORIGINS ? names[origin] : "unknown";
}

/* Number the groups densely, in the order of their first CPUs. Unusable CPUs get -1. */
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

/* A CPU whose core or frequency domain is unknown shares it with no other CPU. */
static void separate_unknown(struct asym_machine *m)
{
    ASYM_MASK_FOREACH (c, &m->usable) {
        if (m->cpus[c].core < 0)
            m->cpus[c].core = (int16_t)(INT16_MAX - c);
        if (m->cpus[c].freq_domain < 0)
            m->cpus[c].freq_domain = (int16_t)(INT16_MAX - c);
    }
}

/* The first CPU of a core closes the ring: each CPU that is found later stands between the last one and the first. */
static void link_siblings(struct asym_machine *m)
{
    int16_t first[ASYM_MAX_CPUS], last[ASYM_MAX_CPUS];
    uint8_t n[ASYM_MAX_CPUS] = {0};
    ASYM_MASK_FOREACH (c, &m->usable) {
        const int16_t core = m->cpus[c].core, cpu = (int16_t)c;
        if (n[core] == 0)
            first[core] = last[core] = cpu;
        m->cpus[last[core]].sibling = cpu;
        m->cpus[c].sibling = first[core];
        m->cpus[c].smt_rank = n[core];
        last[core] = cpu;
        n[core] = (uint8_t)ASYM_MIN(n[core] + 1, UINT8_MAX);
    }
}

struct asym_mask asym_machine_cores(const struct asym_machine *m, const struct asym_mask *cpus)
{
    struct asym_mask cores = {0}, seen = {0};
    ASYM_MASK_FOREACH (c, cpus) {
        if (asym_mask_has(&seen, m->cpus[c].core))
            continue;
        asym_mask_set(&seen, (unsigned)m->cpus[c].core);
        asym_mask_set(&cores, (unsigned)c);
    }
    return cores;
}

static int check_figures(const struct asym_machine *m, double *ret_slowest)
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
    /* A CPU with a speed and one without cannot be compared. */
    if (unknown != 0 && unknown != n)
        return -EINVAL;
    if (!(m->fast_from >= 0 && m->fast_from <= 1) || !(m->smt_gain >= 0 && m->smt_gain <= 1))
        return -EINVAL;
    *ret_slowest = slowest;
    return 0;
}

static int by_favour(uint32_t a, uint32_t b, const void *ctx)
{
    const struct asym_cpu *cpus = ctx;
    if (cpus[a].type != cpus[b].type)
        return cpus[a].type - cpus[b].type;
    return cpus[a].favour > cpus[b].favour ? -1 : cpus[a].favour < cpus[b].favour;
}

/* Rank within each type, the most favoured first. Ranks above UINT8_MAX become UINT8_MAX. */
static void rank_favoured(struct asym_machine *m)
{
    uint32_t order[ASYM_MAX_CPUS], scratch[ASYM_MAX_CPUS];
    size_t n = 0;
    ASYM_MASK_FOREACH (c, &m->usable)
        order[n++] = (uint32_t)c;
    asym_sort_index(order, n, scratch, by_favour, m->cpus);
    for (size_t i = 0; i < n; i++) {
        struct asym_cpu *cpu = &m->cpus[order[i]];
        const struct asym_cpu *before = i > 0 ? &m->cpus[order[i - 1]] : cpu;
        const bool first = i == 0 || before->type != cpu->type;
        const unsigned rank = first ? 0u : before->rank + (cpu->favour < before->favour ? 1u : 0u);
        cpu->rank = (uint8_t)ASYM_MIN(rank, UINT8_MAX);
    }
}

/*
 * A share of the top speed decides, not the order: of three speeds two may be fast. A CPU that the configuration slows is
 * slow however small the difference: the user named it for that.
 */
static void divide(struct asym_machine *m)
{
    const double from = m->fast_from > 0 ? m->fast_from : ASYM_FAST_FROM;
    m->fast = m->types[0].cpus;
    for (unsigned t = 1; t < m->n_types; t++) {
        /* The slack accepts a speed of exactly that share: binary fractions may fall just below. */
        const bool fast = m->types[t].speed >= m->types[0].speed * (from - 1e-9);
        if (fast && !asym_mask_within(&m->types[t].cpus, &m->held))
            m->fast = asym_mask_or(&m->fast, &m->types[t].cpus);
    }
    m->slow = asym_mask_minus(&m->usable, &m->fast);
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

/* The types found so far: at most one per CPU. */
struct draft {
    unsigned n;
    double speed[ASYM_MAX_CPUS]; /* of the type's fastest CPU */
    int16_t kind[ASYM_MAX_CPUS];
    int16_t of[ASYM_MAX_CPUS]; /* type of each CPU */
};

/* CPUs come fastest first: the first CPU of a type is its fastest, and types come in their final order. */
static void find_types(const struct asym_machine *m, struct draft *d)
{
    uint32_t order[ASYM_MAX_CPUS], scratch[ASYM_MAX_CPUS];
    size_t n = 0;
    ASYM_MASK_FOREACH (c, &m->usable)
        order[n++] = (uint32_t)c;
    asym_sort_index(order, n, scratch, by_speed, m->cpus);
    d->n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct asym_cpu *cpu = &m->cpus[order[i]];
        unsigned t = d->n;
        while (t > 0 && d->kind[t - 1] != cpu->kind)
            t--;
        /* The slack accepts a speed exactly 5 % below: binary fractions may fall just below that. */
        if (t == 0 || cpu->speed < d->speed[t - 1] * (1 - ASYM_TYPE_TOLERANCE - 1e-9)) {
            t = ++d->n;
            d->speed[t - 1] = cpu->speed;
            d->kind[t - 1] = cpu->kind;
        }
        d->of[order[i]] = (int16_t)(t - 1);
    }
}

/* While there are too many types: merge the faster of the nearest two into the slower. */
static void merge_types(const struct asym_machine *m, struct draft *d)
{
    while (d->n > ASYM_MAX_TYPES) {
        unsigned best = 0;
        for (unsigned t = 1; t + 1 < d->n; t++)
            if (d->speed[t] / d->speed[t + 1] < d->speed[best] / d->speed[best + 1])
                best = t;
        ASYM_MASK_FOREACH (c, &m->usable) {
            if (d->of[c] > (int)best)
                d->of[c]--;
        }
        d->n--;
        for (unsigned t = best + 1; t < d->n; t++)
            d->speed[t] = d->speed[t + 1];
    }
}

static void make_types(struct asym_machine *m)
{
    struct draft d;
    find_types(m, &d);
    merge_types(m, &d);
    m->n_types = d.n;
    for (unsigned t = 0; t < d.n; t++) {
        m->types[t].cpus = (struct asym_mask){0};
        m->types[t].speed = 0;
    }
    ASYM_MASK_FOREACH (c, &m->usable) {
        struct asym_core_type *type = &m->types[d.of[c]];
        m->cpus[c].type = d.of[c];
        asym_mask_set(&type->cpus, (unsigned)c);
        if (m->cpus[c].speed > type->speed) {
            type->speed = m->cpus[c].speed;
            type->origin = (enum asym_origin)m->cpus[c].origin;
        }
    }
}

/* Name the type after its kind, with a number if the kind has several types; without a kind, by rank. */
static void name_type(const struct asym_machine *m, unsigned t, char *name, size_t size)
{
    const int kind = m->cpus[asym_mask_next(&m->types[t].cpus, 0)].kind;
    const char *called = kind >= 0 && kind < ASYM_MAX_KINDS ? m->kind_names[kind] : "";
    unsigned before = 0, all = 0;
    for (unsigned k = 0; *called && k < m->n_types; k++) {
        bool same = m->cpus[asym_mask_next(&m->types[k].cpus, 0)].kind == kind;
        all += same;
        before += same && k < t;
    }
    if (all > 1)
        snprintf(name, size, "%.15s %u", called, before + 1);
    else if (all == 1)
        snprintf(name, size, "%.15s", called);
    else if (m->n_types <= 2)
        snprintf(name, size, m->n_types == 1 ? "all" : t == 0 ? "fast" : "slow");
    else
        snprintf(name, size, "type %u", t);
}

static void name_types(struct asym_machine *m)
{
    for (unsigned t = 0; t < m->n_types; t++) {
        char name[sizeof m->types[t].name] = "";
        name_type(m, t, name, sizeof name);
        memcpy(m->types[t].name, name, sizeof name);
    }
    for (unsigned t = m->n_types; t < ASYM_MAX_TYPES; t++)
        m->types[t] = (struct asym_core_type){0};
}

static void add_row(struct asym_machine *m, unsigned type, bool is_beside)
{
    const double speed = m->types[type].speed * (is_beside ? m->smt_gain : 1);
    unsigned at = m->n_rows++;
    for (; at > 0 && m->rows[at - 1].speed < speed; at--)
        m->rows[at] = m->rows[at - 1];
    m->rows[at] = (struct asym_seat_row){.speed = speed, .type = (uint8_t)type, .is_beside = is_beside};
}

/* On a tie an idle core comes before a busy one, and the faster type first. */
static void order_seats(struct asym_machine *m)
{
    memset(m->rows, 0, sizeof m->rows);
    m->n_rows = 0;
    for (unsigned t = 0; t < m->n_types; t++) {
        m->types[t].siblings = 1;
        m->types[t].row[1] = 0;
        ASYM_MASK_FOREACH (c, &m->types[t].cpus)
            m->types[t].siblings = (uint8_t)ASYM_MAX(m->types[t].siblings, m->cpus[c].smt_rank + 1);
        add_row(m, t, false);
    }
    for (unsigned t = 0; t < m->n_types; t++)
        if (m->types[t].siblings > 1)
            add_row(m, t, true);
    for (unsigned i = 0; i < m->n_rows; i++)
        m->types[m->rows[i].type].row[m->rows[i].is_beside] = (uint8_t)i;
}

int asym_machine_finish(struct asym_machine *m)
{
    double slowest;
    int r = check_figures(m, &slowest);
    if (r < 0)
        return r;
    for (unsigned c = 0; c < m->n_cpus; c++) {
        struct asym_cpu *cpu = &m->cpus[c];
        bool usable = asym_mask_has(&m->usable, (int)c);
        cpu->speed = !usable ? 0 : slowest > 0 ? cpu->speed / slowest : 1;
        cpu->type = -1;
        cpu->smt_rank = 0;
        cpu->sibling = (int16_t)c;
        cpu->rank = 0;
    }
    m->isolated = asym_mask_and(&m->isolated, &m->usable);
    separate_unknown(m);
    m->n_cores = make_dense(m, offsetof(struct asym_cpu, core));
    m->n_llcs = make_dense(m, offsetof(struct asym_cpu, llc));
    m->n_nodes = make_dense(m, offsetof(struct asym_cpu, node));
    make_dense(m, offsetof(struct asym_cpu, freq_domain));
    link_siblings(m);
    make_types(m);
    name_types(m);
    order_seats(m);
    rank_favoured(m);
    divide(m);
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
    m->held = asym_mask_or(&m->held, slow);
    return asym_machine_finish(m);
}

int asym_machine_cap(struct asym_machine *m, const struct asym_caps *caps)
{
    const struct asym_mask cpus = asym_mask_and(&caps->cpus, &m->usable);
    ASYM_MASK_FOREACH (c, &cpus)
        if (!(caps->share[c] > 0 && caps->share[c] <= 1))
            return -EINVAL;
    ASYM_MASK_FOREACH (c, &cpus) {
        m->cpus[c].speed *= caps->share[c];
        m->cpus[c].origin = ASYM_ORIGIN_CAP;
    }
    m->held = asym_mask_or(&m->held, &cpus);
    return asym_machine_finish(m);
}
