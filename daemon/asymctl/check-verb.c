/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl check. */
#include "app/command-line.h"
#include "app/machine-check.h"
#include "base/macro.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/verb.h"

static int check(const void *parsed, char **operands)
{
    const struct asym_verb_config *a = parsed;
    const struct asym_invocation cli = {.config = a->config};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    ASYM_CLEANUP(asym_run_done) struct asym_run run;
    ASYM_CLEANUP(asym_check_done) struct asym_check found = {.lines = NULL};
    struct asym_error err = {""};
    int r = asym_machine_run_begin(&run, &cli, ASYM_MACHINE_QUIET, &err);
    if (r >= 0)
        r = asym_run_policy(&run, &err);
    if (r < 0)
        return asym_machine_run_failed(&run, r, &err);
    r = asym_run_check(&run, &found);
    if (r >= 0)
        r = a->json ? asym_check_json(&found, stdout) : asym_check_text(&found, &terminal);
    const int status = asym_verb_reported(r);
    return status == ASYM_EXIT_DONE && !found.can_run ? ASYM_EXIT_NO_SIGNAL : status;
}

const struct asym_verb asym_verb_check = {
    .name = "check",
    .args = asym_verb_config_args,
    .summary = "say whether asymd can help this machine, and what the machine offers and lacks",
    .help = "Prints what asymd --check prints: a verdict in the first line, then a line for each thing that this\n"
            "machine offers or lacks, with a remedy, for the configuration of the running asymd or the installed one. "
            "Exit status 3: the configured policy\n"
            "cannot run here.\n",
    .run = check,
};
