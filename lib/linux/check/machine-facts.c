/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/check/machine-facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "base/text.h"
#include "linux/perf/counters.h"
#include "linux/sys/cgroup-mounts.h"

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

/* Reads a file that holds one number and nothing else. Returns false for any other. */
static bool read_number(const struct asym_root *root, const char *path, long long *ret)
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

/* The count stops at this depth and number: the user should not wait for a tree of ten thousand containers. */
#define MAX_DEPTH   12
#define MAX_CGROUPS 10000

struct tally {
    const char *file; /* cpu.weight or cpu.shares */
    long long usual;  /* the kernel's default */
    unsigned n, chosen;
};

/* Counts the directories under path that have the file. path itself is the root cgroup, or its caller has counted it. */
static void count(const struct asym_root *root, const char *path, unsigned depth, struct tally *t)
{
    ASYM_AUTO_CLOSEDIR DIR *d = NULL;
    if (asym_root_opendir(root, path, &d) < 0)
        return;
    for (struct dirent *e; t->n < MAX_CGROUPS && (e = readdir(d));) {
        char child[512], file[544];
        if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || e->d_name[0] == '.')
            continue;
        if ((size_t)snprintf(child, sizeof child, "%s/%s", path, e->d_name) >= sizeof child)
            continue;
        snprintf(file, sizeof file, "%s/%s", child, t->file);
        long long weight;
        if (!read_number(root, file, &weight))
            continue; /* the controller is not enabled here, nor below */
        t->n++;
        t->chosen += weight != t->usual;
        if (depth < MAX_DEPTH)
            count(root, child, depth + 1, t);
    }
}

/* Returns the path of the first mount of that kind that has the file; NULL: none. */
static const char *mount_with(const struct asym_root *root, const struct asym_cgroup_mounts *mounts,
                              enum asym_cgroup_kind kind, const char *file)
{
    char line[256], path[320];
    const struct asym_cgroup_mount *m;
    for (size_t i = 0; (m = asym_cgroup_mounts_next(mounts, kind, &i)); i++) {
        snprintf(path, sizeof path, "%s/%s", m->path, file);
        if (asym_facts_line(root, path, line, sizeof line) >= 0)
            return m->path;
    }
    return NULL;
}

static int read_cgroups(const struct asym_root *root, struct asym_fact *ret)
{
    struct tally t = {.file = "cpu.weight", .usual = 100};
    struct asym_cgroup_mounts mounts;
    int version = 2;
    asym_cgroup_mounts_read(root, &mounts);
    const char *path = mount_with(root, &mounts, ASYM_CGROUP_UNIFIED, "cgroup.controllers");
    if (!path) {
        t = (struct tally){.file = "cpu.shares", .usual = 1024};
        version = 1;
        path = mount_with(root, &mounts, ASYM_CGROUP_CPU, t.file);
    }
    if (!path)
        return -ENODATA;
    count(root, path, 0, &t);
    if (t.n == 0)
        asym_facts_say(ret, ASYM_FACT_GOOD, "",
                       "version %d, none has the cpu controller: a cgroup is no limit for nice", version);
    else
        asym_facts_say(ret, ASYM_FACT_NOTE, "to favour a whole service, set its CPUWeight=",
                       "version %d, the cpu controller divides the CPUs between %u cgroups (%u without the "
                       "default %s): nice acts only inside one",
                       version, t.n, t.chosen, t.file);
    return 0;
}

#define CPU "sys/devices/system/cpu/"

/* Captures lack files, so a missing file of a captured machine is no fact. */
static int say_lack(const struct asym_root *root, struct asym_fact *ret, const char *remedy, const char *text)
{
    if (!root->live)
        return -ENODATA;
    asym_facts_say(ret, ASYM_FACT_LACK, remedy, "%s", text);
    return 0;
}

