/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which source of speeds to believe. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "linux/topology-internal.h"

/*
 * The sources, in the order in which they are believed. cpu_capacity first: it is the scheduler's own view, measured by
 * whoever wrote the device tree, or, on x86 since Linux 6.12, set by the driver; where it tells nothing it is 1024
 * everywhere. hwloc's CPU kinds say for certain which cores differ, but mostly only in what order: they make the core
 * types, and a source that contradicts them is dropped, while how many times faster a core is comes from the first source
 * with figures; their own come last. CPPC's highest_perf is a measure of work done, which a frequency is not across core
 * types, so it stands before frequencies. scaling_max_freq is no source: asymd itself may have set it.
 */
static const struct source {
    enum asym_origin origin;
    const char *path; /* under sys/devices/system/cpu/cpuN; NULL: the CPU kinds */
    const char *name, *unit;
    double spread; /* a ratio of largest to smallest up to this is none */
} sources[] = {
    {ASYM_ORIGIN_CAPACITY, "cpu_capacity", "cpu_capacity", "", 1 + ASYM_TYPE_TOLERANCE},
    {ASYM_ORIGIN_CPPC, "acpi_cppc/highest_perf", "acpi_cppc highest_perf", "", ASYM_TURBO_SPREAD},
    {ASYM_ORIGIN_CPUFREQ, "cpufreq/cpuinfo_max_freq", "cpuinfo_max_freq", "kHz", ASYM_TURBO_SPREAD},
    {ASYM_ORIGIN_BASE, "cpufreq/base_frequency", "base_frequency", "kHz", ASYM_TURBO_SPREAD},
    {ASYM_ORIGIN_CPUKINDS, NULL, NULL, NULL, ASYM_TURBO_SPREAD},
};

static ssize_t read_of_cpu(const struct asym_root *root, int cpu, const char *path, char *buf, size_t size)
{
    char full[96];
    snprintf(full, sizeof full, "sys/devices/system/cpu/cpu%d/%s", cpu, path);
    return asym_root_read(root, full, buf, size);
}

static void read_figures(const struct asym_root *root, const struct source *s, const struct asym_mask *cpus,
                         struct asym_figures *ret)
{
    *ret = (struct asym_figures){.name = s->name, .unit = s->unit, .tail = ""};
    ASYM_MASK_FOREACH (cpu, cpus) {
        char text[64];
        uint64_t value;
        ssize_t n = read_of_cpu(root, cpu, s->path, text, sizeof text);
        if (n > 0 && asym_parse_u64(text, (size_t)n, &value) == 0)
            ret->value[cpu] = (double)value;
    }
}

/* "5000000 kHz on 0-7, 3800000 on 8-15", as much of it as fits. */
static void describe_groups(const struct asym_figures *f, const struct asym_mask *cpus, char *text, size_t size)
{
    struct asym_mask left = *cpus;
    size_t at = 0;
    for (bool first = true; !asym_mask_empty(&left); first = false) {
        double top = 0;
        ASYM_MASK_FOREACH (cpu, &left)
            top = ASYM_MAX(top, f->value[cpu]);
        struct asym_mask group = {0};
        ASYM_MASK_FOREACH (cpu, &left)
            if (f->value[cpu] >= top)
                asym_mask_set(&group, (unsigned)cpu);
        left = asym_mask_minus(&left, &group);
        char list[64], item[128];
        asym_mask_format_list(&group, list, sizeof list);
        int n = snprintf(item, sizeof item, "%s%.10g%s%s on %s", first ? "" : ", ", top, first && f->unit[0] ? " " : "",
                         first ? f->unit : "", list);
        if (n < 0 || at + (size_t)n + sizeof ", ..." > size) {
            snprintf(text + at, size - at, ", ...");
            return;
        }
        memcpy(text + at, item, (size_t)n + 1);
        at += (size_t)n;
    }
}

struct range {
    double low, high;
    struct asym_mask there; /* CPUs it has a figure for */
};

