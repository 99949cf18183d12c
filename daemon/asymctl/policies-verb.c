/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl policies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/policy-setup.h"
#include "app/settings-setup.h"
#include "base/macro.h"
#include "report/policies-report.h"
#include "app/command-line.h"
#include "daemon/asymctl/verb.h"
#include "linux/topology/topology.h"

struct arguments {
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

/* Uses the installed configuration, which names the file of profiles. If it has a mistake, its valid part counts. */
static int read_missing(const char *missing[ASYM_N_SIGNALS])
{
    const struct asym_invocation cli = {.config = NULL};
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    ASYM_CLEANUP(asym_capabilities_done) struct asym_capabilities capabilities = {.root = NULL};
    ASYM_AUTO_FREE struct asym_machine *m = calloc(1, sizeof *m);
    struct asym_settings *settings = NULL;
    struct asym_error err = {""};
    int r = m ? asym_run_load_lenient(&cli, &settings, &err) : -ENOMEM;
    if (r >= 0)
        r = asym_root_open(NULL, &root, &err);
    if (r >= 0)
        r = asym_topology_read(&root, NULL, m, NULL, &err);
    if (r >= 0)
        r = asym_capabilities_read(&capabilities, &root, m, settings, &err);
    if (r < 0)
        fprintf(stderr, "asymctl: %s\n", *err.text ? err.text : strerror(-r));
    else
        memcpy(missing, capabilities.missing, sizeof capabilities.missing);
    asym_settings_free(settings);
    return r;
}

static int policies(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    const struct asym_policy *all[64];
    const char *missing[ASYM_N_SIGNALS];
    size_t n = 0;
    (void)operands;
    int r = read_missing(missing);
    if (r < 0)
        return (int)asym_exit_status(r);
    for (; n < ASYM_LENGTH(all) && asym_policy_at(n); n++)
        all[n] = asym_policy_at(n);
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    return asym_verb_reported(a->json ? asym_policies_json(all, n, missing, stdout)
                                      : asym_policies_text(all, n, missing, &terminal));
}

const struct asym_verb asym_verb_policies = {
    .name = "policies",
    .args = args,
    .args_size = sizeof(struct arguments),
    .usage = "",
    .summary = "list every policy, what it needs, and whether it can run here",
    .help = "Prints for each policy: its name and what it does in one line; the paper and section that it comes\n"
            "from; the signals (measurements) that it needs; the mask that it gives a thread; and whether it\n"
            "can run here.\n",
    .run = policies,
};
