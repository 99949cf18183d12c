/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --check. */
#include "app/command-line.h"
#include "app/machine-check.h"
#include "base/macro.h"
#include "daemon/asymd/mode.h"

static enum asym_exit mode_check(struct asym_run *run)
{
    ASYM_CLEANUP(asym_check_done) struct asym_check check = {.lines = NULL};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    int r = asym_run_check(run, &check);
    if (r >= 0)
        r = run->cli->json ? asym_check_json(&check, stdout) : asym_check_text(&check, &terminal);
    const enum asym_exit status = asym_mode_reported(run, r);
    return status == ASYM_EXIT_DONE && !check.can_run ? ASYM_EXIT_NO_SIGNAL : status;
}

const struct asym_mode_entry asym_mode_check = {
    .name = "--check",
    .help = "print what this machine offers and lacks, with remedies",
    .run = mode_check,
    .needs = ASYM_NEEDS_MACHINE,
};
