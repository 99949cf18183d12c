/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --print-config. */
#include <stdio.h>

#include "daemon/asymd/mode.h"

static enum asym_exit mode_print_config(struct asym_run *run)
{
    return asym_mode_reported(run, asym_settings_print(run->settings, stdout));
}

const struct asym_mode_entry asym_mode_print_config = {
    .name = "--print-config",
    .help = "print the effective configuration, and the origin of each line",
    .run = mode_print_config,
    .needs = ASYM_NEEDS_CONFIGURATION,
};
