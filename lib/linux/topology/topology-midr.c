/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads which CPUs share a clock, and sets CPU kinds from the MIDR, which gives the design of an Arm core: implementer and part. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "linux/topology/topology-internal.h"

/* /proc/cpuinfo has about 700 bytes for a CPU. */
#define MAX_CPUINFO ((size_t)1 << 20)

/* MIDR_EL1 of the Arm Architecture Reference Manual: implementer 31:24, part 15:4. All revisions are one design. */
#define IMPLEMENTER(midr)      ((midr) >> 24 & 0xff)
#define PART(midr)             ((midr) >> 4 & 0xfff)
#define KEY(implementer, part) ((uint32_t)(implementer) << 12 | (uint32_t)(part))

/* Designs that the table lacks become kinds without a name. */
static const struct {
    uint32_t key;
    const char *name;
    double work;
} designs[] = {
#define ASYM_DESIGN(implementer, part, name, work) {KEY(implementer, part), name, work},
#include "linux/topology/topology-designs.def"
#undef ASYM_DESIGN
};

struct keys {
    bool there[ASYM_MAX_CPUS];
    uint32_t key[ASYM_MAX_CPUS];
};

static void read_registers(const struct asym_root *root, const struct asym_machine *m, struct keys *keys)
{
    ASYM_MASK_FOREACH (cpu, &m->online) {
        char path[96], text[32], *end;
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/regs/identification/midr_el1", cpu);
        if (asym_root_read(root, path, text, sizeof text) <= 0)
            continue;
        errno = 0;
        const unsigned long long midr = strtoull(text, &end, 16);
        if (errno != 0 || end == text || (*end != '\n' && *end != '\0'))
            continue;
        keys->there[cpu] = true;
        keys->key[cpu] = KEY(IMPLEMENTER(midr), PART(midr));
    }
}

/* "CPU part	: 0xd0b": parses the number after the colon in the first line of text. */
static bool field_of(const char *text, const char *name, int base, unsigned long *ret)
{
    const size_t n = strlen(name);
    if (strncmp(text, name, n) != 0)
        return false;
    const char *at = text + n + strspn(text + n, " \t");
    char *end;
    if (*at != ':')
        return false;
    at++;
    *ret = strtoul(at, &end, base);
    return end > at;
}

/* Kernels without the register files have the MIDR only in /proc/cpuinfo. */
static void parse_cpuinfo(const char *text, struct keys *keys)
{
    unsigned long cpu = ASYM_MAX_CPUS, implementer = 0, value;
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (field_of(line, "processor", 10, &value))
            cpu = value;
        else if (field_of(line, "CPU implementer", 16, &value))
            implementer = value;
        else if (field_of(line, "CPU part", 16, &value) && cpu < ASYM_MAX_CPUS) {
            keys->there[cpu] = true;
            keys->key[cpu] = KEY(implementer & 0xff, value & 0xfff);
        }
    }
}

/* On x86 the file is long, and some kernels wait for each CPU's frequency to write it, so this reads only its beginning. */
static bool has_midr(const struct asym_root *root)
{
    char text[4096];
    return asym_root_read(root, "proc/cpuinfo", text, sizeof text) > 0 && strstr(text, "CPU implementer");
}

static bool all_there(const struct keys *keys, const struct asym_mask *cpus)
{
    ASYM_MASK_FOREACH (cpu, cpus)
        if (!keys->there[cpu])
            return false;
    return true;
}

static const char *name_of(uint32_t key)
{
    for (size_t i = 0; i < ASYM_LENGTH(designs); i++)
        if (designs[i].key == key)
            return designs[i].name;
    return "";
}

double asym_topology_work(const char *design)
{
    for (size_t i = 0; i < ASYM_LENGTH(designs); i++)
        if (strcmp(designs[i].name, design) == 0)
            return designs[i].work;
    return 0;
}

/* Makers give one design several part numbers: the E cores of an M1 and of an M1 Pro, the Kryo of a fast and of a slow cluster. */
static bool is_same_design(uint32_t a, uint32_t b)
{
    const char *name = name_of(a);
    return a == b || (*name && strcmp(name, name_of(b)) == 0);
}

/* The list is like "0 1 2 3": cpufreq separates CPUs by blanks. */
bool asym_topology_related(const struct asym_root *root, int cpu, struct asym_mask *ret)
{
    char path[96], text[ASYM_MASK_LIST_MAX * 2];
    struct asym_mask cpus = {0};
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpufreq/related_cpus", cpu);
    const ssize_t got = root ? asym_root_read(root, path, text, sizeof text) : -1;
    for (const char *p = got > 0 ? text + strspn(text, " \n") : ""; *p; p += strspn(p, " \n")) {
        const size_t len = strcspn(p, " \n");
        uint64_t n;
        if (asym_parse_u64(p, len, &n) < 0 || n >= ASYM_MAX_CPUS)
            return false;
        asym_mask_set(&cpus, (unsigned)n);
        p += len;
    }
    *ret = cpus;
    return asym_mask_has(&cpus, cpu);
}

/* A CPU whose MIDR cannot be read is of the design of its cpufreq policy, or of all others if these are of one design. */
static void fill_missing(const struct asym_root *root, const struct asym_mask *cpus, struct keys *keys)
{
    struct asym_mask there = {0};
    ASYM_MASK_FOREACH (cpu, cpus)
        if (keys->there[cpu])
            asym_mask_set(&there, (unsigned)cpu);
    ASYM_MASK_FOREACH (cpu, cpus) {
        struct asym_mask like = there, policy;
        if (keys->there[cpu])
            continue;
        if (asym_topology_related(root, cpu, &policy) && asym_mask_meets(&policy, &there))
            like = asym_mask_and(&policy, &there);
        const int first = asym_mask_next(&like, 0);
        bool alike = first >= 0;
        ASYM_MASK_FOREACH (other, &like)
            alike = alike && is_same_design(keys->key[other], keys->key[first]);
        keys->there[cpu] = alike;
        keys->key[cpu] = alike ? keys->key[first] : 0;
    }
}

void asym_topology_midr(const struct asym_root *root, struct asym_machine *m)
{
    uint32_t found[ASYM_MAX_CPUS];
    struct keys keys = {.there = {false}};
    int16_t n = 0;
    read_registers(root, m, &keys);
    if (!all_there(&keys, &m->online)) {
        ASYM_AUTO_FREE char *text = has_midr(root) ? malloc(MAX_CPUINFO) : NULL;
        if (text && asym_root_read(root, "proc/cpuinfo", text, MAX_CPUINFO) > 0)
            parse_cpuinfo(text, &keys);
    }
    if (!all_there(&keys, &m->online))
        fill_missing(root, &m->online, &keys);
    if (!all_there(&keys, &m->online))
        return;
    ASYM_MASK_FOREACH (cpu, &m->online) {
        int16_t k = 0;
        while (k < n && !is_same_design(found[k], keys.key[cpu]))
            k++;
        if (k == n)
            found[n++] = keys.key[cpu];
        m->cpus[cpu].kind = k;
    }
    memset(m->kind_names, 0, sizeof m->kind_names);
    for (int16_t k = 0; k < n && k < ASYM_MAX_KINDS; k++)
        snprintf(m->kind_names[k], sizeof m->kind_names[k], "%s", name_of(found[k]));
}