static struct range range_of(const struct asym_figures *f, const struct asym_mask *cpus)
{
    struct range r = {.low = 0};
    ASYM_MASK_FOREACH (cpu, cpus) {
        double v = f->value[cpu];
        if (v <= 0)
            continue;
        r.low = asym_mask_empty(&r.there) || v < r.low ? v : r.low;
        r.high = ASYM_MAX(r.high, v);
        asym_mask_set(&r.there, (unsigned)cpu);
    }
    return r;
}

/* Threads of one core are equally fast: a source that has them apart is wrong somewhere. -1: none. */
static int odd_sibling(const struct asym_figures *f, const struct asym_machine *m)
{
    double of_core[ASYM_MAX_CPUS] = {0};
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        const int core = m->cpus[cpu].core;
        if (core < 0 || core >= ASYM_MAX_CPUS)
            continue;
        double *first = &of_core[core], v = f->value[cpu];
        if (*first > 0 && (v > *first * (1 + ASYM_TYPE_TOLERANCE) || v < *first * (1 - ASYM_TYPE_TOLERANCE)))
            return cpu;
        *first = v;
    }
    return -1;
}

/* Of the kinds that have a name, which is faster is known without any figure. 0: not one of them. */
static int rank_of(const struct asym_machine *m, int cpu)
{
    static const char *const slowest_first[] = {"LP E-core", "E-core", "P-core"};
    const int kind = m->cpus[cpu].kind;
    for (size_t i = 0; kind >= 0 && kind < ASYM_MAX_KINDS && i < ASYM_LENGTH(slowest_first); i++)
        if (strcmp(m->kind_names[kind], slowest_first[i]) == 0)
            return (int)i + 1;
    return 0;
}

bool asym_topology_contradicts(const struct asym_figures *f, const struct asym_machine *m, const struct asym_mask *cpus)
{
    double high[4] = {0};
    ASYM_MASK_FOREACH (cpu, cpus) {
        const int rank = rank_of(m, cpu);
        if (rank == 0)
            return false;
        high[rank] = ASYM_MAX(high[rank], f->value[cpu]);
    }
    for (int slow = 1; slow < 4; slow++)
        for (int fast = slow + 1; fast < 4; fast++)
            if (high[slow] > 0 && high[fast] > 0 && high[fast] < high[slow] * (1 - ASYM_TYPE_TOLERANCE))
                return true;
    return false;
}

bool asym_topology_rank(const struct asym_machine *m, const struct asym_mask *cpus, struct asym_figures *ret)
{
    struct asym_figures f = {.name = ret->name, .unit = "", .tail = " (only their order is known)"};
    int slowest = INT_MAX;
    ASYM_MASK_FOREACH (cpu, cpus)
        slowest = ASYM_MIN(slowest, rank_of(m, cpu));
    if (slowest == 0)
        return false;
    ASYM_MASK_FOREACH (cpu, cpus)
        f.value[cpu] = 1 + ASYM_RANK_STEP * (rank_of(m, cpu) - slowest);
    *ret = f;
    return true;
}

/*
 * amd-pstate with preferred cores gives each core of one type a highest_perf of its own, up to a quarter apart: a ranking
 * for the scheduler, not a speed. Where core types differ too, their maximum frequencies say so.
 */
static bool ranks_favoured(const struct asym_root *root, const struct asym_machine *m)
{
    struct asym_figures ranking;
    const struct source prefcore = {.path = "cpufreq/amd_pstate_prefcore_ranking"};
    read_figures(root, &prefcore, &m->usable, &ranking);
    const struct range r = range_of(&ranking, &m->usable);
    return r.high > r.low;
}

