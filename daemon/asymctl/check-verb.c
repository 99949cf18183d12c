/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl check. */
#include "app/command-line.h"
#include "app/machine-check.h"
#include "base/macro.h"
#include "daemon/asymctl/machine-run.h"
#include "daemon/asymctl/verb.h"

static int report(struct asym_run *run, bool json)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    ASYM_CLEANUP(asym_check_done) struct asym_check check = {.lines = NULL};
    int r = asym_run_check(run, &check);
    if (r >= 0)
        r = json ? asym_check_json(&check, stdout) : asym_check_text(&check, &terminal);
    const int status = asym_verb_reported(r);
    return status == ASYM_EXIT_DONE && !check.can_run ? ASYM_EXIT_NO_SIGNAL : status;
}

static int check(const void *args, char **operands)
{
    (void)operands;
    return asym_machine_verb(args, ASYM_MACHINE_QUIET, report);
}

const struct asym_verb asym_verb_check = {
    .name = "check",
    .args = asym_machine_args,
    .args_size = sizeof(struct asym_machine_arguments),
    .usage = "",
    .summary = "say whether asymd can help this machine, and what the machine offers and lacks",
    .help = "Prints what asymd --check prints: a verdict in the first line, then a line for each thing that this\n"
            "machine offers or lacks, with a remedy, for the configuration of the running asymd or the installed one. "
            "Exit status 3: the configured policy\n"
            "cannot run here.\n",
    .run = check,
};
