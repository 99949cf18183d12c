/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the CPUs, and the cores, caches and nodes that they share, from hwloc. */
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "linux/topology/topology-internal.h"

static void destroy_p(hwloc_topology_t *t)
{
    if (*t)
        hwloc_topology_destroy(*t);
}

static void free_bitmap_p(hwloc_bitmap_t *b)
{
    hwloc_bitmap_free(*b);
}

static int configure(hwloc_topology_t t)
{
    static const hwloc_obj_type_t wanted[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
    if (hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE) < 0)
        return -errno;
    for (size_t i = 0; i < ASYM_LENGTH(wanted); i++)
        if (hwloc_topology_set_type_filter(t, wanted[i], HWLOC_TYPE_FILTER_KEEP_ALL) < 0)
            return -errno;
    /* NUMA nodes that match no package or cache belong to groups; without groups hwloc attaches all nodes to the machine. */
    if (hwloc_topology_set_type_filter(t, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) < 0)
        return -errno;
    /* hwloc disallows the CPUs outside asymd's own cgroup, which does not limit other programs: include them. */
    unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                          HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS;
    return hwloc_topology_set_flags(t, flags) < 0 ? -errno : 0;
}

/* The XML of 1024 CPUs with every cache and device is about 2 MB. */
#define MAX_XML ((size_t)32 << 20)

/* Returns the major number of version="2.0" in the topology element; 1 without the attribute, which hwloc 1 did not write. */
static uint64_t major_of(const char *element)
{
    const char *end = element + strcspn(element, ">");
    const char *at = strstr(element, "version=\"");
    if (!at || at > end)
        return 1;
    at += strlen("version=\"");
    uint64_t major;
    return asym_parse_u64(at, strspn(at, "0123456789"), &major) < 0 ? 0 : major;
}

/*
 * Reads a file of hwloc XML of version 1 or 2, with a NUL behind it. hwloc returns EINVAL for every fault, and crashes on some
 * files that were changed by hand (2.9: on 12 of 500 mutated files).
 */
static int read_xml(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t len = 0;
    int r = asym_read_file(AT_FDCWD, path, 0, MAX_XML, &text, &len);
    if (r == -EINVAL)
        return asym_fail(err, r, "%s: not a file of hwloc XML: no regular file", path);
    if (r == -EFBIG)
        return asym_fail(err, -EINVAL, "%s: not a file of hwloc XML: larger than %zu MiB", path, MAX_XML >> 20);
    if (r < 0)
        return asym_fail(err, r, "%s: %s", path, strerror(-r));
    if (len == 0)
        return asym_fail(err, -EINVAL, "%s: not hwloc XML: the file is empty", path);
    /* strlen: XML contains no NUL, and the parser would not see the bytes after one. */
    const char *element = strlen(text) == len ? strstr(text, "<topology") : NULL;
    if (!element || !strchr(" \t\r\n>", element[strlen("<topology")]))
        return asym_fail(err, -EINVAL,
                         "%s: not hwloc XML: the file has no topology element (lstopo FILE.xml writes one)", path);
    uint64_t major = major_of(element);
    if (major != 1 && major != 2)
        return asym_fail(err, -EINVAL,
                         "%s: a newer hwloc wrote this; hwloc %s of this machine reads XML of version 2: export it "
                         "there with lstopo --export-xml-flags v2 FILE.xml",
                         path, HWLOC_VERSION);
    if (!strstr(element, "</topology>"))
        return asym_fail(err, -EINVAL, "%s: incomplete hwloc XML: the end is missing", path);
    *ret_text = ASYM_TAKE(text);
    *ret_len = len;
    return 0;
}

static int load_xml(hwloc_topology_t t, const char *xml, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t len = 0;
    int r = read_xml(xml, &text, &len, err);
    if (r < 0)
        return r;
    if (hwloc_topology_set_xmlbuffer(t, text, (int)len + 1) < 0 || hwloc_topology_load(t) < 0)
        return asym_fail(err, -EINVAL, "%s: hwloc cannot read this XML: it is damaged or was changed by hand", xml);
    return 0;
}

