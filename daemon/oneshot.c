/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The modes that look once and end: dry run, once, restore, print-config. */
#include "daemon/run.h"
#include "daemon/speeds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/macro.h"
#include "daemon/cycle.h"
#include "daemon/hear.h"
#include "daemon/leftovers.h"
#include "daemon/report.h"
#include "linux/actuator.h"
#include "linux/ledger.h"
#include "linux/monitor.h"
#include "linux/undone.h"

/* What a one-shot mode holds while it observes. */
struct view {
    struct asym_lookout lookout;
    struct asym_source *undone; /* NULL: threads count as they are */
    struct asym_actuator *dry;
    struct asym_engine *engine;
    struct asym_cycle cycle;
    asym_usec started;
};

static void view_done(struct view *v)
{
    asym_cycle_done(&v->cycle);
    asym_engine_free(v->engine);
    if (v->dry)
        v->dry->close(v->dry);
    asym_lookout_close(&v->lookout);
    if (v->undone)
        v->undone->close(v->undone);
}

static int view_init(struct view *v, struct asym_run *run, struct asym_error *err)
{
    struct asym_engine_config config = asym_run_engine_config(run);
    /* One mapping is asked for: the last look's. The swap period spaces mappings, and here there is no other. */
    config.enforce.swap_period = 0;
    int r = asym_run_look(run, 0, &v->lookout, err);
    if (r < 0)
        return r;
    r = asym_engine_new(&config, &v->engine);
    if (r >= 0)
        r = asym_actuator_dry_new(&v->dry);
    if (r < 0)
        return asym_fail(err, r, "%s", strerror(-r));
    v->cycle = (struct asym_cycle){
        .source = v->lookout.source, .monitor = v->lookout.source, .actuator = v->dry, .engine = v->engine};
    v->started = asym_run_now();
    return 0;
}

