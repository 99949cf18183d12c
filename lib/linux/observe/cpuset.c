/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/procfs-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/mask.h"

/* A cpuset is read again after this time. */
#define CPUSET_AGE ASYM_SEC

void asym_cgroups_init(struct asym_cgroups *c, const struct asym_root *root, const struct asym_mask *fallback)
{
    *c = (struct asym_cgroups){.root = root};
    asym_cgroup_mounts_read(root, &c->mounts);
    if (asym_root_read_list(root, "sys/devices/system/cpu/possible", &c->possible) < 0 || asym_mask_empty(&c->possible))
        c->possible = *fallback;
    if (asym_root_read_list(root, "sys/devices/system/cpu/isolated", &c->isolated) < 0)
        c->isolated = (struct asym_mask){0};
}

void asym_cgroups_clear(struct asym_cgroups *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        free(c->groups[i].path);
    c->n = 0;
}

void asym_cgroups_expire(struct asym_cgroups *c, asym_usec now)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->groups[i].read_at < now)
            c->groups[i].cpus = NULL;
}

void asym_cgroups_done(struct asym_cgroups *c)
{
    asym_cgroups_clear(c);
    free(c->groups);
    c->groups = NULL;
    c->capacity = 0;
}

static uint64_t hash_of(const char *s, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
    return h;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/*
 * systemd puts all programs of a login into session-N.scope, those of its user services into cgroups below user@N.service. elogind
 * calls the cgroup of a login /N or /cN.
 */
static bool is_unit(const char *path)
{
    const char *last = strrchr(path, '/') + 1;
    if (*last == '\0' || strcmp(last, "..") == 0 || ends_with(last, ".slice"))
        return false;
    if (strncmp(last, "session-", 8) == 0 && ends_with(last, ".scope"))
        return false;
    if (strncmp(last, "user@", 5) == 0 && ends_with(last, ".service"))
        return false;
    const char *number = last + (*last == 'c');
    return last != path + 1 || *number == '\0' || number[strspn(number, "0123456789")] != '\0';
}

uint32_t asym_cgroups_find(struct asym_cgroups *c, enum asym_hierarchy hierarchy, const char *path, size_t len)
{
    if (len == 0) {
        path = "/";
        len = 1;
    }
    uint64_t hash = hash_of(path, len);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct asym_cgroup *g = &c->groups[i];
        if (g->hash == hash && g->hierarchy == hierarchy && strncmp(g->path, path, len) == 0 && g->path[len] == '\0')
            return i + 1;
    }
    if (asym_grow(&c->groups, c->n, &c->capacity, sizeof *c->groups) < 0)
        return 0;
    char *copy = strndup(path, len);
    if (!copy)
        return 0;
    c->groups[c->n++] = (struct asym_cgroup){
        .path = copy, .hash = hash, .hierarchy = hierarchy, .is_unit = is_unit(copy)};
    return c->n;
}

/* In a cgroup namespace, the path of a cgroup outside begins with "/..". asymd cannot read such a cgroup. */
static bool leads_out(const char *path)
{
    return strncmp(path, "/..", 3) == 0 && (path[3] == '/' || path[3] == '\0');
}

static uint32_t find_nice_group(struct asym_cgroups *c, uint32_t id)
{
    const struct asym_cgroup *g = &c->groups[id - 1];
    size_t len;
    if (g->hierarchy != ASYM_HIERARCHY_UNIFIED || leads_out(g->path) ||
        !asym_cgroup_has_cpu(c->root, &c->mounts, g->path, strlen(g->path), &len))
        return 0;
    return asym_cgroups_find(c, ASYM_HIERARCHY_UNIFIED, g->path, len);
}

const struct asym_mask *asym_cgroups_cpus(struct asym_cgroups *c, uint32_t id, asym_usec now,
                                          struct asym_mask_table *pool)
{
    if (id == 0)
        return asym_mask_table_get(pool, &c->possible);
    struct asym_cgroup *g = &c->groups[id - 1];
    if (g->cpus && now - g->read_at < CPUSET_AGE)
        return g->cpus;
    const enum asym_cgroup_kind kind = g->hierarchy == ASYM_HIERARCHY_CPUSET ? ASYM_CGROUP_CPUSET : ASYM_CGROUP_UNIFIED;
    struct asym_mask cpus, m;
    if (g->hierarchy == ASYM_HIERARCHY_NAMED ||
        asym_cgroup_cpus(c->root, &c->mounts, kind, g->path, leads_out(g->path) ? 0 : strlen(g->path), &m) < 0)
        m = c->possible;
    cpus = asym_mask_and(&m, &c->possible);
    if (asym_mask_empty(&cpus))
        cpus = c->possible;
    g->cpus = asym_mask_table_get(pool, &cpus);
    g->read_at = now;
    const uint32_t nice_group = find_nice_group(c, id);
    g = &c->groups[id - 1]; /* the table may have grown */
    g->nice_group = nice_group;
    return g->cpus;
}

const struct asym_mask *asym_cgroups_for(const struct asym_cgroups *c, const struct asym_mask *cpus,
                                         const struct asym_mask *mask, struct asym_mask_table *pool)
{
    if (!asym_mask_meets(cpus, &c->isolated))
        return cpus;
    struct asym_mask left_out = asym_mask_minus(&c->isolated, mask);
    struct asym_mask rest = asym_mask_minus(cpus, &left_out);
    return asym_mask_empty(&rest) ? cpus : asym_mask_table_get(pool, &rest);
}