static int load_root(hwloc_topology_t t, const struct asym_root *root, struct asym_error *err)
{
    if (hwloc_topology_load(t) < 0)
        return asym_fail(err, -ENODEV, "%s: no CPUs in sys/devices/system/cpu", root->path);
    hwloc_obj_t first = hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, 0);
    char path[64];
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u", first ? first->os_index : 0);
    /* If sysfs shows no CPU, hwloc invents one. */
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_PATH);
    if (fd < 0 && fd != -ENOENT)
        return asym_fail(err, fd, "%s: %s: %s", root->path, path, strerror(-fd));
    if (!first || fd < 0)
        return asym_fail(err, -ENODEV, "%s: no CPUs in sys/devices/system/cpu", root->path);
    return 0;
}

/*
 * Sets all variables that hwloc reads: hwloc 2 takes the root only from the environment, and other variables of the user would
 * change what it reads. They are those of a process that ends after the load.
 */
static int set_env(bool live, const char *xml, const char *fsroot)
{
    const struct {
        const char *name, *value; /* value NULL: must not be set */
    } rows[] = {
        {"HWLOC_FSROOT", xml || live ? NULL : fsroot},
        /*
         * Without the component x86, which binds its thread to each CPU in turn to read CPUID there, and would report this
         * machine's CPUs for a captured one; and without no_os, which invents CPUs if sysfs shows none.
         */
        {"HWLOC_COMPONENTS", xml ? NULL : "linux,stop"},
        /* The libraries of these plugins load GPU drivers. */
        {"HWLOC_PLUGINS_BLACKLIST",
         "hwloc_opencl.so,hwloc_gl.so,hwloc_cuda.so,hwloc_nvml.so,hwloc_rsmi.so,hwloc_levelzero.so"},
        {"HWLOC_HIDE_ERRORS", "2"},
        {"HWLOC_XML_VERBOSE", NULL},
        {"HWLOC_XMLFILE", NULL},
        {"HWLOC_SYNTHETIC", NULL},
        {"HWLOC_THISSYSTEM", xml || !live ? "0" : NULL},
        {"HWLOC_CPUKINDS_RANKING", NULL},
        {"HWLOC_CPUKINDS_MAXFREQ", NULL},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(rows); i++)
        r = rows[i].value ? setenv(rows[i].name, rows[i].value, 1) : unsetenv(rows[i].name);
    return r < 0 ? -errno : 0;
}

static int load(const struct asym_root *root, const char *xml, hwloc_topology_t *ret, struct asym_error *err)
{
    char fsroot[32] = "";
    if (!xml)
        snprintf(fsroot, sizeof fsroot, "/proc/self/fd/%d", root->fd);
    /* By the descriptor if /proc is mounted, else by the path. */
    const bool by_fd = xml || access(fsroot, F_OK) == 0;
    ASYM_CLEANUP(destroy_p) hwloc_topology_t t = NULL;
    int r = set_env(!xml && root->live, xml, by_fd ? fsroot : root->path);
    if (r == 0 && hwloc_topology_init(&t) < 0)
        r = -ENOMEM;
    if (r == 0)
        r = configure(t);
    if (r < 0)
        return asym_fail(err, r, "hwloc: %s", strerror(-r));
    r = xml ? load_xml(t, xml, err) : load_root(t, root, err);
    if (r < 0)
        return r;
    *ret = ASYM_TAKE(t);
    return 0;
}

/* Returns the LLC: the L3; else an L2 that several cores share; else the package. Their numbers do not overlap. */
static int16_t llc_of(hwloc_topology_t t, hwloc_obj_t pu, hwloc_obj_t core)
{
    int n_l3 = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_L3CACHE), n_l2 = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_L2CACHE);
    hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_L3CACHE, pu);
    if (l3)
        return (int16_t)l3->logical_index;
    hwloc_obj_t l2 = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_L2CACHE, pu);
    if (l2 && !hwloc_bitmap_isincluded(l2->cpuset, core ? core->cpuset : pu->cpuset))
        return (int16_t)(n_l3 + (int)l2->logical_index);
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_PACKAGE, pu);
    return (int16_t)(n_l3 + n_l2 + (package ? (int)package->logical_index : 0));
}

