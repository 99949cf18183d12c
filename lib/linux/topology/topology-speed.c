/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the source of speeds. */
#include "linux/topology/topology-internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/sort.h"
#include "base/text.h"

/* Where the figures are, and when they are no speeds: a row of <asym/speed-sources.def>. */
struct speed_source {
    enum asym_origin origin;
    const char *path, *name, *unit;
    double spread;
    const char *(*ranks)(const struct asym_root *root, const struct asym_figures *f, const struct asym_machine *m);
};

void asym_topology_figures(const struct asym_root *root, const char *path, const struct asym_mask *cpus,
                           double ret[ASYM_MAX_CPUS])
{
    memset(ret, 0, ASYM_MAX_CPUS * sizeof *ret);
    ASYM_MASK_FOREACH (cpu, cpus) {
        char full[96], text[64];
        uint64_t value;
        snprintf(full, sizeof full, "sys/devices/system/cpu/cpu%d/%s", cpu, path);
        const ssize_t n = asym_root_read(root, full, text, sizeof text);
        if (n > 0 && asym_parse_u64(text, (size_t)n, &value) == 0)
            ret[cpu] = (double)value;
    }
}

/* Writes "5000000 kHz on 0-7, 3800000 on 8-15", cut to the size. */
static void describe_groups(const struct asym_figures *f, const struct asym_mask *cpus, char *text, size_t size)
{
    struct asym_mask left = *cpus;
    struct asym_text groups = asym_text_in(text, size - strlen(", ..."));
    for (bool first = true; !asym_mask_empty(&left); first = false) {
        double top = 0;
        ASYM_MASK_FOREACH (cpu, &left)
            top = ASYM_MAX(top, f->value[cpu]);
        struct asym_mask group = {0};
        ASYM_MASK_FOREACH (cpu, &left)
            if (f->value[cpu] >= top)
                asym_mask_set(&group, (unsigned)cpu);
        left = asym_mask_minus(&left, &group);
        char list[64];
        asym_mask_format_list(&group, list, sizeof list);
        if (!asym_text_add(&groups, "%s%.10g%s%s on %s", first ? "" : ", ", top, first && f->unit[0] ? " " : "",
                           first ? f->unit : "", list)) {
            memcpy(text + groups.used, ", ...", sizeof ", ...");
            return;
        }
    }
}

