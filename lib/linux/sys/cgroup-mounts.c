/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/cgroup-mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"

static const struct {
    enum asym_cgroup_kind kind;
    const char *path;
} usual[] = {
    {ASYM_CGROUP_UNIFIED, "sys/fs/cgroup"},
    {ASYM_CGROUP_UNIFIED, "sys/fs/cgroup/unified"},
    {ASYM_CGROUP_CPUSET, "sys/fs/cgroup/cpuset"},
    {ASYM_CGROUP_CPU, "sys/fs/cgroup/cpu"},
};

/* Before 3.17 the kernel has no effective set; with the mount option noprefix the name has no prefix. */
static const struct {
    enum asym_cgroup_kind kind;
    const char *name;
} files[] = {
    {ASYM_CGROUP_UNIFIED, "cpuset.cpus.effective"},
    {ASYM_CGROUP_CPUSET, "cpuset.effective_cpus"},
    {ASYM_CGROUP_CPUSET, "effective_cpus"},
    {ASYM_CGROUP_CPUSET, "cpuset.cpus"},
    {ASYM_CGROUP_CPUSET, "cpus"},
};

static bool has_option(const char *options, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static unsigned kinds_of(const char *type, const char *options)
{
    if (strcmp(type, "cgroup2") == 0)
        return ASYM_CGROUP_UNIFIED;
    if (strcmp(type, "cpuset") == 0)
        return ASYM_CGROUP_CPUSET;
    if (strcmp(type, "cgroup") != 0)
        return 0;
    return (has_option(options, "cpuset") ? ASYM_CGROUP_CPUSET : 0) |
           (has_option(options, "cpu") ? ASYM_CGROUP_CPU : 0);
}

/* The kernel writes a space as \040, and a tab, a newline and a backslash in the same way. */
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        const bool octal = from[0] == '\\' && strspn(from + 1, "01234567") >= 3;
        *to = octal ? (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0') : *from;
        from += octal ? 4 : 1;
    }
    *to = '\0';
}

/* Options by commas. A captured machine may have numbers, which kernels before 5.8 write. The last mount covers the others. */
static void take_proc(struct asym_cgroup_mounts *mounts, const char *options)
{
    static const char key[] = "hidepid=";
    mounts->is_known = true;
    *mounts->hidepid = '\0';
    for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, key, strlen(key)) == 0)
            snprintf(mounts->hidepid, sizeof mounts->hidepid, "%.*s", (int)strcspn(at + strlen(key), ","),
                     at + strlen(key));
    if (strcmp(mounts->hidepid, "0") == 0 || strcmp(mounts->hidepid, "off") == 0)
        *mounts->hidepid = '\0';
}

static void add_mount(struct asym_cgroup_mounts *mounts, unsigned kinds, const char *path)
{
    struct asym_cgroup_mount *m = &mounts->mount[mounts->n];
    if (kinds == 0 || mounts->n == ASYM_LENGTH(mounts->mount) || strlen(path) >= sizeof m->path)
        return;
    m->kinds = kinds;
    snprintf(m->path, sizeof m->path, "%s", path);
    mounts->n++;
}

/* "SOURCE PATH TYPE OPTIONS 0 0". */
static void take_line(struct asym_cgroup_mounts *mounts, char *line)
{
    char *field[4] = {NULL};
    for (size_t i = 0; i < ASYM_LENGTH(field) && line; i++)
        field[i] = strsep(&line, " ");
    if (!field[3])
        return;
    unescape(field[1]);
    if (strcmp(field[1], "/proc") == 0 && strcmp(field[2], "proc") == 0)
        take_proc(mounts, field[3]);
    add_mount(mounts, kinds_of(field[2], field[3]), field[1] + strspn(field[1], "/"));
}

/* A line that is longer than the buffer is no cgroup's: overlays have such options. */
static void take_lines(struct asym_cgroup_mounts *mounts, int fd)
{
    char buf[4096];
    size_t have = 0;
    bool cut = false;
    for (ssize_t n; (n = read(fd, buf + have, sizeof buf - have)) > 0;) {
        char *line = buf, *end = buf + have + n;
        for (char *stop; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
            *stop = '\0';
            if (!cut)
                take_line(mounts, line);
            cut = false;
        }
        have = (size_t)(end - line);
        if (have == sizeof buf) {
            have = 0;
            cut = true;
        }
        memmove(buf, line, have);
    }
}

