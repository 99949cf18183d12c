/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --help-config. */
#include "app/command-line.h"
#include "daemon/asymd/cli.h"
#include "daemon/asymd/mode.h"

static enum asym_exit help_config(struct asym_run *run)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    return asym_mode_reported(run, asym_cli_help_config(&terminal));
}

const struct asym_mode_entry asym_mode_help_config = {
    .name = "--help-config",
    .help = "print the options of the configuration, with defaults",
    .run = help_config,
    .needs = ASYM_NEEDS_NOTHING,
};