struct range {
    double low, high;
    struct asym_mask there; /* CPUs with a figure */
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

/* Returns a CPU whose figure differs from a sibling's. Siblings are equally fast, so such a source is wrong. -1: none. */
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

enum { P_CORE_RANK = 3 };

/* Returns the rank of the CPU's kind by its name: 1 is the slowest. 0: the kind has none of these names. */
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
 * The work of a P core per cycle, relative to an E core. A frequency does not measure work across kinds: by frequency alone the
 * E cores of a Core Ultra 9 285K (4.6 GHz beside 5.5) would be fast. intel_pstate converts CPPC levels to kHz by 100000 for an
 * E core, and for a P core by 78741 (Alder and Raptor Lake), 80000 (Meteor Lake) or 86957 (Lunar Lake): 1.27, 1.25 and 1.15
 * times the work of an E core at the same clock. Not every capture shows the processor, so the middle value is used for all.
 */
#define P_CORE_WORK 1.25

static bool has_kinds(const struct asym_machine *m)
{
    const int first = asym_mask_next(&m->usable, 0);
    ASYM_MASK_FOREACH (cpu, &m->usable)
        if (m->cpus[cpu].kind != m->cpus[first].kind)
            return true;
    return false;
}

/* Returns the work of the CPU's kind per cycle, in any unit; 0: not known. Figures of Intel's and of Arm's kinds never meet. */
static double work_per_cycle(const struct asym_machine *m, int cpu)
{
    const int rank = rank_of(m, cpu), kind = m->cpus[cpu].kind;
    if (rank > 0)
        return rank == P_CORE_RANK ? P_CORE_WORK : 1;
    return kind >= 0 && kind < ASYM_MAX_KINDS ? asym_topology_work(m->kind_names[kind]) : 0;
}

/* Returns whether f is a clock, and the CPUs are of several designs, as the MIDRs of Arm say. */
static bool compares_designs(const struct asym_figures *f, const struct asym_machine *m)
{
    return f->unit[0] && has_kinds(m) && rank_of(m, asym_mask_next(&m->usable, 0)) == 0;
}

/* Returns whether the work per cycle of a kind is not known: then its clock is all there is to compare. */
static bool has_unknown_work(const struct asym_machine *m)
{
    ASYM_MASK_FOREACH (cpu, &m->usable)
        if (work_per_cycle(m, cpu) <= 0)
            return true;
    return false;
}

/* Multiplies frequencies by the work per cycle of the CPU's kind. Other figures measure work already. */
static struct asym_figures work_of(const struct asym_figures *f, const struct asym_machine *m)
{
    struct asym_figures work = *f;
    if (!f->unit[0] || !has_kinds(m) || has_unknown_work(m))
        return work;
    ASYM_MASK_FOREACH (cpu, &m->usable)
        work.value[cpu] *= work_per_cycle(m, cpu);
    return work;
}

/* The slack accepts a ratio of exactly ASYM_KIN_LEAST, which rounding may miss. */
#define LEAST (ASYM_KIN_LEAST - 1e-9)

static int by_value(uint32_t a, uint32_t b, const void *ctx)
{
    const double *value = ctx;
    return value[a] > value[b] ? -1 : value[a] < value[b];
}

/*
 * Returns how many CPUs of list, fastest first, come before a gap. A CPU below LEAST of the one before is behind a gap; CPUs of
 * named kinds have no gap.
 */
static size_t kin_of(const struct asym_machine *m, const double *value, const uint32_t *list, size_t n)
{
    size_t kin = 1;
    while (kin < n && (rank_of(m, (int)list[kin]) > 0 || value[list[kin]] >= value[list[kin - 1]] * LEAST))
        kin++;
    return kin;
}

/* CPUs without a gap that together span more than LEAST form a staircase: they are no one type, and each keeps its figure. */
static bool is_staircase(const struct asym_machine *m, const double *value, const uint32_t *list, size_t kin)
{
    return rank_of(m, (int)list[0]) == 0 && value[list[kin - 1]] < value[list[0]] * LEAST;
}

/*
 * Gives all of cpus that are of one core type one figure, the median, so that a few favoured CPUs do not make the others look
 * slow. Kinds come first (machine.h). Returns true when there is a staircase, whose CPUs keep their own figures.
 */
static bool level(const struct asym_machine *m, const struct asym_mask *cpus, struct asym_figures *f)
{
    uint32_t list[ASYM_MAX_CPUS], scratch[ASYM_MAX_CPUS];
    struct asym_mask left = *cpus;
    bool has_staircase = false;
    while (!asym_mask_empty(&left)) {
        const int16_t kind = m->cpus[asym_mask_next(&left, 0)].kind;
        size_t n = 0;
        ASYM_MASK_FOREACH (cpu, cpus)
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

/* Returns whether the figures of cpus of one kind go down in small steps, without a gap that would end the kind. */
static bool has_even_steps(const struct asym_figures *f, const struct asym_machine *m, const struct asym_mask *cpus)
{
    struct asym_figures steps = *f;
    return level(m, cpus, &steps);
}

/* CPPC's ratio of the highest to the nominal performance is below this; a wider span comes from speeds that are made to differ. */
#define BOOST_SPAN 2.0

/*
 * Steps of a boost that AMD's firmware gives to preferred cores are no speeds. The kernel multiplies the nominal frequency by
 * CPPC's ratio, so that 32 equal cores have 5.4 to 7.8 GHz in their files. The steps count over all online CPUs: those that a
 * cpuset leaves may have a gap between them. A design with a name has clocks of its own, as Arm's clusters have.
 */
static const char *boost_steps(const struct asym_root *root, const struct asym_figures *f, const struct asym_machine *m)
{
    const int kind = m->cpus[asym_mask_next(&m->usable, 0)].kind;
    struct asym_figures all = *f;
    if (!f->unit[0] || has_kinds(m) || (kind >= 0 && kind < ASYM_MAX_KINDS && *m->kind_names[kind]))
        return NULL;
    if (root)
        asym_topology_figures(root, "cpufreq/cpuinfo_max_freq", &m->online, all.value);
    const struct range r = range_of(&all, root ? &m->online : &m->usable);
    return r.high < r.low * BOOST_SPAN && has_even_steps(&all, m, &r.there) ? "its steps are even" : NULL;
}

/*
 * AMD's firmware with preferred cores gives each core of one type its own highest_perf, up to a third apart. This is a ranking
 * for the scheduler, not a speed. If core types differ, too, their maximum frequencies show it. amd-pstate has a file that
 * shows the ranking; with acpi-cpufreq only the even steps show it.
 */
static const char *cppc_ranking(const struct asym_root *root, const struct asym_figures *f,
                                const struct asym_machine *m)
{
    struct asym_figures ranking;
    asym_topology_figures(root, "cpufreq/amd_pstate_prefcore_ranking", &m->usable, ranking.value);
    const struct range r = range_of(&ranking, &m->usable);
    if (r.high > r.low)
        return "amd_pstate_prefcore_ranking";
    return has_even_steps(f, m, &m->usable) ? "its steps are even" : NULL;
}

/* In order of preference. */
static const struct speed_source sources[] = {
#define ASYM_SPEED_SOURCE(constant, name, ...) {ASYM_ORIGIN_##constant, __VA_ARGS__},
#include <asym/speed-sources.def>
#undef ASYM_SPEED_SOURCE
};

/* Returns whether all CPUs are equal once CPUs of one type count as equal. */
static bool is_level(const struct asym_machine *m, const struct asym_figures *work)
{
    struct asym_figures f = *work;
    level(m, &m->usable, &f);
    const struct range r = range_of(&f, &m->usable);
    return r.high <= r.low;
}

/* The CPUs that resemble cpu most come first. Unknown cores are each on their own. */
enum { SAME_CORE, SAME_LLC, SAME_KIND, N_LIKENESS };

static struct asym_mask find_like(const struct asym_machine *m, int cpu, int likeness)
{
    const struct asym_cpu *own = &m->cpus[cpu];
    struct asym_mask like = {0};
    ASYM_MASK_FOREACH (c, &m->usable) {
        const struct asym_cpu *other = &m->cpus[c];
        if (other->kind == own->kind && (likeness != SAME_CORE || (own->core >= 0 && other->core == own->core)) &&
            (likeness != SAME_LLC || other->llc == own->llc))
            asym_mask_set(&like, (unsigned)c);
    }
    return like;
}

/*
 * A missing figure is no difference, and one missing file is no reason to drop a source of many CPUs: the CPU gets the lowest
 * figure of those that it resembles, if these agree as CPUs of one type do. Else it stays without, and the source gives way.
 */
static void fill_missing(const struct asym_machine *m, struct asym_figures *f)
{
    const struct asym_figures known = *f;
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        for (int likeness = 0; likeness < N_LIKENESS && f->value[cpu] <= 0; likeness++) {
            const struct asym_mask like = find_like(m, cpu, likeness);
            const struct range r = range_of(&known, &like);
            if (r.low <= 0 || r.low < r.high * LEAST)
                continue;
            f->value[cpu] = r.low;
            asym_mask_set(&f->filled, (unsigned)cpu);
        }
    }
}

/* Writes "; missing on 4-7" if the figures of these CPUs are those of their like; else "". */
static const char *write_filled(const struct asym_figures *f, char *text, size_t size)
{
    char list[64];
    *text = '\0';
    if (!asym_mask_empty(&f->filled))
        snprintf(text, size, "; missing on %s", asym_mask_format_list(&f->filled, list, sizeof list));
    return text;
}

/* Describes figures that tell the CPUs apart, and by what asymd weighs or fills them. */
static void describe_used(const struct asym_figures *f, const struct asym_machine *m, char *text, size_t size)
{
    char list[128], filled[96];
    describe_groups(f, &m->usable, list, sizeof list);
    snprintf(text, size, "%s: %.120s%s%s%s", f->name, list, write_filled(f, filled, sizeof filled), f->tail,
             !compares_designs(f, m) ? ""
             : has_unknown_work(m)   ? " (by the clock alone: the work of some designs in a cycle is not known)"
                                     : " (times the work of each design in a cycle)");
}

/*
 * Returns whether the source distinguishes the CPUs without contradiction; text gets the figures, or the reason why not.
 * wanted: no source before did.
 */
static bool judge(const struct asym_root *root, const struct speed_source *s, const struct asym_figures *f,
                  const struct asym_machine *m, bool wanted, char *text, size_t size)
{
    const struct asym_figures work = work_of(f, m);
    /* Clocks of Intel's kinds count as they are: where they do not tell P from E cores, the kinds do. */
    const struct range raw = range_of(f, &m->usable), r = range_of(compares_designs(f, m) ? &work : f, &m->usable);
    const char *gap = f->unit[0] ? " " : "", *ranking = s->ranks ? s->ranks(root, f, m) : NULL;
    char list[128];
    if (asym_mask_empty(&r.there)) {
        snprintf(text, size, "%s: none", f->name);
    } else if (!asym_mask_equal(&r.there, &m->usable)) {
        struct asym_mask missing = asym_mask_minus(&m->usable, &r.there);
        asym_mask_format_list(&missing, list, sizeof list);
        snprintf(text, size, "%s: missing on %.96s", f->name, list);
    } else if (r.high <= r.low) {
        snprintf(text, size, "%s: %.10g%s%s on all%s", f->name, raw.high, gap, f->unit,
                 write_filled(f, list, sizeof list));
    } else if (r.high < r.low * s->spread) {
        snprintf(text, size, "%s: %.10g to %.10g%s%s, less than %.0f %% apart: asymd counts them as equal", f->name,
                 raw.low, raw.high, gap, f->unit, (s->spread - 1) * 100);
    } else if (s->path && odd_sibling(f, m) >= 0) {
        snprintf(text, size, "%s: the threads of a core differ (CPU %d)", f->name, odd_sibling(f, m));
    } else if (asym_topology_contradicts(f, m, &m->usable)) {
        snprintf(text, size, "%s: has slower cores of a faster kind", f->name);
    } else if (ranking) {
        snprintf(text, size, "%s: ranks favoured cores only (%s)", f->name, ranking);
    } else if (wanted && is_level(m, &work)) {
        snprintf(text, size, "%s: %.10g to %.10g%s%s within one kind: asymd counts them as equal", f->name, raw.low,
                 raw.high, gap, f->unit);
    } else {
        describe_used(f, m, text, size);
        return true;
    }
    return false;
}

static void take_figures(const struct asym_figures *f, enum asym_origin origin, struct asym_machine *m)
{
    struct asym_figures work = work_of(f, m);
    level(m, &m->usable, &work);
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        m->cpus[cpu].speed = work.value[cpu];
        m->cpus[cpu].origin = (uint8_t)origin;
    }
}

/* Without a source kinds have no order, and would only make several types of equal speed. */
static void take_none(struct asym_machine *m)
{
    memset(m->kind_names, 0, sizeof m->kind_names);
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        m->cpus[cpu].speed = 0;
        m->cpus[cpu].origin = ASYM_ORIGIN_NONE;
        m->cpus[cpu].kind = 0;
    }
}

