/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/check/rivals.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "linux/sys/cgroup-mounts.h"

/* systemd sets AllowedCPUs= and uclamp of slices and services, which are at most this deep. */
#define MAX_DEPTH   4
#define MAX_CGROUPS 2000

/* The ways in which a rival is seen. */
enum sign { PROCESS, KERNEL_FILE, CGROUP_FILE };

static const struct {
    const char *name;
    enum sign sign;
    const char *seen;  /* the name of the process, cut by the kernel; or a file */
    const char *usual; /* of a file: what it has when the rival is not at work; an empty file counts so, too */
    const char *text, *remedy;
} rivals[] = {
    {"sched_ext", KERNEL_FILE, "sys/kernel/sched_ext/root/ops", "",
     "this sched_ext scheduler places all ordinary threads: it may ignore nice values, and CPUs that asymd keeps for "
     "one thread",
     "stop the scheduler, or steer with masks only: policy = rr or throughput"},
    {"intel_lpmd", PROCESS, "intel_lpmd", NULL,
     "confines threads to slow CPUs while the machine is idle, by cpusets: asymd then has no fast CPU to give",
     "systemctl disable --now intel_lpmd, while asymd runs"},
    {"gamemode", PROCESS, "gamemoded", NULL,
     "renices games and may pin them: asymd leaves threads alone whose affinity it has changed",
     "pin_cores=no in gamemode.ini, so that asymd places the game"},
    {"ananicy", PROCESS, "ananicy", NULL,
     "renices programs by its own rules: asymd takes nice 10 and more for background, and keeps nice values of others",
     "stop ananicy, or set classify.background_nice above its values"},
    {"ananicy-cpp", PROCESS, "ananicy-cpp", NULL,
     "renices programs by its own rules: asymd takes nice 10 and more for background, and keeps nice values of others",
     "stop ananicy-cpp, or set classify.background_nice above its values"},
    {"numad", PROCESS, "numad", NULL,
     "binds processes to NUMA nodes: asymd leaves those alone whose affinity it has changed, and plans within its "
     "cpusets",
     "stop numad on machines whose cores differ in speed"},
    {"system76-scheduler", PROCESS, "system76-schedu", NULL,
     "renices the program in the foreground and its own list: asymd keeps nice values that others have set",
     "stop system76-scheduler, or set boost of asym (sp_boost of pa) to 0"},
    {"tuned", PROCESS, "tuned", NULL,
     "may set affinities and priorities by its scheduler plugin: asymd leaves such threads alone",
     "a profile without [scheduler] (tuned-adm active shows the profile)"},
    {"uclamp", CGROUP_FILE, "cpu.uclamp.min", "0.00",
     "raises the frequency and the kind of core for its threads in the kernel: it counts only within the masks of "
     "asymd",
     ""},
    {"uclamp", CGROUP_FILE, "cpu.uclamp.max", "max",
     "makes the kernel prefer slow CPUs for its threads: on the fast CPUs that asymd gives, they run slowly",
     "action = ignore for these programs"},
    {"cpuset", CGROUP_FILE, "cpuset.cpus", "",
     "has CPUs of its own (AllowedCPUs= of systemd, or a container): asymd steers its threads only within them", ""},
};

enum { N = ASYM_LENGTH(rivals) };

/* A directory of control groups, as far as it was read. */
struct level {
    DIR *dir;
    char path[512];
};

struct asym_rivals {
    /* The place of the first sighting of each rival: a path in the tree of control groups, a PID, or the content of the file. */
    char where[N][128];
    unsigned n[N];
    bool has_begun;
    DIR *proc;
    struct level levels[MAX_DEPTH];
    unsigned depth, n_cgroups;
    size_t top; /* bytes of the mount, which the paths in the report leave out */
};

struct asym_rivals *asym_rivals_new(void)
{
    return calloc(1, sizeof(struct asym_rivals));
}

void asym_rivals_free(struct asym_rivals *r)
{
    if (r && r->proc)
        closedir(r->proc);
    while (r && r->depth > 0)
        closedir(r->levels[--r->depth].dir);
    free(r);
}

static void note(struct asym_rivals *r, size_t i, const char *where)
{
    if (r->n[i]++ == 0)
        snprintf(r->where[i], sizeof r->where[i], "%.127s", where);
}