/* A feature that the user had better switch off. */
static int say_switch(struct asym_fact *ret, bool on, const char *remedy, const char *text_on, const char *text_off)
{
    asym_facts_say(ret, on ? ASYM_FACT_NOTE : ASYM_FACT_GOOD, on ? remedy : "", "%s", on ? text_on : text_off);
    return 0;
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
    if (asym_facts_line(root, CPU "cpu0/cpufreq/scaling_driver", driver, sizeof driver) < 0)
        return say_lack(root, ret, "usual in a virtual machine; elsewhere load the cpufreq driver of this CPU",
                        "no driver: asymd can neither read nor cap frequencies");
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
    if (read_number(root, CPU "intel_pstate/no_turbo", &value))
        on = value == 0;
    else if (read_number(root, CPU "cpufreq/boost", &value))
        on = value != 0;
    else
        return -ENODATA;
    return say_switch(ret, on, "switch it off if results must be repeatable",
                      "on: the speed of a core depends on what the others do", "off: speeds are steady");
}

/* initial: the inode that the kernel gives to the initial namespace of that kind. Returns 1, 0; -ENODATA. */
static int is_initial(const struct asym_root *root, const char *path, ino_t initial)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = root->live ? asym_root_openat(root, path, O_PATH) : -1;
    return fd < 0 || fstat(fd, &st) < 0 ? -ENODATA : st.st_ino == initial;
}

/* PROC_USER_INIT_INO of the kernel. */
static bool is_in_user_namespace(const struct asym_root *root)
{
    return is_initial(root, "proc/self/ns/user", 0xEFFFFFFD) == 0;
}

/* Those of a user namespace count only inside it. */
static bool effective_caps(const struct asym_root *root, unsigned long long *ret)
{
    char text[4096];
    if (!root->live || asym_root_read(root, "proc/self/status", text, sizeof text) < 0)
        return false;
    const char *at = strstr(text, "\nCapEff:");
    const bool known = at && sscanf(at, "\nCapEff: %llx", ret) == 1;
    if (known && is_in_user_namespace(root))
        *ret = 0;
    return known;
}

static bool has_cap(unsigned long long caps, unsigned cap)
{
    return (caps >> cap & 1) != 0;
}

static int read_perf(const struct asym_root *root, struct asym_fact *ret)
{
    long long paranoid;
    unsigned long long caps = 0;
    if (!read_number(root, "proc/sys/kernel/perf_event_paranoid", &paranoid))
        return say_lack(root, ret, "a kernel with CONFIG_PERF_EVENTS", "no performance events in this kernel");
    if (!effective_caps(root, &caps) && root->live)
        return -ENODATA;
    if (paranoid < 0 || has_cap(caps, CAP_PERFMON) || has_cap(caps, CAP_SYS_ADMIN))
        asym_facts_say(ret, ASYM_FACT_GOOD, "",
                       "asymd may count performance events of any process (perf_event_paranoid %lld)", paranoid);
    else
        asym_facts_say(ret, ASYM_FACT_NOTE, "AmbientCapabilities=CAP_PERFMON, or run as root outside of containers",
                       "perf_event_paranoid is %lld: counting other users' threads needs CAP_PERFMON", paranoid);
    return 0;
}

static int read_pmu(const struct asym_root *root, struct asym_fact *ret)
{
    struct asym_counters_coverage coverage;
    asym_counters_probe(root, NULL, &coverage);
    if (coverage.error < 0 && !root->live)
        return -ENODATA;
    enum asym_fact_level level = *coverage.remedy ? ASYM_FACT_NOTE : ASYM_FACT_GOOD;
    asym_facts_say(ret, coverage.error < 0 ? ASYM_FACT_LACK : level, coverage.remedy, "%s", coverage.text);
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
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "the kernel counts the time on and waiting for a CPU of each thread");
        return 0;
    }
    return say_lack(root, ret, "a kernel with CONFIG_SCHED_INFO (by CONFIG_SCHEDSTATS or CONFIG_TASK_DELAY_ACCT)",
                    "missing: asymd can only sample runnable counts, not average them");
}

static int read_bpf(const struct asym_root *root, struct asym_fact *ret)
{
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, "sys/kernel/btf/vmlinux", O_PATH);
    if (fd < 0)
        return say_lack(root, ret, "a kernel with CONFIG_DEBUG_INFO_BTF; asymd reads /proc instead",
                        "no type information (sys/kernel/btf/vmlinux) for BPF programs");
    asym_facts_say(ret, ASYM_FACT_GOOD, "", "the kernel has type information for BPF programs");
    return 0;
}