/* Returns whether f distinguishes CPUs of one core type. Figures that only some CPUs have do not rank. */
static bool ranks_kin(const struct asym_figures *f, const struct asym_machine *m)
{
    const struct range r = range_of(f, &m->usable);
    if (!asym_mask_equal(&r.there, &m->usable))
        return false;
    ASYM_MASK_FOREACH (a, &m->usable) {
        /* equal speeds come from level() or are 0, so they are equal bit by bit */
        ASYM_MASK_FOREACH (b, &m->usable)
            if (m->cpus[a].kind == m->cpus[b].kind && !(m->cpus[a].speed < m->cpus[b].speed) &&
                !(m->cpus[a].speed > m->cpus[b].speed) && f->value[a] > f->value[b])
                return true;
    }
    return false;
}

/* Clocks within this share of each other rank as equal: the highest of a boost is cut to the limit of the processor. */
#define CLOCK_TIE 0.01

static void tie_clocks(const struct asym_mask *cpus, struct asym_figures *f)
{
    uint32_t list[ASYM_MAX_CPUS], scratch[ASYM_MAX_CPUS];
    size_t n = 0;
    ASYM_MASK_FOREACH (cpu, cpus)
        list[n++] = (uint32_t)cpu;
    asym_sort_index(list, n, scratch, by_value, f->value);
    for (size_t i = 1; i < n; i++)
        if (f->value[list[i]] > f->value[list[i - 1]] * (1 - CLOCK_TIE))
            f->value[list[i]] = f->value[list[i - 1]];
}

