/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of counters, reasons in words, and the arithmetic of groups. */
#include "linux/perf/counters.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "linux/perf/counters-internal.h"

const char *asym_counter_name(enum asym_counter counter)
{
    static const char *const names[ASYM_N_COUNTERS] = {
        [ASYM_COUNTER_INSTRUCTIONS] = "instructions", [ASYM_COUNTER_CYCLES] = "cycles",
        [ASYM_COUNTER_LLC_MISSES] = "llc_misses",     [ASYM_COUNTER_REF_CYCLES] = "ref_cycles",
        [ASYM_COUNTER_TASK_CLOCK] = "task_clock",     [ASYM_COUNTER_SWITCHES] = "context_switches",
        [ASYM_COUNTER_FAULTS] = "page_faults",
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

static uint64_t add(uint64_t a, uint64_t b)
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
        running = add(running, reads[i].running);
        for (unsigned k = 0; k < n; k++)
            raw[k] = add(raw[k], reads[i].value[k]);
    }
    /* The groups are read one after the other, so the sum of running times may slightly exceed the enabled time. */
    const uint64_t enabled = ASYM_MAX(longest, running);
    const uint64_t d_enabled = growth(enabled, s->enabled), d_running = growth(running, s->running);
    s->on_cpu = ASYM_MAX(s->on_cpu, enabled);
    s->share = d_enabled == 0 ? 1 : ASYM_MIN((double)d_running / (double)d_enabled, 1.0);
    if (d_enabled > 0 && d_running == 0)
        return;
    for (unsigned k = 0; k < n; k++) {
        s->value[k] = add(s->value[k], asym_group_scale(growth(raw[k], s->raw[k]), d_enabled, d_running));
        s->raw[k] = ASYM_MAX(s->raw[k], raw[k]);
    }
    s->enabled = ASYM_MAX(s->enabled, enabled);
    s->running = ASYM_MAX(s->running, running);
}
