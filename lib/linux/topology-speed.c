/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which source of speeds to believe. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "linux/topology-internal.h"

/*
 * The sources, in the order of policies.md. x86 has cpu_capacity since Linux 6.12, and where it does not tell cores
 * apart it is 1024 everywhere. scaling_max_freq is no source: asymd itself may have set it.
 */
static const struct source {
    enum asym_origin origin;
    const char *path; /* under sys/devices/system/cpu/cpuN; NULL: the CPU kinds */
    const char *name, *unit;
    double spread; /* a ratio of largest to smallest up to this is none */
} sources[] = {
    {ASYM_ORIGIN_CAPACITY, "cpu_capacity", "cpu_capacity", "", 1 + ASYM_TYPE_TOLERANCE},
    {ASYM_ORIGIN_CPUFREQ, "cpufreq/cpuinfo_max_freq", "cpuinfo_max_freq", "kHz", ASYM_TURBO_SPREAD},
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

/* Does the source tell the CPUs apart? Says what it found, or why not. */
static bool judge(const struct asym_figures *f, double spread, const struct asym_mask *cpus, char *text, size_t size)
{
    struct asym_mask there = {0};
    double low = 0, high = 0;
    ASYM_MASK_FOREACH (cpu, cpus) {
        double v = f->value[cpu];
        if (v <= 0)
            continue;
        low = asym_mask_empty(&there) || v < low ? v : low;
        high = ASYM_MAX(high, v);
        asym_mask_set(&there, (unsigned)cpu);
    }
    if (asym_mask_empty(&there)) {
        snprintf(text, size, "%s: none", f->name);
        return false;
    }
    if (!asym_mask_equal(&there, cpus)) {
        struct asym_mask missing = asym_mask_minus(cpus, &there);
        char list[96];
        snprintf(text, size, "%s: not used, as it is missing on %s", f->name,
                 asym_mask_format_list(&missing, list, sizeof list));
        return false;
    }
    const char *gap = f->unit[0] ? " " : "";
    if (high <= low) {
        snprintf(text, size, "%s: %.10g%s%s on all", f->name, high, gap, f->unit);
        return false;
    }
    if (high < low * spread) {
        snprintf(text, size, "%s: %.10g to %.10g%s%s: less than %.0f %% apart, taken for equal", f->name, low, high,
                 gap, f->unit, (spread - 1) * 100);
        return false;
    }
    char groups[128];
    describe_groups(f, cpus, groups, sizeof groups);
    snprintf(text, size, "%s: %.120s%s", f->name, groups, f->tail);
    return true;
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
        note->used = judge(&figures, s->spread, &m->usable, note->text, sizeof note->text) && !found;
        if (note->used)
            take(&figures, s->origin, m);
        found = found || note->used;
    }
    if (!found)
        take_none(m);
    read_domains(root, m);
}