/* Returns whether there was one. */
static bool look_at_a_process(struct asym_rivals *r, const struct asym_root *root)
{
    char path[64], comm[64];
    const struct dirent *e = r->proc ? readdir(r->proc) : NULL;
    while (e && strspn(e->d_name, "0123456789") != strlen(e->d_name))
        e = readdir(r->proc);
    if (!e) {
        if (r->proc)
            closedir(r->proc);
        r->proc = NULL;
        return false;
    }
    snprintf(path, sizeof path, "proc/%.20s/comm", e->d_name);
    if (asym_facts_line(root, path, comm, sizeof comm) < 0)
        return true;
    for (size_t i = 0; i < N; i++)
        if (rivals[i].sign == PROCESS && strcmp(rivals[i].seen, comm) == 0)
            note(r, i, e->d_name);
    return true;
}

static void enter(struct asym_rivals *r, const struct asym_root *root, const char *path)
{
    struct level *level = &r->levels[r->depth];
    if (r->depth == MAX_DEPTH || asym_root_opendir(root, path, &level->dir) < 0)
        return;
    snprintf(level->path, sizeof level->path, "%s", path);
    r->depth++;
}

/* Looks at a control group, or leaves a directory that has no more of them. Returns false after the last one. */
static bool look_at_a_cgroup(struct asym_rivals *r, const struct asym_root *root)
{
    char child[512], file[560], line[128];
    const struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;
    const struct dirent *e = NULL;
    if (!level)
        return false;
    while (r->n_cgroups < MAX_CGROUPS && (e = readdir(level->dir)))
        if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && e->d_name[0] != '.')
            break;
    if (!e || r->n_cgroups == MAX_CGROUPS) {
        closedir(r->levels[--r->depth].dir);
        return true;
    }
    if ((size_t)snprintf(child, sizeof child, "%s/%s", level->path, e->d_name) >= sizeof child)
        return true;
    r->n_cgroups++;
    for (size_t i = 0; i < N; i++) {
        snprintf(file, sizeof file, "%s/%s", child, rivals[i].seen);
        if (rivals[i].sign == CGROUP_FILE && asym_facts_line(root, file, line, sizeof line) >= 0 &&
            strcmp(line, rivals[i].usual) != 0)
            note(r, i, child + r->top);
    }
    enter(r, root, child);
    return true;
}

static void begin(struct asym_rivals *r, const struct asym_root *root)
{
    struct asym_cgroup_mounts mounts;
    const struct asym_cgroup_mount *m;
    char line[96];
    size_t k = 0;
    r->has_begun = true;
    for (size_t i = 0; i < N; i++)
        if (rivals[i].sign == KERNEL_FILE && asym_facts_line(root, rivals[i].seen, line, sizeof line) >= 0)
            note(r, i, line);
    asym_root_opendir(root, "proc", &r->proc);
    asym_cgroup_mounts_read(root, &mounts);
    if (!(m = asym_cgroup_mounts_next(&mounts, ASYM_CGROUP_UNIFIED, &k)))
        return;
    r->top = strlen(m->path);
    enter(r, root, m->path);
}

bool asym_rivals_look(struct asym_rivals *r, const struct asym_root *root, unsigned at_most)
{
    if (!r->has_begun)
        begin(r, root);
    for (unsigned i = 0; i < at_most; i++)
        if (!look_at_a_process(r, root) && !look_at_a_cgroup(r, root))
            return true;
    return false;
}

int asym_rivals_each(const struct asym_rivals *rs, bool with_pids,
                     int (*fn)(void *ctx, const char *name, const struct asym_fact *fact), void *ctx)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < N; i++) {
        const bool is_process = rivals[i].sign == PROCESS;
        struct asym_fact fact;
        char where[128] = "", more[24] = "";
        if (rs->n[i] == 0)
            continue;
        if (rs->n[i] > 1)
            snprintf(more, sizeof more, " and %u more", rs->n[i] - 1);
        if (!is_process || with_pids)
            snprintf(where, sizeof where, "%s%.60s%s: ", is_process ? "process " : "", rs->where[i], more);
        asym_facts_say(&fact, ASYM_FACT_NOTE, rivals[i].remedy, "%s%s", where, rivals[i].text);
        r = fn(ctx, rivals[i].name, &fact);
    }
    return r;
}
