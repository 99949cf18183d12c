/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --restore. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/crash-recovery.h"
#include "daemon/asymd/mode.h"

static enum asym_exit mode_restore(struct asym_run *run)
{
    struct asym_ledger *ledger;
    struct asym_restore_report report;
    struct asym_error err = {""};
    char text[256];
    const char *dir = run->settings->daemon.state_dir;
    int r = asym_ledger_in_use(dir);
    if (r == -ENOENT)
        return asym_mode_fail(run, r,
                              (asym_fail(&err, r,
                                         "%s: no asymd has kept its ledger there; --set=asymd.state_dir=DIR names the "
                                         "directory of another one",
                                         dir),
                               &err));
    r = asym_crash_recovery_open(run, &ledger, &err);
    if (r < 0)
        return asym_mode_fail(run, r, &err);
    asym_ledger_restore(ledger, &report);
    int speeds = asym_speeds_open(run, ledger, &err);
    if (speeds < 0)
        asym_log_say(&run->log, LOG_ERR, "speeds of CPUs: %s", err.text);
    else
        speeds = asym_speeds_restore(run, "restore");
    asym_ledger_close(ledger);
    puts(asym_restore_text(&report, text, sizeof text));
    if (report.failed > 0) {
        const bool refused = asym_exit_status(report.error) == ASYM_EXIT_NOT_PERMITTED;
        asym_log_say(&run->log, LOG_ERR, "%zu threads could not be restored and stay in the ledger: %s%s",
                     report.failed, strerror(-report.error), refused ? " (CAP_SYS_NICE is needed)" : "");
        return refused ? ASYM_EXIT_NOT_PERMITTED : ASYM_EXIT_FAILED;
    }
    return speeds < 0 || report.search_error < 0 ? ASYM_EXIT_FAILED : ASYM_EXIT_DONE;
}

const struct asym_mode_entry asym_mode_restore = {
    .name = "--restore",
    .help = "restore everything that the ledger records",
    .run = mode_restore,
    .needs = ASYM_NEEDS_CONFIGURATION,
    .failure = ASYM_FAILURE_LENIENT,
};