static void read_mounts(const struct asym_root *root, struct asym_cgroup_mounts *ret)
{
    unsigned found = 0;
    *ret = (struct asym_cgroup_mounts){.n = 0};
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, "proc/mounts", O_RDONLY | O_NONBLOCK);
    if (fd >= 0)
        take_lines(ret, fd);
    for (size_t i = 0; i < ret->n; i++)
        found |= ret->mount[i].kinds;
    for (size_t i = 0; i < ASYM_LENGTH(usual); i++)
        add_mount(ret, usual[i].kind & ~found, usual[i].path);
}

int asym_cgroup_mounts_keep(struct asym_root *root)
{
    struct asym_cgroup_mounts *mounts = malloc(sizeof *mounts);
    if (!mounts)
        return -ENOMEM;
    read_mounts(root, mounts);
    root->cgroups = mounts;
    return 0;
}

void asym_cgroup_mounts_read(const struct asym_root *root, struct asym_cgroup_mounts *ret)
{
    if (root->cgroups)
        *ret = *root->cgroups;
    else
        read_mounts(root, ret);
}

const struct asym_cgroup_mount *asym_cgroup_mounts_next(const struct asym_cgroup_mounts *mounts,
                                                        enum asym_cgroup_kind kind, size_t *i)
{
    while (*i < mounts->n && !(mounts->mount[*i].kinds & kind))
        ++*i;
    return *i < mounts->n ? &mounts->mount[*i] : NULL;
}

static int read_cpus(const struct asym_root *root, const struct asym_cgroup_mounts *mounts, enum asym_cgroup_kind kind,
                     const char *path, size_t len, struct asym_mask *ret)
{
    char file[8192];
    struct asym_mask cpus;
    const struct asym_cgroup_mount *m;
    for (size_t i = 0; (m = asym_cgroup_mounts_next(mounts, kind, &i)); i++)
        for (size_t k = 0; k < ASYM_LENGTH(files); k++) {
            if (files[k].kind != kind)
                continue;
            const int n = snprintf(file, sizeof file, "%s%.*s/%s", m->path, (int)len, path, files[k].name);
            if (n < 0 || (size_t)n >= sizeof file || asym_root_read_list(root, file, &cpus) < 0 ||
                asym_mask_empty(&cpus))
                continue;
            *ret = cpus;
            return 0;
        }
    return -ENOENT;
}

/* "/a/b" is in "/a"; the root has length 0. */
static size_t length_of_parent(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    while (len > 0 && path[len - 1] == '/')
        len--;
    return len;
}

int asym_cgroup_cpus(const struct asym_root *root, const struct asym_cgroup_mounts *mounts, enum asym_cgroup_kind kind,
                     const char *path, size_t len, struct asym_mask *ret)
{
    while (read_cpus(root, mounts, kind, path, len, ret) < 0) {
        if (len == 0)
            return -ENOENT;
        len = length_of_parent(path, len);
    }
    return 0;
}

static bool has_cpu(const struct asym_root *root, const struct asym_cgroup_mounts *mounts, const char *path, size_t len)
{
    char file[8192];
    const struct asym_cgroup_mount *m;
    for (size_t i = 0; (m = asym_cgroup_mounts_next(mounts, ASYM_CGROUP_UNIFIED, &i)); i++) {
        const int n = snprintf(file, sizeof file, "%s%.*s/cpu.weight", m->path, (int)len, path);
        ASYM_AUTO_CLOSE int fd = n < 0 || (size_t)n >= sizeof file ? -1 : asym_root_openat(root, file, O_PATH);
        if (fd >= 0)
            return true;
    }
    return false;
}

bool asym_cgroup_has_cpu(const struct asym_root *root, const struct asym_cgroup_mounts *mounts, const char *path,
                         size_t len, size_t *ret_len)
{
    while (!has_cpu(root, mounts, path, len)) {
        if (len == 0)
            return false;
        len = length_of_parent(path, len);
    }
    *ret_len = len;
    return true;
}
