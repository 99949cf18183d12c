/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/macro.h"
#include "linux/check/machine-facts-internal.h"
#include "linux/sys/cgroup-mounts.h"

/* The count stops at this depth and number: the user should not wait for a tree of ten thousand containers. */
#define MAX_DEPTH   12
#define MAX_CGROUPS 10000

struct tally {
    const char *file; /* cpu.weight or cpu.shares */
    long long usual;  /* the kernel's default */
    unsigned n, chosen;
};

static void close_dir_p(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* Counts the directories under path that have the file. path itself is the root cgroup, or its caller has counted it. */
static void count(const struct asym_root *root, const char *path, unsigned depth, struct tally *t)
{
    int fd = asym_root_openat(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0)
        return;
    ASYM_CLEANUP(close_dir_p) DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return;
    }
    for (struct dirent *e; t->n < MAX_CGROUPS && (e = readdir(d));) {
        char child[512], file[544];
        if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || e->d_name[0] == '.')
            continue;
        if ((size_t)snprintf(child, sizeof child, "%s/%s", path, e->d_name) >= sizeof child)
            continue;
        snprintf(file, sizeof file, "%s/%s", child, t->file);
        long long weight;
        if (!asym_facts_number(root, file, &weight))
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

int asym_facts_read_cgroups(const struct asym_root *root, struct asym_fact *ret)
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
        asym_facts_say(ret, ASYM_FACT_GOOD, "", "version %d, no cgroup with the cpu controller: nice acts across all",
                       version);
    else
        asym_facts_say(ret, ASYM_FACT_NOTE, "to favour a whole service, set its CPUWeight=",
                       "version %d, the cpu controller divides the CPUs between %u cgroups (%u without the "
                       "default %s): nice acts only inside one",
                       version, t.n, t.chosen, t.file);
    return 0;
}
