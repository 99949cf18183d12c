/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/oneshot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/command-line.h"
#include "app/crash-recovery.h"
#include "app/machine-check.h"
#include "app/policy-setup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "report/report.h"

static void oneshot_done(struct asym_oneshot *o)
{
    asym_cycle_done(&o->cycle);
    if (o->ledger_overlay)
        o->ledger_overlay->close(o->ledger_overlay);
    asym_observer_close(&o->observer);
}

/* The masks that a running service has set would look like masks that the threads chose. A captured machine has no service. */
static int open_ledger_overlay(struct asym_oneshot *o, struct asym_run *run, struct asym_error *err)
{
    struct asym_error unread = {""};
    char left[160];
    if (!run->root.live)
        return 0;
    if (asym_crash_recovery_left(run->settings->daemon.state_dir, false, left, sizeof left))
        asym_log_say(&run->log, LOG_WARNING, "%s: " ASYM_RESTORE_COMMAND, left);
    int r = asym_ledger_overlay_new(o->observer.source, run->settings->daemon.state_dir, &o->ledger_overlay, &unread);
    if (r < 0)
        return asym_fail(err, r, "no memory to observe");
    if (*unread.text)
        asym_log_say(&run->log, LOG_WARNING,
                     "a mask or nice value that the service has set may count as the thread's own here: %s",
                     unread.text);
    o->observer.source = o->ledger_overlay;
    return 0;
}

/* overlay_ledger: plan as if a running service had set nothing (its ledger says what it has set). Returns 0; -errno with err. */
static int oneshot_init(struct asym_oneshot *o, struct asym_run *run, bool overlay_ledger, struct asym_error *err)
{
    struct asym_engine_config config = asym_run_engine_config(run);
    /* The mode uses only the plan of the last sample, so there is no earlier plan that the swap period could protect. */
    config.enforce.swap_period = 0;
    int r = asym_observer_open(run, &o->observer, err);
    if (r >= 0 && overlay_ledger)
        r = open_ledger_overlay(o, run, err);
    if (r >= 0)
        r = asym_observer_count(&o->observer, run, err);
    if (r < 0)
        return r;
    r = asym_cycle_init(&o->cycle, &config, o->observer.source, asym_actuator_dry());
    return r < 0 ? asym_fail(err, r, "%s", strerror(-r)) : 0;
}

int asym_oneshot_observe(struct asym_oneshot *o, struct asym_run *run, struct asym_error *err)
{
    const struct asym_daemon_settings *d = &run->settings->daemon;
    o->started = asym_clock_now();
    int r = asym_cycle_plan(&o->cycle);
    if (r >= 0)
        r = asym_capabilities_check(o->cycle.snapshot.missing, run->policy, err);
    /* From the first sample on: on a busy machine it may come late, and a sample alone measures nothing. */
    const asym_usec end = asym_clock_now() + d->duration;
    while (r >= 0 && run->root.live) {
        asym_usec now = asym_clock_now();
        if (now >= end)
            break;
        asym_cycle_enforce(&o->cycle);
        /* No short sample at the end: a busy thread may not have run in it, and the plan is that of the last one. */
        asym_clock_sleep(end - now < 2 * d->interval ? end - now : d->interval);
        r = asym_cycle_plan(&o->cycle);
    }
    if (r == -ENODATA)
        return r;
    return r < 0 ? asym_fail(err, r, "cannot observe: %s", strerror(-r)) : 0;
}

/* asymd --once. */

