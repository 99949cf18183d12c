/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/leftovers.h"

#include <string.h>

#include "daemon/speeds.h"

#define EARLIER "left by an earlier asymd"

int asym_leftovers_open(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_error said = {""};
    int r = asym_ledger_open(run->settings->daemon.state_dir, ret_ledger, &said);
    if (r < 0)
        return asym_fail(err, r, "%s", said.text);
    if (*said.text)
        asym_log_say(&run->log, LOG_WARNING, "%s", said.text);
    return 0;
}

int asym_leftovers_put_back(struct asym_run *run, struct asym_ledger *ledger, const char *when)
{
    struct asym_restore_report report;
    int r = asym_ledger_restore(ledger, &report);
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s: cannot restore: %s", when, strerror(-r));
        return r;
    }
    if (report.restored + report.heirs + report.foreign + report.failed > 0)
        asym_log_say(&run->log, report.failed ? LOG_ERR : LOG_INFO,
                     "%s: restored %zu threads and %zu that had inherited; %zu belong to somebody else now, %zu failed"
                     "%s%s",
                     when, report.restored, report.heirs, report.foreign, report.failed, report.failed ? ": " : "",
                     report.failed ? strerror(-report.error) : "");
    return report.failed > 0 ? report.error : 0;
}

int asym_leftovers_clear(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err)
{
    struct asym_ledger *ledger;
    int r = asym_leftovers_open(run, &ledger, err);
    if (r < 0)
        return r;
    *ret_ledger = ledger;
    asym_leftovers_put_back(run, ledger, EARLIER);
    r = asym_speeds_open(run, err);
    if (r < 0)
        return r;
    asym_speeds_put_back(run, EARLIER);
    return 0;
}

void asym_leftovers_abandon(struct asym_run *run)
{
    struct asym_ledger *ledger = NULL;
    struct asym_error err = {""};
    if (asym_leftovers_clear(run, &ledger, &err) < 0)
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
    asym_ledger_close(ledger);
}