static void sleep_for(asym_usec t)
{
    struct timespec left = {.tv_sec = (time_t)(t / ASYM_SEC), .tv_nsec = (long)(t % ASYM_SEC) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

/* Look every interval until the duration is over; leaves the last plan unenforced in the cycle. */
static int observe(struct view *v, struct asym_run *run, struct asym_error *err)
{
    const struct asym_daemon_settings *d = &run->settings->daemon;
    int r = asym_cycle_plan(&v->cycle);
    if (r >= 0)
        r = asym_signals_check(v->cycle.snapshot.missing, run->policy, err);
    asym_usec end = v->started + d->duration;
    while (r >= 0 && run->root.live) {
        asym_usec now = asym_run_now();
        if (now >= end)
            break;
        asym_cycle_enforce(&v->cycle);
        sleep_for(ASYM_MIN(d->interval, end - now));
        r = asym_cycle_plan(&v->cycle);
    }
    if (r == -ENODATA)
        return r;
    return r < 0 ? asym_fail(err, r, "cannot observe: %s", strerror(-r)) : 0;
}

static enum asym_exit fail(const struct asym_run *run, int error, const struct asym_error *err)
{
    asym_log_say(&run->log, LOG_ERR, "%s", err->text);
    return asym_run_exit(error);
}

/* What a service that runs beside has set would look like everybody's own choice. It steers no captured machine. */
static int look_past_service(struct view *v, struct asym_run *run, struct asym_error *err)
{
    struct asym_error unread = {""};
    if (!run->root.live)
        return 0;
    int r = asym_undone_source_new(v->lookout.procfs, run->settings->daemon.state_dir, &v->undone, &unread);
    if (r < 0)
        return asym_fail(err, r, "no memory to observe");
    if (*unread.text)
        asym_log_say(&run->log, LOG_WARNING,
                     "masks and nice values that asymd has set may count as the threads' own: %s", unread.text);
    asym_monitor_set_source(v->lookout.source, v->undone);
    return 0;
}

enum asym_exit asym_mode_dry_run(struct asym_run *run)
{
    ASYM_CLEANUP(view_done) struct view v = {0};
    struct asym_error err = {""};
    int r = view_init(&v, run, &err);
    if (r >= 0)
        r = look_past_service(&v, run, &err);
    if (r >= 0)
        r = observe(&v, run, &err);
    if (r < 0)
        return fail(run, r, &err);
    uint32_t unread = 0;
    ASYM_AUTO_FREE enum asym_speech *speech = run->root.live ? asym_hear(&v.lookout, &v.cycle.snapshot, &unread) : NULL;
    v.cycle.snapshot.sight.n_unread = ASYM_MAX(v.cycle.snapshot.sight.n_unread, unread);
    const struct asym_report report = {
        .snapshot = &v.cycle.snapshot,
        .plan = v.cycle.plan,
        .policy = run->policy,
        .policy_why = run->policy_why,
        .settings = run->settings,
        .notes = &run->notes,
        .observed_ms = (double)(v.cycle.snapshot.now - v.started) / 1000,
        .scan_cpu_us = (double)v.cycle.source_cpu / (double)v.cycle.n_turns,
        .speech = speech,
        .assumed_slow = run->assumed_slow,
    };
    r = run->cli->json ? asym_report_json(&report, stdout)
                       : asym_report_text(&report, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
    if (r < 0 || fflush(stdout) != 0)
        return fail(run, -EIO, (asym_fail(&err, -EIO, "cannot write the report"), &err));
    return ASYM_EXIT_DONE;
}

/* Enforce the plan that the cycle holds. Says how it went. */
static int enforce_once(struct view *v, struct asym_run *run, struct asym_ledger *ledger, struct asym_error *err)
{
    struct asym_actuator *actuator;
    size_t done = 0, refused = 0;
    int r = asym_actuator_linux_new(ledger, &actuator);
    if (r < 0)
        return asym_fail(err, r, "%s", strerror(-r));
    v->cycle.actuator = actuator;
    r = asym_cycle_enforce(&v->cycle);
    for (size_t i = 0; r >= 0 && i < v->cycle.n_actions; i++) {
        done += v->cycle.outcomes[i].verdict == ASYM_VERDICT_DONE;
        refused += v->cycle.outcomes[i].error == -EPERM || v->cycle.outcomes[i].error == -EACCES;
    }
    actuator->close(actuator);
    v->cycle.actuator = v->dry;
    if (r < 0)
        return asym_fail(err, r, "cannot write the ledger in %s: %s", run->settings->daemon.state_dir, strerror(-r));
    asym_run_warn(run, &v->cycle.snapshot);
    printf("steered %zu of %zu threads; asymd --restore puts them back\n", done, v->cycle.n_actions);
    if (refused > 0 && done == 0)
        return asym_fail(err, -EPERM, "not permitted to steer %zu threads: CAP_SYS_NICE is needed", refused);
    return 0;
}

enum asym_exit asym_mode_once(struct asym_run *run)
{
    ASYM_CLEANUP(view_done) struct view v = {0};
    struct asym_ledger *ledger = NULL;
    struct asym_error err = {""};
    /* What one before it has set would look like everybody's own choice. */
    int r = asym_leftovers_clear(run, &ledger, &err);
    asym_run_check_boost(run);
    if (r >= 0)
        r = view_init(&v, run, &err);
    if (r >= 0)
        r = asym_speeds_hold(run, &err);
    if (r >= 0)
        r = observe(&v, run, &err);
    if (r >= 0)
        r = enforce_once(&v, run, ledger, &err);
    if (r < 0)
        asym_speeds_put_back(run, "not enforced");
    asym_ledger_close(ledger);
    return r < 0 ? fail(run, r, &err) : ASYM_EXIT_DONE;
}

enum asym_exit asym_mode_restore(struct asym_run *run)
{
    struct asym_ledger *ledger;
    struct asym_restore_report report;
    struct asym_error err = {""};
    int r = asym_leftovers_open(run, &ledger, &err);
    if (r < 0)
        return fail(run, r, &err);
    r = asym_ledger_restore(ledger, &report);
    int speeds = asym_speeds_open(run, &err);
    if (speeds < 0)
        asym_log_say(&run->log, LOG_ERR, "speeds of CPUs: %s", err.text);
    else
        speeds = asym_speeds_put_back(run, "restore");
    asym_ledger_close(ledger);
    if (r < 0)
        return fail(run, r, (asym_fail(&err, r, "cannot restore: %s", strerror(-r)), &err));
    printf("restored %zu threads and %zu that had inherited; %zu are gone, %zu belong to somebody else now\n",
           report.restored, report.heirs, report.gone, report.foreign);
    if (report.failed > 0) {
        asym_log_say(&run->log, LOG_ERR, "%zu threads could not be restored and stay in the ledger: %s", report.failed,
                     strerror(-report.error));
        return asym_run_exit(report.error) == ASYM_EXIT_NOT_PERMITTED ? ASYM_EXIT_NOT_PERMITTED : ASYM_EXIT_FAILED;
    }
    return speeds < 0 ? ASYM_EXIT_FAILED : ASYM_EXIT_DONE;
}

enum asym_exit asym_mode_print_config(struct asym_run *run)
{
    struct asym_error err = {""};
    int r = asym_settings_print(run->settings, stdout);
    if (r < 0 || fflush(stdout) != 0)
        return fail(run, -EIO, (asym_fail(&err, -EIO, "cannot write the configuration"), &err));
    return ASYM_EXIT_DONE;
}
