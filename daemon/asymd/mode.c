/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/mode.h"

#include <stdio.h>
#include <string.h>

/*
 * The table of the modes, from modes.def. cli.c reads it, and it holds --help and --help-config, whose texts cli.c prints:
 * these files call each other in a circle.
 */

const struct asym_mode_entry *const asym_modes[] = {
#define ASYM_MODE(NAME, name) &asym_mode_##name,
#include "daemon/asymd/modes.def"
#undef ASYM_MODE
};

enum asym_exit asym_mode_fail(const struct asym_run *run, int error, const struct asym_error *err)
{
    asym_log_say(&run->log, LOG_ERR, "%s", err->text);
    return asym_exit_status(error);
}

enum asym_exit asym_mode_reported(const struct asym_run *run, int r)
{
    if (r >= 0 || ferror(stdout))
        return ASYM_EXIT_DONE;
    asym_log_say(&run->log, LOG_ERR, "cannot report: %s", strerror(-r));
    return ASYM_EXIT_FAILED;
}