static int read_autogroup(const struct asym_root *root, struct asym_fact *ret)
{
    long long on;
    if (!read_number(root, "proc/sys/kernel/sched_autogroup_enabled", &on)) {
        if (!root->live)
            return -ENODATA;
        on = 0;
    }
    return say_switch(ret, on != 0, "sysctl kernel.sched_autogroup_enabled=0",
                      "on: outside of cgroups with the cpu controller nice acts only inside a session",
                      "off: a session is no limit for nice");
}

static int read_hidepid(const struct asym_root *root, struct asym_fact *ret)
{
    struct asym_cgroup_mounts mounts;
    char shown[48];
    unsigned long long caps = 0;
    asym_cgroup_mounts_read(root, &mounts);
    if (!mounts.is_known)
        return -ENODATA;
    if (!*mounts.hidepid) {
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "off: asymd sees the processes of all users");
        return 0;
    }
    asym_text_escape(mounts.hidepid, strlen(mounts.hidepid), shown, sizeof shown);
    effective_caps(root, &caps);
    if (has_cap(caps, CAP_SYS_PTRACE))
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "hidepid=%s, which does not apply with CAP_SYS_PTRACE", shown);
    else
        asym_facts_say(ret, ASYM_FACT_LACK, "CAP_SYS_PTRACE, or the gid= of the mount",
                       "/proc is mounted with hidepid=%s: asymd cannot see other users' processes", shown);
    return 0;
}

static int read_pid_namespace(const struct asym_root *root, struct asym_fact *ret)
{
    const int initial = is_initial(root, "proc/self/ns/pid", 0xEFFFFFFC); /* PROC_PID_INIT_INO of the kernel */
    if (initial < 0)
        return initial;
    if (initial)
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "the initial one: asymd sees every process");
    else
        asym_facts_say(
            ret, ASYM_FACT_NOTE, "run asymd on the host",
            "not the initial one: asymd sees only the processes of this container, and finds new ones by scanning");
    return 0;
}

static int read_descriptors(const struct asym_root *root, struct asym_fact *ret)
{
    /* asymd keeps one open for each thread that runs now and then. */
    static const rlim_t plenty = 16384;
    struct rlimit limit;
    if (!root->live || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -ENODATA;
    bool enough = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= plenty;
    asym_facts_say(ret, enough ? ASYM_FACT_GOOD : ASYM_FACT_NOTE, enough ? "" : "LimitNOFILE=524288",
                   "asymd may have %llu open at a time, and may raise this limit to %llu%s",
                   (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max,
                   enough ? "" : ": with more threads it reads them more slowly");
    return 0;
}

static const struct {
    unsigned number;
    const char *name;
    enum asym_fact_level level; /* when it is missing */
} wanted_caps[] = {
    {CAP_SYS_NICE, "CAP_SYS_NICE", ASYM_FACT_LACK},     /* steer other users' threads */
    {CAP_NET_ADMIN, "CAP_NET_ADMIN", ASYM_FACT_NOTE},   /* process events */
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", ASYM_FACT_NOTE}, /* see processes despite hidepid, read others' exe */
};

bool asym_facts_may_steer(const struct asym_root *root)
{
    unsigned long long caps;
    return !effective_caps(root, &caps) || has_cap(caps, CAP_SYS_NICE);
}

static int read_capabilities(const struct asym_root *root, struct asym_fact *ret)
{
    unsigned long long caps;
    char missing[80];
    struct asym_text names = asym_text_in(missing, sizeof missing);
    enum asym_fact_level level = ASYM_FACT_GOOD;
    if (!effective_caps(root, &caps))
        return -ENODATA;
    for (size_t i = 0; i < ASYM_LENGTH(wanted_caps); i++) {
        if (has_cap(caps, wanted_caps[i].number))
            continue;
        asym_text_add(&names, "%s%s", names.used ? ", " : "", wanted_caps[i].name);
        level = ASYM_MAX(level, wanted_caps[i].level);
    }
    if (is_in_user_namespace(root))
        asym_facts_say(ret, level, "run asymd on the host",
                       "those of a user namespace count only inside it: only your own processes can be steered");
    else if (level == ASYM_FACT_GOOD)
        asym_facts_say(ret, level, "", "asymd has all that it uses");
    else
        asym_facts_say(ret, level, "run as root outside of containers, or by the unit asymd.service", "missing: %s%s",
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
    {"cgroups", read_cgroups},
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
