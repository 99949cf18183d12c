/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The state that every mode of asymd (daemon/asymd/mode.h) has. A mode connects a source and an actuator to the engine; no
 * function below gets the mode as an argument. The order of set-up: settings-setup.h, machine-setup.h, policy-setup.h,
 * observer-setup.h.
 */
#ifndef ASYM_APP_RUN_H
#define ASYM_APP_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>

#include "app/log.h"
#include "app/policy-setup.h"
#include "app/prompt.h"
#include "config/settings.h"
#include "linux/speed-cap/speed-cap.h"
#include "linux/sys/root.h"
#include "linux/topology/topology.h"

struct asym_invocation_setting {
    char *text;         /**< SECTION.KEY=VALUE; owned */
    const char *origin; /**< the option of the command line that set it; static */
};

/** The parsed command line of asymd (daemon/asymd/mode.h). Every mode gets it. */
struct asym_invocation {
    unsigned mode; /**< enum asym_mode (daemon/asymd/mode.h); the overview if argv names none */
    bool json;
    const char *config, *root, *topology; /**< borrowed from argv; NULL: not given */
    int32_t *pids;
    size_t n_pids;
    struct asym_invocation_setting *assignments; /**< in the order given */
    size_t n_assignments;
    uint32_t given; /**< a bit for each row of the table that argv names */
};

struct asym_run {
    const struct asym_invocation *cli; /* borrowed */
    struct asym_settings *settings;
    struct asym_root root;
    struct asym_machine *machine; /* owned; hotplug changes its content, not its address */
    struct asym_topology_notes notes;
    struct asym_mask slow; /* what asymmetry.slow chose when it was read, with CPUs that are offline now */
    bool assumed_slow;     /* some CPUs only count as slow: [asymmetry] slow without a method that slows them */
    struct asym_speed_cap *speed_cap; /* owned; NULL in modes that change nothing */
    const struct asym_caps *caps;     /* the speeds obtained; NULL: asymd has slowed no CPU */
    struct asym_capabilities capabilities;
    const struct asym_policy *policy; /* the configured policy, or the choice of auto */
    const char *policy_why;           /* why auto chose it; NULL: the configuration names it. Static */
    bool keep_nice;                   /* asymd changes no nice value (asym_run_check_boost) */
    struct asym_prompt prompt;        /* events that asymd answers at once */
    struct asym_log log;
};

#endif
