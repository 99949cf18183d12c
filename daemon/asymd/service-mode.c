/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The service: set up, run an sd-event loop around the cycle, restore everything. */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "app/crash-recovery.h"
#include "app/policy-setup.h"
#include "daemon/asymd/mode.h"

static void service_done(struct asym_service *s)
{
    s->notify.watchdog = sd_event_source_disable_unref(s->notify.watchdog);
    asym_service_bus_close(s);
    /* The source and the guard stop before the ledger they use is closed. */
    if (s->actuator)
        s->actuator->close(s->actuator);
    asym_service_control_close(s);
    asym_rtx_service_free(s->rtx);
    asym_service_waits_close(s);
    asym_prompt_remove(&s->phases.asker);
    asym_observer_close(&s->observer);
    asym_rivals_free(s->rivals_look);
    asym_check_done(&s->rivals);
    asym_cycle_done(&s->cycle);
    asym_ledger_close(s->ledger);
    sd_event_source_unref(s->timer);
    sd_event_source_unref(s->housekeeping);
    sd_event_unref(s->event);
}

/* A scan is cheap because descriptors stay open. The soft limit exists for programs that use select(2). */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int start_guard(struct asym_service *s, struct asym_error *err)
{
    bool realtime;
    if (!s->observer.process_events) {
        asym_log_say(&s->run->log, LOG_WARNING,
                     "no process events: only the next scan repairs the masks of children of steered threads");
        return 0;
    }
    int r = asym_process_events_watch(s->observer.process_events, asym_fork_guard_on_event, s->ledger, &realtime);
    if (r < 0)
        return asym_fail(err, r, "cannot start the fork guard: %s", strerror(-r));
    if (!realtime)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "without CAP_SYS_NICE asymd widens the masks of new processes later: its fork guard has no "
                     "real-time priority");
    return 0;
}

/* Without RTX the service still steers. */
static void start_rtx(struct asym_service *s)
{
    struct asym_error err = {""};
    if (!s->run->settings->rtx.listen)
        return;
    if (asym_rtx_service_new(s->run, s->observer.source, &s->rtx, &err) < 0)
        asym_log_say(&s->run->log, LOG_WARNING, "programs cannot report what their threads do: %s", err.text);
    else
        s->observer.source = asym_rtx_service_source(s->rtx);
}

/* Opens the links from the inside out. The fork guard starts before asymd steers any thread. */
static int open_observer(struct asym_service *s, struct asym_error *err)
{
    int r = asym_observer_open(s->run, &s->observer, err);
    if (r >= 0 && *s->observer.without)
        asym_log_say(&s->run->log, LOG_NOTICE, "asymd observes without %s", s->observer.without);
    if (r >= 0)
        r = start_guard(s, err);
    if (r < 0)
        return r;
    start_rtx(s);
    r = asym_observer_count(&s->observer, s->run, err);
    if (r < 0)
        return r;
    r = asym_service_control_open(s);
    return r < 0 ? asym_fail(err, r, "no memory to observe") : 0;
}

/* Runs before asymd reports READY: only a snapshot shows whether the policy can run. */
static int run_first_cycle(struct asym_service *s, struct asym_error *err)
{
    int r;
    do
        r = asym_service_cycle(s);
    while (r == -EINPROGRESS);
    if (r < 0)
        return asym_fail(err, r, "cannot observe: %s", strerror(-r));
    asym_observer_warn(&s->run->log, &s->cycle.snapshot);
    s->abilities = asym_watch_abilities(&s->run->root);
    asym_watch_read_facts(&s->cpu_facts, &s->run->root, &s->run->machine->online, asym_clock_now());
    if (asym_self_affinity_init(&s->self_affinity) >= 0)
        asym_self_affinity_update(&s->self_affinity, s->run->machine, &s->cycle.snapshot, s->cycle.plan);
    asym_budget_init(&s->budget, asym_clock_now(), asym_service_cpu_time(s));
    return asym_capabilities_check(s->cycle.snapshot.missing, s->run->policy, err);
}

