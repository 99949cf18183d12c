/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "base/parse.h"
#include "linux/counters.h"
#include "linux/facts-internal.h"

/* Captures leave files out: of a captured machine only what is there tells anything. */

#define CPU "sys/devices/system/cpu/"

int asym_facts_line(const struct asym_root *root, const char *path, char *buf, size_t size)
{
    char raw[256];
    ssize_t n = asym_root_read(root, path, raw, sizeof raw);
    if (n < 0)
        return (int)n;
    size_t len = strcspn(raw, "\n");
    if (len == 0)
        return -ENODATA;
    asym_text_escape(raw, len, buf, size);
    return 0;
}

bool asym_facts_number(const struct asym_root *root, const char *path, long long *ret)
{
    char raw[64];
    int64_t value;
    ssize_t n = asym_root_read(root, path, raw, sizeof raw);
    if (n <= 0 || asym_parse_i64(raw, (size_t)n, &value) < 0)
        return false;
    *ret = value;
    return true;
}

void asym_facts_say(struct asym_fact *f, enum asym_fact_level level, const char *remedy, const char *format, ...)
{
    f->level = level;
    snprintf(f->remedy, sizeof f->remedy, "%s", remedy);
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

static bool exists(const struct asym_root *root, const char *path)
{
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_PATH);
    return fd >= 0;
}

static int read_kernel(const struct asym_root *root, struct asym_fact *ret)
{
    char release[80];
    unsigned major, minor;
    int r = asym_facts_line(root, "proc/sys/kernel/osrelease", release, sizeof release);
    if (r < 0)
        return -ENODATA;
    if (sscanf(release, "%u.%u", &major, &minor) == 2 && (major < 6 || (major == 6 && minor < 2)))
        asym_facts_say(ret, ASYM_FACT_NOTE, "Linux 6.2 or newer keeps them",
                       "Linux %s: any change of a cpuset resets the masks of the threads in it", release);
    else
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "Linux %s", release);
    return 0;
}

static int read_cpufreq(const struct asym_root *root, struct asym_fact *ret)
{
    char driver[48], governor[48], status[24], mode[40] = "";
    if (asym_facts_line(root, CPU "cpu0/cpufreq/scaling_driver", driver, sizeof driver) < 0) {
        if (!root->live)
            return -ENODATA;
        asym_facts_say(ret, ASYM_FACT_LACK, "usual in a virtual machine; elsewhere load the cpufreq driver of this CPU",
                       "no driver: frequencies can be neither read nor capped");
        return 0;
    }
    if (asym_facts_line(root, CPU "cpu0/cpufreq/scaling_governor", governor, sizeof governor) < 0)
        snprintf(governor, sizeof governor, "unknown");
    if (asym_facts_line(root, CPU "intel_pstate/status", status, sizeof status) == 0 ||
        asym_facts_line(root, CPU "amd_pstate/status", status, sizeof status) == 0)
        snprintf(mode, sizeof mode, " (%s)", status);
    asym_facts_say(ret, ASYM_FACT_GOOD, "", "driver %s%s, governor %s", driver, mode, governor);
    return 0;
}

static int read_boost(const struct asym_root *root, struct asym_fact *ret)
{
    long long value;
    bool on;
    if (asym_facts_number(root, CPU "intel_pstate/no_turbo", &value))
        on = value == 0;
    else if (asym_facts_number(root, CPU "cpufreq/boost", &value))
        on = value != 0;
    else
        return -ENODATA;
    if (on)
        asym_facts_say(ret, ASYM_FACT_NOTE, "switch it off where results are to be repeatable",
                       "on: the speed of a core depends on what the others do");
    else
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "off: speeds are steady");
    return 0;
}

static bool effective_caps(const struct asym_root *root, unsigned long long *ret)
{
    char text[4096];
    if (!root->live || asym_root_read(root, "proc/self/status", text, sizeof text) < 0)
        return false;
    const char *at = strstr(text, "\nCapEff:");
    return at && sscanf(at, "\nCapEff: %llx", ret) == 1;
}

static bool has_cap(unsigned long long caps, unsigned cap)
{
    return (caps >> cap & 1) != 0;
}

