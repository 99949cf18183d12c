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

uint64_t asym_watch_abilities(const struct asym_root *root)
{
    static const char *const files[] = {"cpufreq/boost",
                                        "intel_pstate/no_turbo",
                                        "intel_pstate/status",
                                        "amd_pstate/status",
                                        "cpu0/cpufreq/scaling_driver",
                                        "cpu0/cpu_capacity",
                                        "cpu0/cpufreq/cpuinfo_max_freq"};
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < ASYM_LENGTH(files); i++) {
        char path[96], text[64];
        snprintf(path, sizeof path, "sys/devices/system/cpu/%s", files[i]);
        const ssize_t n = asym_root_read(root, path, text, sizeof text);
        for (ssize_t k = 0; k < n; k++)
            h = (h ^ (unsigned char)text[k]) * UINT64_C(0x100000001b3);
        h = (h ^ i) * UINT64_C(0x100000001b3);
    }
    return h;
}
