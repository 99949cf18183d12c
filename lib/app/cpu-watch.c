/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/cpu-watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <systemd/sd-device.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/topology/topology.h"

struct asym_watch {
    sd_device_monitor *monitor;
    void (*fn)(void *userdata);
    void *userdata;
};

static int on_device(sd_device_monitor *monitor, sd_device *device, void *userdata)
{
    const struct asym_watch *w = userdata;
    (void)monitor;
    (void)device;
    w->fn(w->userdata);
    return 0;
}

static int listen_to(struct asym_watch *w, sd_event *event)
{
    int r = sd_device_monitor_new(&w->monitor);
    if (r >= 0)
        r = sd_device_monitor_filter_add_match_subsystem_devtype(w->monitor, "cpu", NULL);
    if (r >= 0)
        r = sd_device_monitor_attach_event(w->monitor, event);
    if (r >= 0)
        r = sd_device_monitor_start(w->monitor, on_device, w);
    return r;
}

int asym_watch_new(sd_event *event, void (*fn)(void *userdata), void *userdata, struct asym_watch **ret_watch)
{
    struct asym_watch *w = malloc(sizeof *w);
    if (!w)
        return -ENOMEM;
    *w = (struct asym_watch){.fn = fn, .userdata = userdata};
    int r = listen_to(w, event);
    if (r < 0) {
        asym_watch_free(w);
        return r;
    }
    *ret_watch = w;
    return 0;
}

void asym_watch_free(struct asym_watch *w)
{
    if (!w)
        return;
    sd_device_monitor_unref(w->monitor);
    free(w);
}

bool asym_watch_changed(const struct asym_root *root, const struct asym_machine *m)
{
    struct asym_mask online, usable;
    return asym_topology_cpus(root, &online, &usable) >= 0 &&
           (!asym_mask_equal(&online, &m->online) || !asym_mask_equal(&usable, &m->usable));
}

#define FIRST_HASH UINT64_C(0xcbf29ce484222325)

/* FNV-1a; name keeps a file that is missing apart from the next one. */
static uint64_t hash_file(uint64_t h, const struct asym_root *root, const char *path, uint64_t name)
{
    char full[96], text[64];
    snprintf(full, sizeof full, "sys/devices/system/cpu/%s", path);
    const ssize_t n = asym_root_read(root, full, text, sizeof text);
    for (ssize_t k = 0; k < n; k++)
        h = (h ^ (unsigned char)text[k]) * UINT64_C(0x100000001b3);
    return (h ^ name) * UINT64_C(0x100000001b3);
}

uint64_t asym_watch_abilities(const struct asym_root *root)
{
    static const char *const files[] = {
        "cpufreq/boost", "intel_pstate/no_turbo", "intel_pstate/status", "amd_pstate/status", "isolated", "nohz_full"};
    uint64_t h = FIRST_HASH;
    for (size_t i = 0; i < ASYM_LENGTH(files); i++)
        h = hash_file(h, root, files[i], i);
    return h;
}

static uint64_t hash_cpu(const struct asym_root *root, int cpu)
{
    static const char *const files[] = {"cpu_capacity", "acpi_cppc/highest_perf", "cpufreq/amd_pstate_prefcore_ranking",
                                        "cpufreq/cpuinfo_max_freq", "cpufreq/scaling_driver"};
    uint64_t h = FIRST_HASH;
    for (size_t i = 0; i < ASYM_LENGTH(files); i++) {
        char path[64];
        snprintf(path, sizeof path, "cpu%d/%s", cpu, files[i]);
        h = hash_file(h, root, path, i);
    }
    return h;
}

#define CPUS_AT_ONCE    16
#define CHANGES_AT_ONCE 2.0 /* one more is a debt */
#define CHANGE_EVERY    (10 * ASYM_SEC)

static void hash_cpus(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus)
{
    ASYM_MASK_FOREACH (cpu, cpus)
        facts->of[cpu] = hash_cpu(root, cpu);
}

void asym_watch_read_facts(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus,
                           asym_usec now)
{
    hash_cpus(facts, root, cpus);
    facts->changes = asym_token_bucket_full(1.0 / (double)CHANGE_EVERY, CHANGES_AT_ONCE, now);
}

bool asym_watch_facts_changed(struct asym_cpu_facts *facts, const struct asym_root *root, const struct asym_mask *cpus,
                              asym_usec now)
{
    bool changed = false;
    int cpu = asym_mask_next(cpus, facts->next);
    for (int i = 0; i < CPUS_AT_ONCE && cpu >= 0; i++, cpu = asym_mask_next(cpus, cpu + 1))
        changed = changed || hash_cpu(root, cpu) != facts->of[cpu];
    facts->next = cpu >= 0 ? cpu : 0;
    /* A change that the caller must not act on yet is seen again at a later look. */
    if (!changed || !asym_token_bucket_has(&facts->changes, now))
        return false;
    asym_token_bucket_charge(&facts->changes, 1, now);
    hash_cpus(facts, root, cpus);
    return true;
}
