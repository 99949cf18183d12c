/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/check/rivals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/check/machine-facts-internal.h"
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
     "stop system76-scheduler, or leave sp_boost of the policy at 0"},
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

/* The place of the first sighting of each rival: a path in the tree of control groups, a PID, or the content of the file. */
struct sightings {
    char where[N][128];
    unsigned n[N];
    unsigned n_cgroups;
};

static void note(struct sightings *s, size_t i, const char *where)
{
    if (s->n[i]++ == 0)
        snprintf(s->where[i], sizeof s->where[i], "%s", where);
}

static void close_dir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

static DIR *open_dir(const struct asym_root *root, const char *path)
{
    const int fd = asym_root_openat(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !d)
        close(fd);
    return d;
}

static void look_at_processes(const struct asym_root *root, struct sightings *s)
{
    ASYM_CLEANUP(close_dir_p) DIR *d = open_dir(root, "proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[64], comm[64];
        if (strspn(e->d_name, "0123456789") != strlen(e->d_name))
            continue;
        snprintf(path, sizeof path, "proc/%.20s/comm", e->d_name);
        if (asym_facts_line(root, path, comm, sizeof comm) < 0)
            continue;
        for (size_t i = 0; i < N; i++)
            if (rivals[i].sign == PROCESS && strcmp(rivals[i].seen, comm) == 0)
                note(s, i, e->d_name);
    }
}

/* top: the mount, which the paths in the report leave out. */
static void look_at_cgroups(const struct asym_root *root, const char *top, const char *path, unsigned depth,
                            struct sightings *s)
{
    ASYM_CLEANUP(close_dir_p) DIR *d = open_dir(root, path);
    for (struct dirent *e; d && s->n_cgroups < MAX_CGROUPS && (e = readdir(d));) {
        char child[512], file[560], line[128];
        if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || e->d_name[0] == '.' ||
            (size_t)snprintf(child, sizeof child, "%s/%s", path, e->d_name) >= sizeof child)
            continue;
        s->n_cgroups++;
        for (size_t i = 0; i < N; i++) {
            snprintf(file, sizeof file, "%s/%s", child, rivals[i].seen);
            if (rivals[i].sign == CGROUP_FILE && asym_facts_line(root, file, line, sizeof line) >= 0 &&
                strcmp(line, rivals[i].usual) != 0)
                note(s, i, child + strlen(top));
        }
        if (depth < MAX_DEPTH)
            look_at_cgroups(root, top, child, depth + 1, s);
    }
}

static void look(const struct asym_root *root, struct sightings *s)
{
    struct asym_cgroup_mounts mounts;
    const struct asym_cgroup_mount *m;
    char line[96];
    size_t k = 0;
    for (size_t i = 0; i < N; i++)
        if (rivals[i].sign == KERNEL_FILE && asym_facts_line(root, rivals[i].seen, line, sizeof line) >= 0)
            note(s, i, line);
    look_at_processes(root, s);
    asym_cgroup_mounts_read(root, &mounts);
    if ((m = asym_cgroup_mounts_next(&mounts, ASYM_CGROUP_UNIFIED, &k)))
        look_at_cgroups(root, m->path, m->path, 1, s);
}

int asym_rivals_each(const struct asym_root *root, int (*fn)(void *ctx, const char *name, const struct asym_fact *fact),
                     void *ctx)
{
    struct sightings s = {.n_cgroups = 0};
    int r = 0;
    look(root, &s);
    for (size_t i = 0; r == 0 && i < N; i++) {
        struct asym_fact fact;
        char more[24] = "";
        if (s.n[i] == 0)
            continue;
        if (s.n[i] > 1)
            snprintf(more, sizeof more, " and %u more", s.n[i] - 1);
        asym_facts_say(&fact, ASYM_FACT_NOTE, rivals[i].remedy, "%s%.60s%s: %s",
                       rivals[i].sign == PROCESS ? "process " : "", s.where[i], more, rivals[i].text);
        r = fn(ctx, rivals[i].name, &fact);
    }
    return r;
}
