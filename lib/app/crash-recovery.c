/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/crash-recovery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/speeds.h"
#include "base/macro.h"
#include "linux/speed-cap/asymmetry.h"
#include "linux/enforce/enforce.h"

#define EARLIER "left by an earlier asymd"

int asym_crash_recovery_open(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_error said = {""};
    int r = asym_ledger_open(run->settings->daemon.state_dir, ret_ledger, &said);
    if (r < 0)
        return asym_fail(err, r, "%s", said.text);
    if (*said.text)
        asym_log_say(&run->log, LOG_WARNING, "%s", said.text);
    return 0;
}

int asym_crash_recovery_restore(struct asym_run *run, struct asym_ledger *ledger, const char *when)
{
    struct asym_restore_report report;
    char text[256];
    asym_ledger_restore(ledger, &report);
    const int error = report.failed > 0 ? report.error : report.search_error;
    if (error < 0 || report.restored + report.inherited + report.foreign > 0)
        asym_log_say(&run->log, error < 0 ? LOG_ERR : LOG_INFO, "%s: %s", when,
                     asym_restore_text(&report, text, sizeof text));
    return error;
}

bool asym_crash_recovery_left(const char *dir, bool silent, char *buf, size_t size)
{
    const int n = asym_ledger_left(dir);
    if (n > 0)
        snprintf(buf, size, "%d thread%s still ha%s masks of an asymd that died", n, n == 1 ? "" : "s",
                 n == 1 ? "s" : "ve");
    else if (n == -EACCES && silent)
        snprintf(buf, size, "if asymd died, threads may still have its masks");
    return n > 0 || (n == -EACCES && silent);
}

int asym_crash_recovery_clear(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_ledger *ledger;
    int r = asym_crash_recovery_open(run, &ledger, err);
    if (r < 0)
        return r;
    *ret_ledger = ledger;
    asym_crash_recovery_restore(run, ledger, EARLIER);
    r = asym_speeds_open(run, err);
    if (r < 0)
        return r;
    asym_speeds_restore(run, EARLIER);
    return 0;
}

void asym_crash_recovery_abandon(struct asym_run *run)
{
    struct asym_ledger *ledger = NULL;
    struct asym_error err = {""};
    const int r = asym_crash_recovery_clear(run, &ledger, &err);
    /* An ordinary user cannot open root's directory. That has nothing to do with the error that ends asymd. */
    if (r < 0 && r != -EACCES)
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
    asym_asymmetry_close(ASYM_TAKE(run->asymmetry));
    asym_ledger_close(ledger);
}
