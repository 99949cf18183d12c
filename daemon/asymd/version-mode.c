/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --version. */
#include "daemon/asymd/mode.h"

static enum asym_exit version(struct asym_run *run)
{
    puts("asymd " ASYM_VERSION);
    return ASYM_EXIT_DONE;
}

const struct asym_mode_entry asym_mode_version = {
    .name = "--version", .help = "print the version", .run = version, .needs = ASYM_NEEDS_NOTHING};
