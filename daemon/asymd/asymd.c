/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd: parse the command line, prepare what the mode needs, run the mode. */
#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "app/crash-recovery.h"
#include "app/machine-setup.h"
#include "app/policy-setup.h"
#include "app/settings-setup.h"
#include "daemon/asymd/mode.h"
#include "linux/sys/cgroup-mounts.h"

static bool is_captured(const struct asym_run *run)
{
    return run->cli->root || run->cli->topology;
}

/* The configuration has a mistake: loads its valid part. Returns true if the mode can run with that. */
static bool settle_for_less(struct asym_run *run, const struct asym_mode_entry *mode)
{
    struct asym_error err = {""};
    if (mode->failure == ASYM_FAILURE_ENDS)
        return false;
    if (asym_run_settings(run->cli, true, &run->settings, &err) < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        return false;
    }
    if (mode->failure == ASYM_FAILURE_RESTORES && !is_captured(run))
        asym_crash_recovery_abandon(run);
    return mode->failure == ASYM_FAILURE_LENIENT;
}

static enum asym_exit start(struct asym_run *run, const struct asym_mode_entry *mode)
{
    struct asym_error err = {""};
    int r = asym_run_settings(run->cli, false, &run->settings, &err);
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        /* A file that cannot be read is a configuration error, whatever the errno. */
        if (!settle_for_less(run, mode))
            return ASYM_EXIT_USAGE;
    }
    asym_log_set_level(&run->log, run->settings->daemon.log_level);
    r = asym_root_open(run->cli->root, &run->root, &err);
    if (r >= 0 && asym_cgroup_mounts_keep(&run->root) < 0)
        r = asym_fail(&err, -ENOMEM, "no memory");
    if (r >= 0 && mode->needs >= ASYM_NEEDS_MACHINE)
        r = asym_run_machine(run, true, &err);
    if (r >= 0 && mode->needs >= ASYM_NEEDS_MACHINE)
        r = asym_run_policy(run, &err);
    /* Checked before asymd slows a CPU or steers a thread for the policy. */
    if (r >= 0 && mode->needs >= ASYM_NEEDS_SIGNALS)
        r = asym_capabilities_check(run->capabilities.missing, run->policy, &err);
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        if (mode->failure == ASYM_FAILURE_RESTORES && !is_captured(run))
            asym_crash_recovery_abandon(run);
        return is_captured(run) && r != -ENODATA ? ASYM_EXIT_USAGE : asym_exit_status(r);
    }
    return mode->run(run);
}

/* The modes leave the errors of writing to standard output to this function. */
static enum asym_exit end_output(const struct asym_run *run, enum asym_exit status)
{
    const int r = asym_output_end();
    if (r == 0)
        return status;
    asym_log_say(&run->log, LOG_ERR, "cannot write to standard output: %s", strerror(-r));
    return ASYM_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    ASYM_CLEANUP(asym_cli_done) struct asym_invocation cli = {0};
    ASYM_CLEANUP(asym_run_done) struct asym_run run = {.cli = &cli, .root = {.fd = -1}};
    struct asym_error err = {""};
    asym_log_init(&run.log);
    if (asym_cli_parse(argc, argv, &cli, &err) < 0) {
        asym_log_say(&run.log, LOG_ERR, "%s", err.text);
        return ASYM_EXIT_USAGE;
    }
    const struct asym_mode_entry *mode = asym_modes[cli.mode];
    return (int)end_output(&run, mode->needs == ASYM_NEEDS_NOTHING ? mode->run(&run) : start(&run, mode));
}
