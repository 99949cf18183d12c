/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/crash-recovery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/machine-setup.h"
#include "base/macro.h"
#include "base/mask.h"
#include "linux/speed-cap/speed-cap.h"

int asym_speeds_open(struct asym_run *run, struct asym_ledger *ledger, struct asym_error *err)
{
    struct asym_error said = {""};
    int r = asym_speed_cap_open(ledger, asym_speed_methods, &run->speed_cap, &said);
    if (r < 0)
        return asym_fail(err, r, "%s", said.text);
    if (*said.text)
        asym_log_say(&run->log, LOG_WARNING, "%s", said.text);
    return 0;
}

static bool are_equal(const struct asym_caps *a, const struct asym_caps *b)
{
    if (!asym_mask_equal(&a->cpus, &b->cpus))
        return false;
    ASYM_MASK_FOREACH (c, &a->cpus)
        if (a->share[c] < b->share[c] || a->share[c] > b->share[c])
            return false;
    return true;
}

/* Reloads, hotplug and changes of the policy set the same caps again. before: the caps until now. */
static void say_obtained(struct asym_run *run, const struct asym_caps *before)
{
    const struct asym_caps *caps = asym_speed_cap_speeds(run->speed_cap);
    struct asym_mask left = caps->cpus;
    if (are_equal(caps, before))
        return;
    while (!asym_mask_empty(&left)) {
        const double share = caps->share[asym_mask_next(&left, 0)];
        struct asym_mask alike = {0};
        char list[256];
        ASYM_MASK_FOREACH (c, &left)
            if (!(caps->share[c] < share) && !(caps->share[c] > share))
                asym_mask_set(&alike, (unsigned)c);
        asym_log_say(&run->log, LOG_NOTICE, "CPUs %s are held to %.1f %% of their speed",
                     asym_mask_format_list(&alike, list, sizeof list), 100 * share);
        left = asym_mask_minus(&left, &alike);
    }
}

int asym_speeds_hold(struct asym_run *run, struct asym_error *err)
{
    const struct asym_cap_method *method = asym_speed_method(run->settings);
    struct asym_slow_speeds speeds;
    if (!method || asym_mask_empty(&run->slow)) {
        asym_speeds_restore(run, "no longer wanted");
        run->caps = NULL;
        return asym_run_machine(run, false, err);
    }
    const struct asym_caps before = run->caps ? *run->caps : (struct asym_caps){.cpus = {{0}}};
    int r = asym_slow_speeds_parse(run->settings->asymmetry.slow_speed, &speeds);
    if (r >= 0)
        r = asym_speed_cap_set(run->speed_cap, method, run->machine, &run->slow, &speeds, err);
    if (r < 0)
        return r;
    run->caps = asym_speed_cap_speeds(run->speed_cap);
    say_obtained(run, &before);
    return asym_run_machine(run, false, err);
}

bool asym_speeds_update(struct asym_run *run)
{
    struct asym_mask let_go;
    struct asym_error err = {""};
    char list[256];
    if (!run->caps)
        return false;
    bool changed = asym_speed_cap_check(run->speed_cap, &let_go) > 0;
    if (!asym_mask_empty(&let_go))
        asym_log_say(
            &run->log, LOG_NOTICE,
            "another program or a user has changed the speed of CPUs %s: asymd leaves it alone until it is told "
            "to read its configuration or to change its policy, or until CPUs come or go",
            asym_mask_format_list(&let_go, list, sizeof list));
    if (changed && asym_run_machine(run, false, &err) < 0)
        asym_log_say(&run->log, LOG_ERR, "the speed of CPUs changed, and asymd cannot read the machine: %s", err.text);
    return changed;
}

int asym_speeds_restore(struct asym_run *run, const char *when)
{
    struct asym_speed_restore_report report;
    if (!run->speed_cap)
        return 0;
    asym_speed_cap_restore(run->speed_cap, &report);
    if (report.offline > 0)
        asym_log_say(&run->log, LOG_WARNING,
                     "%s: %zu frequency domains are offline. asymd restores their speed when they are online again: "
                     "while it runs, "
                     "at its next start, or by asymd --restore",
                     when, report.offline);
    if (report.restored + report.foreign + report.failed > 0)
        asym_log_say(&run->log, report.failed ? LOG_ERR : LOG_INFO,
                     "%s: restored the speed of %zu frequency domains; %zu skipped: changed by another program or a "
                     "user; %zu failed%s%s",
                     when, report.restored, report.foreign, report.failed, report.failed ? ": " : "",
                     report.failed ? strerror(-report.error) : "");
    return report.failed > 0 ? report.error : 0;
}

void asym_speeds_check(struct asym_check *check, const struct asym_run *run)
{
    if (!run->root.live || run->cli->topology)
        return;
    for (size_t i = 0; asym_speed_methods[i]; i++) {
        char why[160] = "";
        const bool can = asym_speed_methods[i]->probe(asym_speed_methods[i]->ctx,
                                                      asym_mask_next(&run->machine->usable, 0), why, sizeof why) >= 0;
        const bool wanted = asym_speed_method(run->settings) == asym_speed_methods[i];
        asym_check_add(check, "make slower",
                       can      ? ASYM_FACT_GOOD
                       : wanted ? ASYM_FACT_LACK
                                : ASYM_FACT_NOTE,
                       "", "asymmetry.method = %s: %s", asym_speed_methods[i]->name, can ? "can be used here" : why);
    }
}

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
    r = asym_speeds_open(run, ledger, err);
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
    asym_speed_cap_close(ASYM_TAKE(run->speed_cap));
    asym_ledger_close(ledger);
}