/* Does the source tell the CPUs apart, without contradiction? Says what it found, or why not. */
static bool judge(const struct asym_root *root, const struct source *s, const struct asym_figures *f,
                  const struct asym_machine *m, char *text, size_t size)
{
    const struct range r = range_of(f, &m->usable);
    const char *gap = f->unit[0] ? " " : "";
    char list[128];
    if (asym_mask_empty(&r.there)) {
        snprintf(text, size, "%s: none", f->name);
    } else if (!asym_mask_equal(&r.there, &m->usable)) {
        struct asym_mask missing = asym_mask_minus(&m->usable, &r.there);
        asym_mask_format_list(&missing, list, sizeof list);
        snprintf(text, size, "%s: missing on %.96s", f->name, list);
    } else if (r.high <= r.low) {
        snprintf(text, size, "%s: %.10g%s%s on all", f->name, r.high, gap, f->unit);
    } else if (r.high < r.low * s->spread) {
        snprintf(text, size, "%s: %.10g to %.10g%s%s: less than %.0f %% apart, taken for equal", f->name, r.low, r.high,
                 gap, f->unit, (s->spread - 1) * 100);
    } else if (s->path && odd_sibling(f, m) >= 0) {
        snprintf(text, size, "%s: the threads of a core differ (CPU %d)", f->name, odd_sibling(f, m));
    } else if (asym_topology_contradicts(f, m, &m->usable)) {
        snprintf(text, size, "%s: has slower cores of a faster kind", f->name);
    } else if (s->origin == ASYM_ORIGIN_CPPC && ranks_favoured(root, m)) {
        snprintf(text, size, "%s: ranks favoured cores only (amd_pstate_prefcore_ranking)", f->name);
    } else {
        describe_groups(f, &m->usable, list, sizeof list);
        snprintf(text, size, "%s: %.120s%s", f->name, list, f->tail);
        return true;
    }
    return false;
}

static void take(const struct asym_figures *f, enum asym_origin origin, struct asym_machine *m)
{
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        m->cpus[cpu].speed = f->value[cpu];
        m->cpus[cpu].origin = (uint8_t)origin;
    }
}

/* Without a source kinds have no order, and would only split what is alike into types of equal speed. */
static void take_none(struct asym_machine *m)
{
    memset(m->kind_names, 0, sizeof m->kind_names);
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        m->cpus[cpu].speed = 0;
        m->cpus[cpu].origin = ASYM_ORIGIN_NONE;
        m->cpus[cpu].kind = 0;
    }
}

/* The smallest number of "0 1 2 3", which cpufreq separates by blanks; -1 unless cpu is one of them. */
static int16_t domain_of(const char *text, int cpu)
{
    int16_t low = -1;
    bool own = false;
    for (const char *p = text + strspn(text, " \n"); *p;) {
        size_t len = strcspn(p, " \n");
        uint64_t n;
        if (asym_parse_u64(p, len, &n) < 0 || n >= ASYM_MAX_CPUS)
            return -1;
        own = own || n == (uint64_t)cpu;
        if (low < 0 || (int16_t)n < low)
            low = (int16_t)n;
        p += len;
        p += strspn(p, " \n");
    }
    return own ? low : -1;
}

static void read_domains(const struct asym_root *root, struct asym_machine *m)
{
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        char text[ASYM_MASK_LIST_MAX * 2];
        ssize_t n = root ? read_of_cpu(root, cpu, "cpufreq/related_cpus", text, sizeof text) : -1;
        m->cpus[cpu].freq_domain = n > 0 ? domain_of(text, cpu) : -1;
    }
}

void asym_topology_speeds(const struct asym_root *root, const struct asym_figures *kinds, struct asym_machine *m,
                          struct asym_topology_notes *notes)
{
    bool found = false;
    for (size_t i = 0; i < ASYM_LENGTH(sources); i++) {
        const struct source *s = &sources[i];
        struct asym_figures figures = *kinds;
        if (s->path && !root)
            continue;
        if (s->path)
            read_figures(root, s, &m->usable, &figures);
        struct asym_speed_note *note = &notes->note[notes->n++];
        note->origin = s->origin;
        note->there = range_of(&figures, &m->usable).high > 0;
        note->used = judge(root, s, &figures, m, note->text, sizeof note->text) && !found;
        if (note->used)
            take(&figures, s->origin, m);
        found = found || note->used;
    }
    if (!found)
        take_none(m);
    read_domains(root, m);
}