static int walk(hwloc_topology_t t, const char *name, bool allowed_only, struct asym_machine *m, struct asym_error *err)
{
    int last = hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(t));
    if (last < 0)
        return asym_fail(err, -EINVAL, "%s: no CPU is online", name);
    int known = hwloc_bitmap_last(hwloc_topology_get_complete_cpuset(t));
    m->n_cpus = (unsigned)ASYM_MIN(ASYM_MAX(last, known), ASYM_MAX_CPUS - 1) + 1;
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(t);
    int n_cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    for (hwloc_obj_t pu = NULL; (pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, pu));) {
        if (pu->os_index >= ASYM_MAX_CPUS)
            return asym_fail(err, -E2BIG, "%s: CPU %u: asymd supports CPU numbers up to %d", name, pu->os_index,
                             ASYM_MAX_CPUS - 1);
        /* XML changed by hand may have a CPU that its cpusets lack. */
        m->n_cpus = ASYM_MAX(m->n_cpus, pu->os_index + 1);
        struct asym_cpu *c = &m->cpus[pu->os_index];
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_CORE, pu);
        int node = pu->nodeset ? hwloc_bitmap_first(pu->nodeset) : -1;
        c->core = (int16_t)(core ? (int)core->logical_index : n_cores + (int)pu->logical_index);
        hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_L3CACHE, pu);
        c->llc = llc_of(t, pu, core);
        c->l3_kib = l3 ? (uint32_t)ASYM_MIN(l3->attr->cache.size / 1024, UINT32_MAX) : 0;
        c->node = (int16_t)(node <= INT16_MAX ? node : -1);
        asym_mask_set(&m->online, pu->os_index);
        if (!allowed_only || hwloc_bitmap_isset(allowed, pu->os_index))
            asym_mask_set(&m->usable, pu->os_index);
    }
    return 0;
}