int asym_once_enforce(struct asym_oneshot *o, struct asym_run *run, struct asym_ledger *ledger, struct asym_error *err)
{
    struct asym_actuator *actuator;
    size_t done = 0, refused = 0;
    int r = asym_actuator_linux_new(ledger, &actuator);
    if (r < 0)
        return asym_fail(err, r, "%s", strerror(-r));
    o->cycle.actuator = actuator;
    r = asym_cycle_enforce(&o->cycle);
    for (size_t i = 0; r >= 0 && i < o->cycle.n_actions; i++) {
        done += o->cycle.outcomes[i].kind == ASYM_OUTCOME_DONE;
        refused += o->cycle.outcomes[i].error == -EPERM || o->cycle.outcomes[i].error == -EACCES;
    }
    actuator->close(actuator);
    o->cycle.actuator = asym_actuator_dry();
    if (r < 0)
        return asym_fail(err, r, "cannot write the ledger in %s: %s", run->settings->daemon.state_dir, strerror(-r));
    asym_observer_warn(&run->log, &o->cycle.snapshot);
    printf("steered %zu of %zu threads; asymd --restore undoes this\n", done, o->cycle.n_actions);
    if (refused > 0 && done == 0)
        return asym_fail(err, -EPERM, "not permitted to steer %zu threads: asymd needs CAP_SYS_NICE", refused);
    return 0;
}

static enum asym_exit mode_once(struct asym_run *run)
{
    ASYM_CLEANUP(oneshot_done) struct asym_oneshot o = {0};
    struct asym_ledger *ledger = NULL;
    struct asym_error err = {""};
    /* The masks that an earlier asymd has left would look like masks that the threads chose themselves. */
    int r = asym_crash_recovery_clear(run, &ledger, &err);
    asym_run_check_boost(run);
    if (r >= 0)
        r = oneshot_init(&o, run, false, &err);
    if (r >= 0)
        r = asym_speeds_hold(run, &err);
    if (r >= 0)
        r = asym_oneshot_observe(&o, run, &err);
    if (r >= 0)
        r = asym_once_enforce(&o, run, ledger, &err);
    if (r < 0)
        asym_speeds_restore(run, "not enforced");
    asym_ledger_close(ledger);
    return r < 0 ? asym_mode_fail(run, r, &err) : ASYM_EXIT_DONE;
}

const struct asym_mode_entry asym_mode_once = {
    .name = "--once",
    .help = "observe, enforce one plan, and end; --restore undoes it",
    .run = mode_once,
    .needs = ASYM_NEEDS_SIGNALS,
};

/* asymd --dry-run. */

static enum asym_exit mode_dry_run(struct asym_run *run)
{
    ASYM_CLEANUP(oneshot_done) struct asym_oneshot o = {0};
    struct asym_error err = {""};
    int r = oneshot_init(&o, run, true, &err);
    if (r >= 0)
        r = asym_oneshot_observe(&o, run, &err);
    if (r < 0)
        return asym_mode_fail(run, r, &err);
    uint32_t unread = 0;
    ASYM_AUTO_FREE enum asym_rtxd_detection *detection = run->root.live
                                                             ? asym_machine_check_rtx(&run->root, o.observer.reader,
                                                                                      &o.cycle.snapshot, &unread)
                                                             : NULL;
    o.cycle.snapshot.coverage.n_unread = ASYM_MAX(o.cycle.snapshot.coverage.n_unread, unread);
    const struct asym_report report = {
        .snapshot = &o.cycle.snapshot,
        .plan = o.cycle.plan,
        .policy = run->policy,
        .policy_why = run->policy_why,
        .settings = run->settings,
        .notes = &run->notes,
        .observed_ms = (double)(o.cycle.snapshot.now - o.started) / 1000,
        .scan_cpu_us = (double)o.cycle.source_cpu / (double)o.cycle.n_cycles,
        .detection = detection,
        .assumed_slow = run->assumed_slow,
    };
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    r = run->cli->json ? asym_report_json(&report, stdout) : asym_report_text(&report, &terminal);
    return asym_mode_reported(run, r);
}

const struct asym_mode_entry asym_mode_dry_run = {
    .name = "--dry-run",
    .help = "observe, print one plan, and change nothing",
    .run = mode_dry_run,
    .needs = ASYM_NEEDS_SIGNALS,
};
