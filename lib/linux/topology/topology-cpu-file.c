/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the files of one CPU. */
#include <stdio.h>
#include <string.h>

#include "base/mask.h"
#include "base/parse.h"
#include "linux/topology/topology-internal.h"

ssize_t asym_topology_cpu_file(const struct asym_root *root, int cpu, const char *path, char *buf, size_t size)
{
    char full[96];
    snprintf(full, sizeof full, "sys/devices/system/cpu/cpu%d/%s", cpu, path);
    return asym_root_read(root, full, buf, size);
}

/* The list is like "0 1 2 3": cpufreq separates CPUs by blanks. */
bool asym_topology_related(const struct asym_root *root, int cpu, struct asym_mask *ret)
{
    char text[ASYM_MASK_LIST_MAX * 2];
    const ssize_t got = root ? asym_topology_cpu_file(root, cpu, "cpufreq/related_cpus", text, sizeof text) : -1;
    struct asym_mask cpus = {0};
    for (const char *p = got > 0 ? text + strspn(text, " \n") : ""; *p; p += strspn(p, " \n")) {
        const size_t len = strcspn(p, " \n");
        uint64_t n;
        if (asym_parse_u64(p, len, &n) < 0 || n >= ASYM_MAX_CPUS)
            return false;
        asym_mask_set(&cpus, (unsigned)n);
        p += len;
    }
    *ret = cpus;
    return asym_mask_has(&cpus, cpu);
}
