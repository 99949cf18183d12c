/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --help. */
#include "app/command-line.h"
#include "daemon/asymd/cli.h"
#include "daemon/asymd/mode.h"

static enum asym_exit help(struct asym_run *run)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    return asym_mode_reported(run, asym_cli_help(&terminal));
}

const struct asym_mode_entry asym_mode_help = {
    .name = "--help", .help = "print this text", .run = help, .needs = ASYM_NEEDS_NOTHING};