/* hwloc reads Intel's core types from CPUID of this machine; for a captured one the PMUs in sysfs give the same. */
static void add_pmu_kinds(hwloc_topology_t t, const struct asym_root *root)
{
    static const struct {
        const char *path, *type;
    } pmus[] = {
        /* intel_hybrid_pmu_type_map of arch/x86/events/intel/core.c; Arrow Lake H has the last */
        {"sys/devices/cpu_core/cpus", "IntelCore"},
        {"sys/devices/cpu_atom/cpus", "IntelAtom"},
        {"sys/devices/cpu_lowpower/cpus", "IntelLowPower"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(pmus); i++) {
        char name[] = "CoreType", value[16];
        struct asym_mask cpus;
        if (asym_root_read_list(root, pmus[i].path, &cpus) < 0 || asym_mask_empty(&cpus))
            continue;
        ASYM_CLEANUP(free_bitmap_p) hwloc_bitmap_t set = hwloc_bitmap_alloc();
        if (!set)
            return;
        ASYM_MASK_FOREACH (cpu, &cpus)
            hwloc_bitmap_set(set, (unsigned)cpu);
        hwloc_bitmap_and(set, set, hwloc_topology_get_topology_cpuset(t));
        snprintf(value, sizeof value, "%s", pmus[i].type);
        struct hwloc_info_s info = {.name = name, .value = value};
        /* After a failure the machine has one kind less. */
        hwloc_cpukinds_register(t, set, -1, 1, &info, 0);
    }
}

static const char *info_of(hwloc_topology_t t, int kind, const char *name)
{
    unsigned n;
    struct hwloc_info_s *infos;
    if (hwloc_cpukinds_get_info(t, (unsigned)kind, NULL, NULL, &n, &infos, 0) < 0)
        return NULL;
    for (unsigned i = 0; i < n; i++)
        if (strcmp(infos[i].name, name) == 0)
            return infos[i].value;
    return NULL;
}

static double number_of(hwloc_topology_t t, int kind, const char *name)
{
    const char *text = info_of(t, kind, name);
    uint64_t value;
    return text && asym_parse_u64(text, strlen(text), &value) == 0 ? (double)value : 0;
}

/*
 * Returns the first kind with the same CoreType. hwloc also splits kinds by frequency, and CPUs with a frequency from CPUs
 * without. Those are not other core types; the sources of speeds judge frequencies.
 */
static int16_t core_type_of(hwloc_topology_t t, int kind)
{
    const char *own = info_of(t, kind, "CoreType");
    for (int k = 0; k < kind; k++) {
        const char *other = info_of(t, k, "CoreType");
        if (own && other ? strcmp(own, other) == 0 : own == other)
            return (int16_t)k;
    }
    return (int16_t)kind;
}

/* all: every kind has the figure. rises: it rises with the kinds' ranks, by more than turbo bins differ. */
struct known {
    bool all, rises;
};

static struct known examine_figure(hwloc_topology_t t, const char *name, int n_kinds)
{
    struct known known = {.all = n_kinds > 0, .rises = true};
    double low = n_kinds > 0 ? number_of(t, 0, name) : 0, before = 0;
    for (int k = 0; k < n_kinds; k++) {
        double v = number_of(t, k, name);
        known.all = known.all && v > 0;
        known.rises = known.rises && v > before;
        before = v;
    }
    known.rises = known.all && known.rises && before >= low * ASYM_TURBO_SPREAD;
    return known;
}

/*
 * Returns the best figure for the speed of the kinds; NULL: use their rank. A rank that comes only from a figure that is about
 * the same for all kinds is not used.
 */
static const char *choose_figure(hwloc_topology_t t, int n_kinds)
{
    static const char *const names[] = {"LinuxCapacity", "FrequencyMaxMHz"};
    const char *weak = NULL;
    for (size_t i = 0; i < ASYM_LENGTH(names); i++) {
        struct known known = examine_figure(t, names[i], n_kinds);
        if (known.rises)
            return names[i];
        if (known.all)
            weak = names[i];
    }
    for (int k = 1; k < n_kinds; k++)
        if (core_type_of(t, k) != 0)
            return NULL;
    return weak;
}

static void walk_kinds(hwloc_topology_t t, struct asym_machine *m, struct asym_figures *ret)
{
    int n_kinds = hwloc_cpukinds_get_nr(t, 0);
    const char *figure = choose_figure(t, n_kinds);
    *ret = (struct asym_figures){
        .name = "hwloc cpukinds",
        .unit = figure && strcmp(figure, "FrequencyMaxMHz") == 0 ? "MHz" : "",
        .tail = figure ? "" : " (only their order is known)",
    };
    ASYM_CLEANUP(free_bitmap_p) hwloc_bitmap_t set = hwloc_bitmap_alloc();
    /* hwloc leaves a CPU without a frequency out of all kinds: it is of the kind of those that have no CoreType either. */
    int16_t untyped = 0;
    while (untyped < n_kinds && info_of(t, untyped, "CoreType"))
        untyped++;
    ASYM_MASK_FOREACH (c, &m->online)
        m->cpus[c].kind = untyped;
    for (int k = 0; set && k < n_kinds; k++) {
        int rank, cpu;
        if (hwloc_cpukinds_get_info(t, (unsigned)k, set, &rank, NULL, NULL, 0) < 0)
            continue;
        /* XML changed by hand may give an infinite set, on which the loop below would not end. */
        if (hwloc_bitmap_and(set, set, hwloc_topology_get_topology_cpuset(t)) < 0)
            continue;
        /* Rank -1: hwloc knows the kinds but not their order. */
        double value = rank < 0 ? 0 : figure ? number_of(t, k, figure) : 1 + ASYM_RANK_STEP * rank;
        int16_t type = core_type_of(t, k);
        hwloc_bitmap_foreach_begin(cpu, set)
        {
            if (!asym_mask_has(&m->online, cpu))
                continue;
            m->cpus[cpu].kind = type;
            ret->value[cpu] = value;
        }
        hwloc_bitmap_foreach_end();
    }
}

/* Sets the usual names of hwloc's core types. */
static void name_kinds(hwloc_topology_t t, struct asym_machine *m)
{
    static const struct {
        const char *type, *name;
    } names[] = {{"IntelCore", "P-core"}, {"IntelAtom", "E-core"}, {"IntelLowPower", "LP E-core"}};
    for (int k = 0; k < hwloc_cpukinds_get_nr(t, 0) && k < ASYM_MAX_KINDS; k++) {
        const char *type = info_of(t, k, "CoreType");
        for (size_t i = 0; type && i < ASYM_LENGTH(names); i++)
            if (strcmp(type, names[i].type) == 0)
                snprintf(m->kind_names[k], sizeof m->kind_names[k], "%s", names[i].name);
    }
}

/*
 * hwloc merges the low-power cores of Meteor Lake and its successors into the E cores. They are on another tile, without the L3
 * of the other cores, so they become a separate kind.
 */
static void separate_low_power(hwloc_topology_t t, struct asym_machine *m)
{
    const int n_kinds = hwloc_cpukinds_get_nr(t, 0);
    int own = 0;
    bool found = false;
    /* Arrow Lake H has a PMU for them, whose kind they then join. */
    while (own < n_kinds && own < ASYM_MAX_KINDS && strcmp(m->kind_names[own], "LP E-core") != 0)
        own++;
    if (n_kinds < 0 || own >= ASYM_MAX_KINDS || hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_L3CACHE) <= 0)
        return;
    ASYM_MASK_FOREACH (cpu, &m->online) {
        struct asym_cpu *c = &m->cpus[cpu];
        if (c->kind < 0 || c->kind >= ASYM_MIN(n_kinds, ASYM_MAX_KINDS) ||
            strcmp(m->kind_names[c->kind], "E-core") != 0 || c->l3_kib > 0)
            continue;
        c->kind = (int16_t)own;
        found = true;
    }
    if (found)
        snprintf(m->kind_names[own], sizeof m->kind_names[own], "LP E-core");
}

