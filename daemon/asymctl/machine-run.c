/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/machine-run.h"

#include <stddef.h>
#include <stdlib.h>

#include "app/machine-setup.h"
#include "app/policy-setup.h"
#include "app/settings-setup.h"
#include "base/macro.h"
#include "daemon/asymctl/verb.h"

#define ROW(...) ASYM_ARG_OF(struct asym_machine_arguments, __VA_ARGS__)

const struct asym_arg asym_machine_args[] = {
    ROW("--json", BOOL, NULL, json, .help = "print JSON"),
    ROW("--config", STRING, "FILE", config, .help = "the configuration of asymd, instead of the installed one"),
    {.option = {.key = NULL}},
};

int asym_machine_run(struct asym_run *run, const struct asym_invocation *cli, bool lenient, struct asym_error *err)
{
    *run = (struct asym_run){.cli = cli, .root = {.fd = -1}};
    asym_log_init(&run->log);
    int r = lenient ? asym_run_load_lenient(cli, &run->settings, err) : asym_run_settings(cli, &run->settings, err);
    if (r >= 0)
        r = asym_root_open(NULL, &run->root, err);
    if (r >= 0)
        r = asym_run_machine(run, err);
    return r < 0 ? r : asym_run_policy(run, err);
}

void asym_machine_run_done(struct asym_run *run)
{
    asym_settings_free(run->settings);
    asym_capabilities_done(&run->capabilities);
    asym_root_done(&run->root);
    free(run->machine);
    asym_log_done(&run->log);
}

int asym_machine_verb(const struct asym_machine_arguments *a, int (*report)(struct asym_run *run, bool json))
{
    const struct asym_invocation cli = {.config = a->config};
    ASYM_CLEANUP(asym_machine_run_done) struct asym_run run = {.root = {.fd = -1}};
    struct asym_error err = {""};
    const int r = asym_machine_run(&run, &cli, false, &err);
    if (r >= 0)
        return report(&run, a->json);
    /* A file that cannot be read is a configuration error, whatever the errno. */
    return asym_verb_fail(run.settings ? asym_exit_status(r) : ASYM_EXIT_USAGE, err.text);
}