static int read_perf(const struct asym_root *root, struct asym_fact *ret)
{
    long long paranoid;
    unsigned long long caps = 0;
    if (!asym_facts_number(root, "proc/sys/kernel/perf_event_paranoid", &paranoid)) {
        if (!root->live)
            return -ENODATA;
        asym_facts_say(ret, ASYM_FACT_LACK, "a kernel with CONFIG_PERF_EVENTS", "no performance events in this kernel");
        return 0;
    }
    if (!effective_caps(root, &caps) && root->live)
        return -ENODATA;
    if (paranoid < 0 || has_cap(caps, CAP_PERFMON) || has_cap(caps, CAP_SYS_ADMIN))
        asym_facts_say(ret, ASYM_FACT_GOOD, "",
                       "performance events of any process may be counted (perf_event_paranoid %lld)", paranoid);
    else
        asym_facts_say(ret, ASYM_FACT_NOTE, "AmbientCapabilities=CAP_PERFMON, or run as root",
                       "perf_event_paranoid is %lld: counting other users' threads needs CAP_PERFMON", paranoid);
    return 0;
}

static int read_pmu(const struct asym_root *root, struct asym_fact *ret)
{
    struct asym_counters_sight sight;
    asym_counters_probe(root, &sight);
    if (sight.error < 0 && !root->live)
        return -ENODATA;
    enum asym_fact_level level = *sight.remedy ? ASYM_FACT_NOTE : ASYM_FACT_GOOD;
    asym_facts_say(ret, sight.error < 0 ? ASYM_FACT_LACK : level, sight.remedy, "%s", sight.text);
    return 0;
}

static int read_schedstat(const struct asym_root *root, struct asym_fact *ret)
{
    static const char *const paths[] = {"proc/self/schedstat", "proc/1/schedstat"};
    for (size_t i = 0; i < ASYM_LENGTH(paths); i++) {
        char text[128];
        unsigned long long on, delay, slices;
        if (asym_root_read(root, paths[i], text, sizeof text) <= 0 ||
            sscanf(text, "%llu %llu %llu", &on, &delay, &slices) != 3)
            continue;
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "time on and waiting for a CPU is there for each thread");
        return 0;
    }
    if (!root->live)
        return -ENODATA;
    asym_facts_say(ret, ASYM_FACT_LACK,
                   "a kernel with CONFIG_SCHED_INFO (by CONFIG_SCHEDSTATS or CONFIG_TASK_DELAY_ACCT)",
                   "not there: runnable counts cannot be averaged, only sampled");
    return 0;
}

static int read_bpf(const struct asym_root *root, struct asym_fact *ret)
{
    if (exists(root, "sys/kernel/btf/vmlinux"))
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "type information for BPF programs is there");
    else if (!root->live)
        return -ENODATA;
    else
        asym_facts_say(ret, ASYM_FACT_LACK, "a kernel with CONFIG_DEBUG_INFO_BTF; asymd reads /proc instead",
                       "no type information (sys/kernel/btf/vmlinux) for BPF programs");
    return 0;
}

static int read_autogroup(const struct asym_root *root, struct asym_fact *ret)
{
    long long on;
    if (!asym_facts_number(root, "proc/sys/kernel/sched_autogroup_enabled", &on)) {
        if (!root->live)
            return -ENODATA;
        on = 0;
    }
    if (on)
        asym_facts_say(ret, ASYM_FACT_NOTE, "sysctl kernel.sched_autogroup_enabled=0",
                       "on: nice acts only inside a session, not between two");
    else
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "off: nice acts across sessions");
    return 0;
}

/* The value of hidepid among the options of the mount on /proc; the last mount is the one that is seen. */
static bool find_hidepid(const char *mounts, char *ret, size_t size)
{
    bool hides = false;
    for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char target[64], type[16], options[256];
        if (sscanf(line, "%*s %63s %15s %255s", target, type, options) != 3 || strcmp(target, "/proc") != 0 ||
            strcmp(type, "proc") != 0)
            continue;
        const char *at = strstr(options, "hidepid=");
        hides = false;
        if (!at)
            continue;
        at += strlen("hidepid=");
        snprintf(ret, size, "%.*s", (int)strcspn(at, ","), at);
        hides = strcmp(ret, "0") != 0 && strcmp(ret, "off") != 0;
    }
    return hides;
}