static bool misses_some(const struct asym_figures *f, const struct asym_mask *cpus)
{
    ASYM_MASK_FOREACH (cpu, cpus)
        if (f->value[cpu] <= 0)
            return true;
    return false;
}

/*
 * hwloc leaves out CPUs that are online but have no topology directory, as Android's kernels show them. They are CPUs all the
 * same: each a core of its own, with the cache and the node of the first one. Returns whether the machine has CPUs.
 */
static bool add_unplaced(const struct asym_root *root, struct asym_machine *m)
{
    char path[64];
    const int first = asym_mask_next(&m->online, 0);
    struct asym_mask online;
    if (asym_root_read_list(root, "sys/devices/system/cpu/online", &online) < 0)
        return first >= 0;
    online = asym_mask_minus(&online, &m->online);
    ASYM_MASK_FOREACH (cpu, &online) {
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d", cpu);
        ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_PATH);
        if (fd < 0)
            continue;
        m->cpus[cpu].llc = first >= 0 ? m->cpus[first].llc : 0;
        m->cpus[cpu].node = first >= 0 ? m->cpus[first].node : 0;
        m->n_cpus = ASYM_MAX(m->n_cpus, (unsigned)cpu + 1);
        asym_mask_set(&m->online, (unsigned)cpu);
        asym_mask_set(&m->usable, (unsigned)cpu);
    }
    return !asym_mask_empty(&m->online);
}

/* Without any topology hwloc finds no machine: the CPUs that are online are all there is to know. */
static int load_plain(const struct asym_root *root, int error, struct asym_machine *m, struct asym_figures *ret_kinds)
{
    if (error != -ENODEV || !add_unplaced(root, m))
        return error;
    *ret_kinds = (struct asym_figures){.name = "hwloc cpukinds", .unit = "", .tail = ""};
    ASYM_MASK_FOREACH (cpu, &m->online)
        m->cpus[cpu].kind = 0;
    asym_topology_midr(root, m);
    return 0;
}

int asym_topology_load(const struct asym_root *root, const char *xml, struct asym_machine *m,
                       struct asym_figures *ret_kinds, struct asym_error *err)
{
    ASYM_CLEANUP(destroy_p) hwloc_topology_t t = NULL;
    for (unsigned i = 0; i < ASYM_MAX_CPUS; i++)
        m->cpus[i] = (struct asym_cpu){.type = -1, .kind = -1, .core = -1, .llc = -1, .node = -1, .freq_domain = -1};
    int r = load(root, xml, &t, err);
    if (r < 0)
        return xml ? r : load_plain(root, r, m, ret_kinds);
    r = walk(t, xml ? xml : root->path, xml != NULL, m, err);
    if (r < 0)
        return r;
    if (!xml)
        add_unplaced(root, m);
    if (!xml)
        add_pmu_kinds(t, root);
    walk_kinds(t, m, ret_kinds);
    name_kinds(t, m);
    separate_low_power(t, m);
    if (!xml)
        asym_topology_midr(root, m);
    /* hwloc ranks kinds by the first figure that it finds, or not at all, and a figure may be wrong. */
    if (misses_some(ret_kinds, &m->online) || asym_topology_contradicts(ret_kinds, m, &m->online))
        asym_topology_rank(m, &m->online, ret_kinds);
    return 0;
}