static int set_up(struct asym_service *s, struct asym_error *err)
{
    asym_run_check_boost(s->run);
    const struct asym_engine_config config = asym_run_engine_config(s->run);
    raise_descriptor_limit();
    int r = asym_crash_recovery_clear(s->run, &s->ledger, err);
    if (r >= 0)
        r = asym_speeds_hold(s->run, err);
    if (r >= 0)
        r = open_observer(s, err);
    if (r < 0)
        return r;
    r = asym_actuator_linux_new(s->ledger, &s->actuator);
    if (r >= 0)
        r = asym_cycle_init(&s->cycle, &config, s->observer.source, s->actuator);
    if (r >= 0)
        r = asym_service_attach(s);
    return r < 0 ? asym_fail(err, r, "%s", strerror(-r)) : run_first_cycle(s, err);
}

static void log_start(const struct asym_service *s)
{
    const struct asym_machine *m = s->run->machine;
    char fast[256], slow[256];
    if (s->run->policy_why)
        asym_log_say(&s->run->log, LOG_INFO, "policy chosen by auto: %s", s->run->policy_why);
    asym_log_say(&s->run->log, LOG_INFO, "policy %s; fast CPUs %s, slow CPUs %s%s", s->run->policy->name,
                 asym_mask_format_list(&m->fast, fast, sizeof fast),
                 asym_machine_is_asymmetric(m) ? asym_mask_format_list(&m->slow, slow, sizeof slow) : "none",
                 s->run->assumed_slow ? " (--slow or the configuration calls them slow; asymd has not slowed them)"
                                      : "");
    asym_service_log_rules(s);
}

static enum asym_exit mode_service(struct asym_run *run)
{
    ASYM_CLEANUP(service_done) struct asym_service s = {.run = run};
    struct asym_error err = {""};
    if (!run->root.live || run->cli->topology) {
        asym_log_say(&run->log, LOG_ERR,
                     "--root and --topology are for --dry-run and --check: asymd cannot steer a captured machine");
        return ASYM_EXIT_USAGE;
    }
    asym_service_block_signals();
    asym_log_sink_nonblocking(run->log.sink);
    int r = set_up(&s, &err);
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        asym_process_events_close(ASYM_TAKE(s.observer.process_events)); /* the fork guard ends first, as at the stop */
        if (s.ledger)
            asym_crash_recovery_restore(run, s.ledger, "not started");
        asym_speeds_restore(run, "not started");
        return asym_exit_status(r);
    }
    log_start(&s);
    asym_service_bus_open(&s);
    asym_notify_state(&s.notify, "READY=1");
    asym_service_status(&s);
    int exit_status = asym_service_loop(&s);
    asym_notify_state(&s.notify, "STOPPING=1");
    asym_service_bus_close(&s);
    /* The fork guard reads the ledger, so it must end before asymd restores what the ledger records. */
    asym_process_events_close(ASYM_TAKE(s.observer.process_events));
    r = asym_crash_recovery_restore(run, s.ledger, "stopped");
    int speeds = asym_speeds_restore(run, "stopped");
    if (exit_status < 0)
        asym_log_say(&run->log, LOG_ERR, "the event loop has failed: %s", strerror(-exit_status));
    if (s.error < 0)
        asym_log_say(&run->log, LOG_ERR, "asymd cannot observe any more: %s", strerror(-s.error));
    return exit_status != 0 || r < 0 || speeds < 0 ? ASYM_EXIT_FAILED : ASYM_EXIT_DONE;
}

const struct asym_mode_entry asym_mode_service = {
    .name = "--service",
    .help = "steer until SIGINT or SIGTERM, then restore everything",
    .run = mode_service,
    .needs = ASYM_NEEDS_SIGNALS,
    .failure = ASYM_FAILURE_RESTORES,
};
