/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which source of speeds to believe. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "base/sort.h"
#include "linux/topology-internal.h"

/*
 * The sources, in the order in which they are believed. cpu_capacity first: it is the scheduler's own view, measured by
 * whoever wrote the device tree, or, on x86 since Linux 6.12, set by intel_pstate where SMT is off; where it tells nothing it
 * is 1024 everywhere. hwloc's CPU kinds say for certain which cores differ, but mostly only in what order: they make the core
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

/* The place of a named kind among the named kinds, which needs no figure: 1 is the slowest. 0: the kind has no such name. */
enum { P_CORE_RANK = 3 };

static int rank_of(const struct asym_machine *m, int cpu)
{
    static const char *const slowest_first[] = {"LP E-core", "E-core", "P-core"};
    const int kind = m->cpus[cpu].kind;
    for (size_t i = 0; kind >= 0 && kind < ASYM_MAX_KINDS && i < ASYM_LENGTH(slowest_first); i++)
        if (strcmp(m->kind_names[kind], slowest_first[i]) == 0)
            return (int)i + 1;
    return 0;
}

/*
 * A P core does so much work in a cycle; an E core does 1. A frequency is no measure of work across kinds, and by frequency alone
 * the E cores of a Core Ultra 9 285K (4.6 GHz beside 5.5) would be fast. intel_pstate turns CPPC levels into kHz
 * by 100000 for an E core, and for a P core by 78741 (Alder and Raptor Lake), 80000 (Meteor Lake) or 86957 (Lunar
 * Lake): 1.27, 1.25 and 1.15 times the work of an E core at the same clock. Which of these processors it is cannot be
 * told from every capture: the one in the middle stands for all.
 */
#define P_CORE_WORK 1.25

/* A frequency weighed with what the CPU's kind does in a cycle; other figures are of work done already. */
static struct asym_figures work_of(const struct asym_figures *f, const struct asym_machine *m)
{
    struct asym_figures work = *f;
    ASYM_MASK_FOREACH (cpu, &m->usable)
        if (f->unit[0] && rank_of(m, cpu) == P_CORE_RANK)
            work.value[cpu] *= P_CORE_WORK;
    return work;
}

/* The slack admits a share that is met exactly, which binary fractions may miss. */
#define LEAST (ASYM_KIN_LEAST - 1e-9)

static int by_value(uint32_t a, uint32_t b, const void *ctx)
{
    const double *value = ctx;
    return value[a] > value[b] ? -1 : value[a] < value[b];
}

/* Up to the first gap: how many CPUs of list, fastest first, each reach the share of the one before. A named kind has none. */
static size_t kin_of(const struct asym_machine *m, const double *value, const uint32_t *list, size_t n)
{
    size_t kin = 1;
    while (kin < n && (rank_of(m, (int)list[kin]) > 0 || value[list[kin]] >= value[list[kin - 1]] * LEAST))
        kin++;
    return kin;
}

/* CPUs up to a gap that span more than the share are no kin of each other but a staircase: each step is what it is. */
static bool is_staircase(const struct asym_machine *m, const double *value, const uint32_t *list, size_t kin)
{
    return rank_of(m, (int)list[0]) == 0 && value[list[kin - 1]] < value[list[0]] * LEAST;
}

/*
 * The kind decides first (machine.h): CPUs of one core type get one figure, the median, so that a few favoured ones do not
 * make the rest look slow. True when there is a staircase, whose CPUs keep their own figures.
 */
