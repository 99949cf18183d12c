/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of counters, reasons in words, the arithmetic of groups, and the PMUs with their events, encoded by libpfm4. */
#include "linux/perf/counters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Include this before libpfm4's header, which then leaves out its own, older copy. */
#include <linux/perf_event.h>

#include <perfmon/pfmlib_perf_event.h>

#include "base/macro.h"
#include "base/text.h"
#include "linux/perf/counters-internal.h"

const char *asym_counter_name(enum asym_counter counter)
{
    static const char *const names[ASYM_N_COUNTERS] = {
        [ASYM_COUNTER_INSTRUCTIONS] = "instructions", [ASYM_COUNTER_CYCLES] = "cycles",
        [ASYM_COUNTER_LLC_MISSES] = "llc_misses",     [ASYM_COUNTER_TASK_CLOCK] = "task_clock",
        [ASYM_COUNTER_SWITCHES] = "context_switches", [ASYM_COUNTER_FAULTS] = "page_faults",
    };
    return (unsigned)counter < ASYM_N_COUNTERS ? names[counter] : "unknown";
}

static const struct {
    int error;
    const char *text, *remedy;
} reasons[] = {
    {ENODEV, "this machine has no PMU", "in a virtual machine, let the host pass its PMU on (-cpu host,pmu=on)"},
    {ENOENT, "the PMU counts no instructions",
     "in a virtual machine, let the host pass its PMU on; elsewhere load the driver of this CPU's PMU"},
    {EOPNOTSUPP, "the PMU refuses to count", "in a virtual machine, let the host pass its PMU on"},
    {EINVAL, "this kernel does not know counters of one kind of core (before Linux 5.13; Arm: 6.6)",
     "use a newer kernel"},
    {EACCES, "the kernel does not permit it (perf_event_paranoid)",
     "run as root or with CAP_PERFMON, or sysctl kernel.perf_event_paranoid=2"},
    {EPERM, "the kernel does not permit it (a filter of system calls, or kernel lockdown)",
     "allow perf_event_open in the container or unit, and give it CAP_PERFMON"},
    {EMFILE, "this process has no file descriptors left", "raise its limit: LimitNOFILE=, ulimit -n"},
    {ENFILE, "the system has no file descriptors left", "sysctl fs.file-max"},
    {EDQUOT, "the budget of file descriptors for counters is spent", "watch fewer threads"},
    {EBUSY, "another program uses the PMU exclusively", "end other profilers"},
    {ENOSYS, "this kernel has no performance events", "use a kernel with CONFIG_PERF_EVENTS"},
    {EINTR, "a process in exec made the kernel wait for 50 ms; the next sample tries the threads after it",
     "find out why the exec of that process takes so long"},
    {ESRCH, "there is no such thread", ""},
};

void asym_counters_why(int error, const char **ret_text, const char **ret_remedy)
{
    *ret_text = "the kernel refuses";
    *ret_remedy = "see the kernel log";
    for (size_t i = 0; i < ASYM_LENGTH(reasons); i++) {
        if (reasons[i].error != -error)
            continue;
        *ret_text = reasons[i].text;
        *ret_remedy = reasons[i].remedy;
    }
}

int asym_group_parse(const void *bytes, size_t len, unsigned n, struct asym_group_read *ret)
{
    uint64_t words[3 + ASYM_COUNTERS_GROUP];
    if (n > ASYM_COUNTERS_GROUP || len != (3 + n) * sizeof *words)
        return -EIO;
    memcpy(words, bytes, len);
    if (words[0] != n)
        return -EIO;
    struct asym_group_read g = {.n = n, .enabled = words[1], .running = words[2]};
    memcpy(g.value, words + 3, n * sizeof *words);
    *ret = g;
    return 0;
}

__extension__ typedef unsigned __int128 wide;

uint64_t asym_group_scale(uint64_t value, uint64_t enabled, uint64_t running)
{
    if (running >= enabled)
        return value;
    wide scaled = (wide)value * enabled / running;
    return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

static uint64_t growth(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Each interval is scaled by itself. A total that is scaled by total times would decrease if the share of one interval
 * exceeds the earlier shares. An interval without a count is joined to the next one.
 */
void asym_group_advance(struct asym_group_sum *s, const struct asym_group_read *reads, unsigned n_reads, unsigned n)
{
    uint64_t longest = 0, running = 0, raw[ASYM_COUNTERS_GROUP] = {0};
    for (unsigned i = 0; i < n_reads; i++) {
        longest = ASYM_MAX(longest, reads[i].enabled);
        running = add_saturated(running, reads[i].running);
        for (unsigned k = 0; k < n; k++)
            raw[k] = add_saturated(raw[k], reads[i].value[k]);
    }
    /* The groups are read one after the other, so the sum of running times may slightly exceed the enabled time. */
    const uint64_t enabled = ASYM_MAX(longest, running);
    const uint64_t d_enabled = growth(enabled, s->enabled), d_running = growth(running, s->running);
    s->on_cpu = ASYM_MAX(s->on_cpu, enabled);
    s->share = d_enabled == 0 ? 1 : ASYM_MIN((double)d_running / (double)d_enabled, 1.0);
    if (d_enabled > 0 && d_running == 0)
        return;
    for (unsigned k = 0; k < n; k++) {
        s->value[k] = add_saturated(s->value[k], asym_group_scale(growth(raw[k], s->raw[k]), d_enabled, d_running));
        s->raw[k] = ASYM_MAX(s->raw[k], raw[k]);
    }
    s->enabled = ASYM_MAX(s->enabled, enabled);
    s->running = ASYM_MAX(s->running, running);
}

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
