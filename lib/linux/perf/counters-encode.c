/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists the PMUs, and encodes their events by libpfm4. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Include this before libpfm4's header, which then leaves out its own, older copy. */
#include <linux/perf_event.h>

#include <perfmon/pfmlib_perf_event.h>

#include "base/macro.h"
#include "base/parse.h"
#include "linux/perf/counters-internal.h"

#define DEVICES "sys/bus/event_source/devices"

/*
 * The events are tried in this order. The kernel's generic cache-misses event counts misses of L2 on Zen and of L1 on Arm,
 * so the native event of the PMU comes first there. libpfm finds a native event only if it detects that PMU. A native
 * event belongs to a single PMU, so hybrid machines do not use it.
 */
static const struct {
    enum asym_counter counter;
    bool native;
    const char *event;
} events[] = {
    {ASYM_COUNTER_INSTRUCTIONS, false, "perf::INSTRUCTIONS"},
    {ASYM_COUNTER_CYCLES, false, "perf::CYCLES"},
    {ASYM_COUNTER_LLC_MISSES, true, "amd64_fam19h_zen4::ANY_DATA_CACHE_FILLS_FROM_SYSTEM:DRAM_IO_NEAR:DRAM_IO_FAR"},
    {ASYM_COUNTER_LLC_MISSES, true, "amd64_fam19h_zen3::ANY_DATA_CACHE_FILLS_FROM_SYSTEM:MEM_IO_LCL:MEM_IO_RMT"},
    {ASYM_COUNTER_LLC_MISSES, true,
     "amd64_fam17h_zen2::DATA_CACHE_REFILLS_FROM_SYSTEM:LS_MABRESP_LCL_DRAM:LS_MABRESP_RMT_DRAM"},
    {ASYM_COUNTER_LLC_MISSES, true, "LL_CACHE_MISS_RD"},
    {ASYM_COUNTER_LLC_MISSES, false, "perf::CACHE-MISSES"},
    {ASYM_COUNTER_REF_CYCLES, false, "perf::REF-CYCLES"},
    {ASYM_COUNTER_TASK_CLOCK, false, "perf::TASK-CLOCK"},
    {ASYM_COUNTER_SWITCHES, false, "perf::CONTEXT-SWITCHES"},
    {ASYM_COUNTER_FAULTS, false, "perf::PAGE-FAULTS"},
};

static int encode(const char *event, struct perf_event_attr *ret)
{
    struct perf_event_attr attr = {.size = sizeof attr};
    pfm_perf_encode_arg_t arg = {.attr = &attr, .size = sizeof arg};
    /* Include kernel mode here. The caller excludes it later if the kernel does not permit it. */
    if (pfm_get_os_event_encoding(event, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &arg) != PFM_SUCCESS)
        return -ENOENT;
    *ret = (struct perf_event_attr){.size = sizeof *ret,
                                    .type = attr.type,
                                    .config = attr.config,
                                    .config1 = attr.config1,
                                    .config2 = attr.config2};
    return 0;
}

int asym_counters_encode(enum asym_counter counter, const struct asym_pmu *pmu, struct perf_event_attr *ret)
{
    struct perf_event_attr attr;
    /* Only the first call has an effect. libpfm is never terminated: other code in the process may use it. */
    if (pfm_initialize() != PFM_SUCCESS)
        return -EOPNOTSUPP;
    for (size_t i = 0; i < ASYM_LENGTH(events); i++) {
        if (events[i].counter != counter || (events[i].native && pmu->type) || encode(events[i].event, &attr) < 0)
            continue;
        if (attr.type == PERF_TYPE_HARDWARE)
            attr.config |= (uint64_t)pmu->type << PERF_PMU_TYPE_SHIFT;
        *ret = attr;
        return 0;
    }
    return -ENOENT;
}

static int read_type(const struct asym_root *root, const char *name, uint32_t *ret)
{
    char path[320], text[32];
    uint64_t type;
    snprintf(path, sizeof path, DEVICES "/%s/type", name);
    ssize_t n = asym_root_read(root, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    if (asym_parse_u64(text, (size_t)n, &type) < 0 || type == 0 || type > UINT32_MAX)
        return -ENODEV;
    *ret = (uint32_t)type;
    return 0;
}

/* The PMU may be there, but asymd lacks a resource. */
static bool is_want(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/*
 * A PMU of cores has a file with its CPUs. On machines with one kind of core, these three PMUs have no such file. Returns 0: it is
 * none; -errno.
 */
static int is_of_cores(const struct asym_root *root, const char *name)
{
    char path[320];
    static const char *const plain[] = {"cpu", "cpum_cf", "armv8_pmuv3"};
    for (size_t i = 0; i < ASYM_LENGTH(plain); i++)
        if (strcmp(name, plain[i]) == 0)
            return 1;
    snprintf(path, sizeof path, DEVICES "/%s/cpus", name);
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_PATH);
    return fd >= 0 ? 1 : is_want(fd) ? fd : 0;
}

/* Returns 1; 0: it is no PMU of cores; -errno. */
static int describe(const struct asym_root *root, const char *name, struct asym_pmu *ret)
{
    struct asym_pmu pmu = {.type = 0};
    if (name[0] == '.' || strlen(name) >= sizeof pmu.name)
        return 0;
    int r = is_of_cores(root, name);
    if (r <= 0)
        return r;
    memcpy(pmu.name, name, strlen(name));
    r = read_type(root, name, &pmu.type);
    if (r < 0)
        return is_want(r) ? r : 0;
    *ret = pmu;
    return 1;
}

static int compare_pmus(const void *a, const void *b)
{
    const struct asym_pmu *x = a, *y = b;
    return x->type != y->type ? (x->type < y->type ? -1 : 1) : strcmp(x->name, y->name);
}

int asym_counters_pmus(const struct asym_root *root, struct asym_pmu ret[ASYM_COUNTERS_PMUS])
{
    struct asym_pmu found[ASYM_COUNTERS_PMUS];
    unsigned n = 0;
    ASYM_AUTO_CLOSEDIR DIR *dir = NULL;
    const int opened = asym_root_opendir(root, DEVICES, &dir);
    if (opened < 0)
        return opened == -ENOENT ? -ENODEV : opened;
    for (const struct dirent *e; n < ASYM_COUNTERS_PMUS && (e = readdir(dir));) {
        const int r = describe(root, e->d_name, &found[n]);
        if (r < 0)
            return r;
        n += (unsigned)r;
    }
    if (n == 0)
        return -ENODEV;
    qsort(found, n, sizeof found[0], compare_pmus);
    /* A single PMU needs no type: generic events go to it, even on kernels that do not know types in config. */
    if (n == 1)
        found[0].type = 0;
    memcpy(ret, found, n * sizeof *ret);
    return (int)n;
}
