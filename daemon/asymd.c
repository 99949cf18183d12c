/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "daemon/leftovers.h"
#include "daemon/run.h"

static const struct {
    enum asym_mode mode;
    enum asym_exit (*run)(struct asym_run *run);
    bool machine;  /* it looks at the machine */
    bool plans;    /* it needs the signals of the policy */
    bool salvages; /* a configuration with mistakes in it will do */
    bool clears;   /* what an earlier asymd has left is put back even where it cannot start */
} modes[] = {
    {.mode = ASYM_MODE_SERVICE, .run = asym_mode_service, .machine = true, .plans = true, .clears = true},
    {.mode = ASYM_MODE_DRY_RUN, .run = asym_mode_dry_run, .machine = true, .plans = true},
    {.mode = ASYM_MODE_ONCE, .run = asym_mode_once, .machine = true, .plans = true},
    {.mode = ASYM_MODE_RESTORE, .run = asym_mode_restore, .salvages = true},
    {.mode = ASYM_MODE_CHECK, .run = asym_mode_check, .machine = true},
    {.mode = ASYM_MODE_PRINT_CONFIG, .run = asym_mode_print_config},
};

static void run_done(struct asym_run *run)
{
    asym_settings_free(run->settings);
    asym_signals_done(&run->signals);
    asym_root_done(&run->root);
    asym_asymmetry_close(run->asymmetry);
    free(run->machine);
    asym_log_done(&run->log);
}

static bool is_captured(const struct asym_run *run)
{
    return run->cli->root || run->cli->topology;
}

/* Does the mode do what it is there for with as much of the settings as can be had? */
static bool settle_for_less(struct asym_run *run, size_t mode)
{
    struct asym_error err = {""};
    if (!modes[mode].salvages && !modes[mode].clears)
        return false;
    if (asym_run_salvage(run->cli, &run->settings, &err) < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        return false;
    }
    if (modes[mode].clears && !is_captured(run))
        asym_leftovers_abandon(run);
    return modes[mode].salvages;
}

static enum asym_exit start(struct asym_run *run, size_t mode)
{
    struct asym_error err = {""};
    int r = asym_run_settings(run->cli, &run->settings, &err);
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        /* A file that cannot be read is a matter of configuration, whatever the errno. */
        if (!settle_for_less(run, mode))
            return ASYM_EXIT_USAGE;
    }
    r = asym_root_open(run->cli->root, &run->root, &err);
    if (r >= 0 && modes[mode].machine)
        r = asym_run_machine(run, &err);
    if (r >= 0 && modes[mode].machine)
        r = asym_run_policy(run, &err);
    /* Before anything is held or steered for it. */
    if (r >= 0 && modes[mode].plans)
        r = asym_signals_check(run->signals.missing, run->policy, &err);
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        if (modes[mode].clears && !is_captured(run))
            asym_leftovers_abandon(run);
        return is_captured(run) && r != -ENODATA ? ASYM_EXIT_USAGE : asym_run_exit(r);
    }
    return modes[mode].run(run);
}

int main(int argc, char **argv)
{
    ASYM_CLEANUP(asym_cli_done) struct asym_cli cli = {0};
    ASYM_CLEANUP(run_done) struct asym_run run = {.cli = &cli, .root = {.fd = -1}};
    struct asym_error err = {""};
    asym_log_init(&run.log);
    if (asym_cli_parse(argc, argv, &cli, &err) < 0) {
        asym_log_say(&run.log, LOG_ERR, "%s", err.text);
        return ASYM_EXIT_USAGE;
    }
    if (cli.mode == ASYM_MODE_HELP) {
        asym_cli_help(stdout);
        return ASYM_EXIT_DONE;
    }
    if (cli.mode == ASYM_MODE_VERSION) {
        puts("asymd " ASYM_VERSION);
        return ASYM_EXIT_DONE;
    }
    for (size_t i = 0; i < ASYM_LENGTH(modes); i++)
        if (modes[i].mode == cli.mode)
            return (int)start(&run, i);
    return ASYM_EXIT_USAGE;
}