/* A CPU without a rank is the last of all. */
static void fill_ranks(const struct asym_machine *m, struct asym_figures *f)
{
    const double last = range_of(f, &m->usable).low;
    fill_missing(m, f);
    ASYM_MASK_FOREACH (cpu, &m->usable)
        if (f->value[cpu] <= 0)
            f->value[cpu] = last;
}

/*
 * Reads which CPUs of a core type the firmware favours: the order that the kernel's scheduler uses (ITMT takes highest_perf as
 * the priority of a core; amd-pstate has a ranking), else the highest frequency. A clock ranks CPUs of one design only, and
 * figures that contradict the kinds or the cores rank none.
 */
static void read_favour(const struct asym_root *root, struct asym_machine *m, struct asym_topology_notes *notes)
{
    static const struct {
        const char *path, *name;
        bool is_clock;
    } orders[] = {
        {"cpufreq/amd_pstate_prefcore_ranking", "amd_pstate_prefcore_ranking", false},
        {"acpi_cppc/highest_perf", "acpi_cppc highest_perf", false},
        {"cpufreq/cpuinfo_max_freq", "cpuinfo_max_freq", true},
    };
    for (size_t i = 0; i < ASYM_LENGTH(orders); i++) {
        struct asym_figures f = {.name = orders[i].name, .unit = "", .tail = ""};
        if (orders[i].is_clock && notes->unordered)
            continue;
        asym_topology_figures(root, orders[i].path, &m->usable, f.value);
        fill_ranks(m, &f);
        if (orders[i].is_clock)
            tie_clocks(&m->usable, &f);
        if (!ranks_kin(&f, m) || odd_sibling(&f, m) >= 0 || asym_topology_contradicts(&f, m, &m->usable))
            continue;
        ASYM_MASK_FOREACH (cpu, &m->usable)
            m->cpus[cpu].favour = (uint32_t)ASYM_MIN(f.value[cpu], (double)UINT32_MAX);
        notes->favour = orders[i].name;
        return;
    }
}