static int read_hidepid(const struct asym_root *root, struct asym_fact *ret)
{
    ASYM_AUTO_FREE char *text = malloc(65536);
    char value[24], shown[48];
    unsigned long long caps = 0;
    if (!text || asym_root_read(root, "proc/mounts", text, 65536) < 0)
        return -ENODATA;
    if (!find_hidepid(text, value, sizeof value)) {
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "off: the processes of all users can be seen");
        return 0;
    }
    asym_text_escape(value, strlen(value), shown, sizeof shown);
    effective_caps(root, &caps);
    if (has_cap(caps, CAP_SYS_PTRACE))
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "hidepid=%s, which CAP_SYS_PTRACE sees through", shown);
    else
        asym_facts_say(ret, ASYM_FACT_LACK, "CAP_SYS_PTRACE, or the gid= of the mount",
                       "/proc is mounted with hidepid=%s: other users' processes are out of sight", shown);
    return 0;
}

static int read_pid_namespace(const struct asym_root *root, struct asym_fact *ret)
{
    /* PROC_PID_INIT_INO of the kernel. */
    static const ino_t initial = 0xEFFFFFFC;
    struct stat st;
    if (!root->live)
        return -ENODATA;
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, "proc/self/ns/pid", O_PATH);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -ENODATA;
    if (st.st_ino == initial)
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "the initial one: every process can be seen");
    else
        asym_facts_say(ret, ASYM_FACT_NOTE, "run asymd on the host",
                       "not the initial one: only the processes of this container are seen, births come by scanning");
    return 0;
}

static int read_descriptors(const struct asym_root *root, struct asym_fact *ret)
{
    /* One kept open for each thread that runs now and then. */
    static const rlim_t plenty = 16384;
    struct rlimit limit;
    if (!root->live || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -ENODATA;
    bool enough = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= plenty;
    asym_facts_say(ret, enough ? ASYM_FACT_GOOD : ASYM_FACT_NOTE, enough ? "" : "LimitNOFILE=524288",
                   "%llu may be open, and asymd may raise that to %llu%s", (unsigned long long)limit.rlim_cur,
                   (unsigned long long)limit.rlim_max, enough ? "" : ": beyond it threads are read more slowly");
    return 0;
}

static const struct {
    unsigned number;
    const char *name;
    enum asym_fact_level level; /* when it is missing */
} wanted_caps[] = {
    {CAP_SYS_NICE, "CAP_SYS_NICE", ASYM_FACT_LACK},     /* steer others' threads */
    {CAP_NET_ADMIN, "CAP_NET_ADMIN", ASYM_FACT_NOTE},   /* births as events */
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", ASYM_FACT_NOTE}, /* see through hidepid, read others' exe */
};

bool asym_facts_may_steer(const struct asym_root *root)
{
    unsigned long long caps;
    return !effective_caps(root, &caps) || has_cap(caps, CAP_SYS_NICE);
}

static int read_capabilities(const struct asym_root *root, struct asym_fact *ret)
{
    unsigned long long caps;
    char missing[80] = "";
    enum asym_fact_level level = ASYM_FACT_GOOD;
    if (!effective_caps(root, &caps))
        return -ENODATA;
    for (size_t i = 0; i < ASYM_LENGTH(wanted_caps); i++) {
        if (has_cap(caps, wanted_caps[i].number))
            continue;
        size_t at = strlen(missing);
        snprintf(missing + at, sizeof missing - at, "%s%s", at ? ", " : "", wanted_caps[i].name);
        level = ASYM_MAX(level, wanted_caps[i].level);
    }
    if (level == ASYM_FACT_GOOD)
        asym_facts_say(ret, level, "", "all that asymd uses");
    else
        asym_facts_say(ret, level, "run as root, or by the unit asymd.service, which has them", "missing: %s%s",
                       missing, level == ASYM_FACT_LACK ? "; only your own processes can be steered" : "");
    return 0;
}

static const struct {
    const char *name; /* as --check prints it */
    int (*read)(const struct asym_root *root, struct asym_fact *ret);
} rows[] = {
    {"kernel", read_kernel},
    {"cpufreq", read_cpufreq},
    {"boost", read_boost},
    {"schedstat", read_schedstat},
    {"perf events", read_perf},
    {"counters", read_pmu},
    {"bpf", read_bpf},
    {"autogroup", read_autogroup},
    {"cgroups", asym_facts_read_cgroups},
    {"hidepid", read_hidepid},
    {"pid namespace", read_pid_namespace},
    {"descriptors", read_descriptors},
    {"capabilities", read_capabilities},
};

int asym_facts_each(const struct asym_root *root, int (*fn)(void *ctx, const char *name, const struct asym_fact *fact),
                    void *ctx)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(rows); i++) {
        struct asym_fact fact = {0};
        if (rows[i].read(root, &fact) == 0)
            r = fn(ctx, rows[i].name, &fact);
    }
    return r;
}
