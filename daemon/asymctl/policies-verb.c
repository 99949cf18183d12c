/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl policies. */
#include "app/command-line.h"
#include "base/macro.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/verb.h"
#include "report/report.h"

static int policies(const void *parsed, char **operands)
{
    const struct asym_verb_json *a = parsed;
    const struct asym_policy *all[64];
    const struct asym_invocation cli = {.config = NULL};
    ASYM_CLEANUP(asym_run_done) struct asym_run run;
    struct asym_error err = {""};
    size_t n = 0;
    /* The configuration names the file of profiles. */
    int r = asym_machine_run_begin(&run, &cli, ASYM_MACHINE_INSTALLED, &err);
    if (r >= 0)
        r = asym_capabilities_read(&run.capabilities, &run.root, run.machine, run.settings, &err);
    if (r < 0)
        return asym_machine_run_failed(&run, r, &err);
    for (; n < ASYM_LENGTH(all) && asym_policy_at(n); n++)
        all[n] = asym_policy_at(n);
    const char *const *missing = run.capabilities.missing;
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    return asym_verb_reported(a->json ? asym_policies_json(all, n, missing, stdout)
                                      : asym_policies_text(all, n, missing, &terminal));
}

const struct asym_verb asym_verb_policies = {
    .name = "policies",
    .args = asym_verb_json_args,
    .summary = "list every policy, what it needs, and whether it can run here",
    .help = "Prints for each policy: its name and what it does in one line; the paper and section that it comes\n"
            "from; the signals (measurements) that it needs; the mask that it gives a thread; and whether it\n"
            "can run here.\n",
    .run = policies,
};