/* Reads the figures of one source. Returns false when it has no input: with XML there is no sysfs. */
static bool read_source(const struct speed_source *s, const struct asym_root *root, const struct asym_figures *kinds,
                        const struct asym_machine *m, struct asym_figures *ret)
{
    if (s->path && !root)
        return false;
    *ret = s->path ? (struct asym_figures){.name = s->name, .unit = s->unit, .tail = ""} : *kinds;
    if (s->path)
        asym_topology_figures(root, s->path, &m->usable, ret->value);
    fill_missing(m, ret);
    return true;
}

void asym_topology_speeds(const struct asym_root *root, const struct asym_figures *kinds, struct asym_machine *m,
                          struct asym_topology_notes *notes)
{
    bool found = false, there = false;
    for (size_t i = 0; i < ASYM_LENGTH(sources); i++) {
        struct asym_figures figures;
        if (!read_source(&sources[i], root, kinds, m, &figures))
            continue;
        struct asym_speed_note *note = &notes->note[notes->n++];
        note->origin = sources[i].origin;
        note->there = range_of(&figures, &m->usable).high > 0;
        note->used = judge(root, &sources[i], &figures, m, !found, note->text, sizeof note->text) && !found;
        if (note->used)
            take_figures(&figures, sources[i].origin, m);
        found = found || note->used;
        there = there || note->there;
    }
    notes->unordered = !found && has_kinds(m);
    notes->unknown = !there && !notes->unordered;
    if (!found)
        take_none(m);
    if (root)
        read_favour(root, m, notes);
    ASYM_MASK_FOREACH (cpu, &m->usable) {
        struct asym_mask policy;
        const bool known = asym_topology_related(root, cpu, &policy);
        m->cpus[cpu].freq_domain = (int16_t)(known ? asym_mask_next(&policy, 0) : -1);
    }
}