static bool level(const struct asym_machine *m, struct asym_figures *f)
{
    uint32_t list[ASYM_MAX_CPUS], scratch[ASYM_MAX_CPUS];
    struct asym_mask left = m->usable;
    bool has_staircase = false;
    while (!asym_mask_empty(&left)) {
        const int16_t kind = m->cpus[asym_mask_next(&left, 0)].kind;
        size_t n = 0;
        ASYM_MASK_FOREACH (cpu, &m->usable)
            if (m->cpus[cpu].kind == kind)
                list[n++] = (uint32_t)cpu;
        asym_sort_index(list, n, scratch, by_value, f->value);
        for (size_t first = 0, kin; first < n; first += kin) {
            kin = kin_of(m, f->value, list + first, n - first);
            const bool keep = is_staircase(m, f->value, list + first, kin);
            has_staircase = has_staircase || keep;
            const double median = f->value[list[first + kin / 2]];
            for (size_t i = first; i < first + kin; i++) {
                f->value[list[i]] = keep ? f->value[list[i]] : median;
                asym_mask_clear(&left, list[i]);
            }
        }
    }
    return has_staircase;
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
 * AMD's firmware with preferred cores gives each core of one type a highest_perf of its own, up to a third apart: a ranking for
 * the scheduler, not a speed. Where core types differ too, their maximum frequencies say so. amd-pstate has a file that says
 * that it is a ranking; with acpi-cpufreq only its steps do. Returns what says it; NULL: nothing.
 */
static const char *what_ranks(const struct asym_root *root, const struct asym_figures *f, const struct asym_machine *m)
{
    struct asym_figures ranking, steps = *f;
    const struct source prefcore = {.path = "cpufreq/amd_pstate_prefcore_ranking"};
    read_figures(root, &prefcore, &m->usable, &ranking);
    const struct range r = range_of(&ranking, &m->usable);
    if (r.high > r.low)
        return "amd_pstate_prefcore_ranking";
    return level(m, &steps) ? "its steps are even" : NULL;
}

/* Is nothing left of the differences once CPUs of one kind count as equal? */
static bool is_level(const struct asym_machine *m, const struct asym_figures *work)
{
    struct asym_figures f = *work;
    level(m, &f);
    const struct range r = range_of(&f, &m->usable);
    return r.high <= r.low;
}

/* Does the source tell the CPUs apart, without contradiction? Says what it found, or why not. wanted: none did before. */
static bool judge(const struct asym_root *root, const struct source *s, const struct asym_figures *f,
                  const struct asym_machine *m, bool wanted, char *text, size_t size)
{
    const struct range r = range_of(f, &m->usable);
    const struct asym_figures work = work_of(f, m);
    const char *gap = f->unit[0] ? " " : "", *ranking = s->origin == ASYM_ORIGIN_CPPC ? what_ranks(root, f, m) : NULL;
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
    } else if (ranking) {
        snprintf(text, size, "%s: ranks favoured cores only (%s)", f->name, ranking);
    } else if (wanted && is_level(m, &work)) {
        snprintf(text, size, "%s: %.10g to %.10g%s%s within one kind: taken for equal", f->name, r.low, r.high, gap,
                 f->unit);
    } else {
        describe_groups(f, &m->usable, list, sizeof list);
        snprintf(text, size, "%s: %.120s%s", f->name, list, f->tail);
        return true;
    }
    return false;
}

static bool has_kinds(const struct asym_machine *m)
{
    const int first = asym_mask_next(&m->usable, 0);
    ASYM_MASK_FOREACH (cpu, &m->usable)
        if (m->cpus[cpu].kind != m->cpus[first].kind)
            return true;
    return false;
}

static void take(const struct asym_figures *f, enum asym_origin origin, struct asym_machine *m)
{
    struct asym_figures work = work_of(f, m);
    level(m, &work);
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        m->cpus[cpu].speed = work.value[cpu];
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

/* Does it tell apart CPUs that are of one core type? A figure that only some CPUs have ranks nothing. */
static bool ranks_kin(const struct asym_figures *f, const struct asym_machine *m)
{
    const struct range r = range_of(f, &m->usable);
    if (!asym_mask_equal(&r.there, &m->usable))
        return false;
    ASYM_MASK_FOREACH (a, &m->usable) {
        /* equal speeds come from level() or are zero: there is nothing in between */
        ASYM_MASK_FOREACH (b, &m->usable)
            if (m->cpus[a].kind == m->cpus[b].kind && !(m->cpus[a].speed < m->cpus[b].speed) &&
                !(m->cpus[a].speed > m->cpus[b].speed) && f->value[a] > f->value[b])
                return true;
    }
    return false;
}

/*
 * Which CPUs of a core type the firmware favours: the kernel's own order, which its scheduler goes by (ITMT takes
 * highest_perf for the priority of a core; amd-pstate has a ranking), and else the highest frequency.
 */
static void read_favour(const struct asym_root *root, struct asym_machine *m, struct asym_topology_notes *notes)
{
    static const struct source orders[] = {
        {.path = "cpufreq/amd_pstate_prefcore_ranking", .name = "amd_pstate_prefcore_ranking"},
        {.path = "acpi_cppc/highest_perf", .name = "acpi_cppc highest_perf"},
        {.path = "cpufreq/cpuinfo_max_freq", .name = "cpuinfo_max_freq"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(orders); i++) {
        struct asym_figures f;
        read_figures(root, &orders[i], &m->usable, &f);
        if (!ranks_kin(&f, m) || odd_sibling(&f, m) >= 0)
            continue;
        ASYM_MASK_FOREACH (cpu, &m->usable)
            m->cpus[cpu].favour = (uint32_t)ASYM_MIN(f.value[cpu], (double)UINT32_MAX);
        notes->favour = orders[i].name;
        return;
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
        note->used = judge(root, s, &figures, m, !found, note->text, sizeof note->text) && !found;
        if (note->used)
            take(&figures, s->origin, m);
        found = found || note->used;
    }
    notes->unordered = !found && has_kinds(m);
    if (!found)
        take_none(m);
    if (root)
        read_favour(root, m, notes);
    read_domains(root, m);
}
