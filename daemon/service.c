/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The service: an sd-event loop around the cycle, a watchdog, reload, its own CPU budget, and everything put back. */
#include "daemon/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "base/macro.h"
#include "base/mask.h"
#include "daemon/aside.h"
#include "daemon/budget.h"
#include "daemon/cycle.h"
#include "daemon/leftovers.h"
#include "daemon/outcomes.h"
#include "daemon/rtx.h"
#include "daemon/speeds.h"
#include "daemon/watch.h"
#include "linux/actuator.h"
#include "linux/ledger.h"
#include "linux/monitor.h"
#include "linux/procfs.h"

/* How often the status line, the budget and the CPUs are looked after. */
#define HOUSEKEEPING ASYM_SEC

/*
 * A look that takes longer is cut into pieces: in between the loop takes signals and tells the watchdog that it lives, however
 * many processes there are.
 */
#define PIECE      (100 * ASYM_MSEC)
#define PIECE_REST (5 * ASYM_MSEC)

/* Share of the CPU budget, beside that of looking, that taking births may cost. Looking less often would not make it cheaper. */
#define GUARD_SHARE 2.0

struct service {
    struct asym_run *run;
    sd_event *event;
    sd_event_source *timer;
    struct asym_ledger *ledger;
    struct asym_lookout lookout;
    struct asym_rtx *rtx; /* NULL: programs are not listened to */
    struct asym_actuator *actuator;
    struct asym_engine *engine;
    struct asym_cycle cycle;
    struct asym_budget budget;
    asym_usec last_housekeeping;
    size_t n_hangs;           /* of the reader, as last told */
    size_t n_changes;         /* threads changed since the start */
    char reload_error[256];   /* why the configuration on disk is not in force; "" when it is */
    struct asym_watch *watch; /* NULL: no udev */
    int error;
    bool looking;      /* a look is under way */
    bool apply_failed; /* said already */
    bool lost_said;
    bool births_said;
    bool cpus_failed;
    struct asym_aside aside;
    uint64_t abilities; /* of CPUs, by others' doing; asym_watch_abilities */
};

static void service_done(struct service *s)
{
    /* The source and the guard stop before the ledger they use is closed. */
    if (s->actuator)
        s->actuator->close(s->actuator);
    asym_rtx_free(s->rtx);
    asym_lookout_close(&s->lookout);
    asym_engine_free(s->engine);
    asym_cycle_done(&s->cycle);
    asym_ledger_close(s->ledger);
    asym_watch_free(s->watch);
    sd_event_source_unref(s->timer);
    sd_event_unref(s->event);
}

/* A ledger that cannot be written (full, removed) means that nothing may be changed: say so once, go on looking. */
static void report_apply(struct service *s, int r)
{
    if (r < 0 && !s->apply_failed)
        asym_log_say(&s->run->log, LOG_ERR, "cannot write the ledger in %s, so nothing is steered: %s",
                     s->run->settings->daemon.state_dir, strerror(-r));
    if (r >= 0 && s->apply_failed)
        asym_log_say(&s->run->log, LOG_NOTICE, "the ledger can be written again");
    s->apply_failed = r < 0;
}

/* Once: in a storm they are lost at every turn. */
static void report_lost(struct service *s)
{
    if (s->cycle.snapshot.sight.n_lost_events > 0 && !s->lost_said)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "processes come and go faster than the kernel can tell: some events were lost, and everything is "
                     "looked at anew");
    s->lost_said |= s->cycle.snapshot.sight.n_lost_events > 0;
}

/* The guard has gone with them; looking goes on. */
static void report_births(struct service *s)
{
    if (s->lookout.births && !s->cycle.snapshot.sight.births && !s->births_said)
        asym_log_say(
            &s->run->log, LOG_ERR,
            "births are no longer told by the kernel: %s; children of steered threads are repaired by the next "
            "scan only",
            s->cycle.snapshot.sight.births_why);
    s->births_said |= !s->cycle.snapshot.sight.births;
}

/* Another process may have removed the file or its directory, and after a kill -9 --restore needs it. */
static void mind_ledger(struct service *s)
{
    const int r = asym_ledger_tend(s->ledger);
    if (r > 0)
        asym_log_say(
            &s->run->log, LOG_WARNING,
            "another process has removed or changed the ledger in %s: asymd has written it anew, with %zu threads",
            s->run->settings->daemon.state_dir, asym_ledger_count(s->ledger));
    report_apply(s, r);
}

/* -EINPROGRESS: the look is not complete, and the next call goes on. */
static int turn(struct service *s)
{
    int r = asym_cycle_plan(&s->cycle);
    s->looking = r == -EINPROGRESS;
    if (r < 0)
        return r;
    report_lost(s);
    report_births(s);
    asym_aside_mind(&s->aside, s->run->machine, s->cycle.plan);
    r = asym_cycle_enforce(&s->cycle);
    /* A cycle without actions writes no record, and so does not show that one can be written. */
    if (s->cycle.n_actions > 0)
        report_apply(s, r);
    if (r != -ENOMEM)
        s->n_changes += asym_outcomes_log(&s->run->log, s->run->policy->name, &s->cycle);
    return 0;
}

static void report_hangs(struct service *s)
{
    const size_t n = asym_proc_reader_hangs(s->lookout.reader);
    if (n > s->n_hangs)
        asym_log_say(
            &s->run->log, LOG_NOTICE,
            "the memory map or the command line of a process could not be read in time, %zu times so far: it is left "
            "alone while it has one thread",
            n);
    s->n_hangs = n;
}

static asym_usec interval_in_force(const struct service *s)
{
    return (asym_usec)((double)s->run->settings->daemon.interval * s->budget.stretch);
}

/* Of asymd and of the helper that reads for it. */
static asym_usec cpu_time(const struct service *s)
{
    return asym_run_cpu_time() + asym_proc_reader_spent(s->lookout.reader);
}

static void mind_budget(struct service *s, asym_usec now)
{
    const double allowed = s->run->settings->daemon.cpu_budget;
    const asym_usec guard = s->lookout.births ? asym_births_spent(s->lookout.births) : 0;
    asym_proc_reader_set(s->lookout.reader, allowed * ASYM_RUN_READING_SHARE);
    if (s->lookout.births)
        asym_births_limit(s->lookout.births, allowed * GUARD_SHARE);
    switch (asym_budget_update(&s->budget, allowed, now, cpu_time(s), asym_rtx_spent(s->rtx) + guard)) {
    case ASYM_BUDGET_EXCEEDED:
        asym_log_say(&s->run->log, LOG_NOTICE, "used %.2f %% of a CPU, above the budget of %.2f %%: looking less often",
                     s->budget.percent, allowed);
        break;
    case ASYM_BUDGET_KEPT_AGAIN:
        asym_log_say(&s->run->log, LOG_INFO, "within the CPU budget again: looking every %.0f ms",
                     (double)s->run->settings->daemon.interval / 1000);
        break;
    case ASYM_BUDGET_SAME:
        break;
    }
}

/* What has come back is held again, or put back; what is asked for and was not there is held now. Then auto may differ. */
static void mind_speeds(struct service *s)
{
    struct asym_error err = {""};
    const struct asym_policy *before = s->run->policy;
    asym_speeds_mind(s->run);
    int r = asym_speeds_hold(s->run, &err);
    if (r >= 0)
        r = asym_run_policy(s->run, &err);
    if (r >= 0 && s->run->policy != before) {
        const struct asym_engine_config config = asym_run_engine_config(s->run);
        r = asym_engine_configure(s->engine, &config);
        asym_log_say(&s->run->log, LOG_NOTICE, "policy %s: %s", s->run->policy->name, s->run->policy_why);
    }
    if (r < 0)
        asym_log_say(&s->run->log, LOG_ERR, "CPUs changed: %s", *err.text ? err.text : strerror(-r));
    /* Profiles have been read anew. */
    asym_procfs_set_rules(s->lookout.procfs, s->run->settings->rules);
}

/* CPUs that came or went: read the machine anew; the engine sees the new generation and plans at the next turn. */
static void mind_cpus(struct service *s)
{
    char usable[256];
    struct asym_error err = {""};
    const uint64_t abilities = asym_watch_abilities(&s->run->root);
    const bool others = s->abilities != abilities;
    if (!asym_watch_changed(&s->run->root, s->run->machine) && !others)
        return;
    s->abilities = abilities;
    if (asym_run_machine_changed(s->run, &err) < 0) {
        if (!s->cpus_failed)
            asym_log_say(&s->run->log, LOG_ERR, "CPUs changed, and the machine cannot be read: %s", err.text);
        s->cpus_failed = true;
        return;
    }
    s->cpus_failed = false;
    mind_speeds(s);
    if (others)
        asym_log_say(&s->run->log, LOG_NOTICE, "what CPUs can do has changed: boost, driver or maximum");
    asym_log_say(&s->run->log, LOG_NOTICE, "the CPUs that may be used are now %s",
                 asym_mask_format_list(&s->run->machine->usable, usable, sizeof usable));
}

static void on_cpus(void *userdata)
{
    mind_cpus(userdata);
}

static void status(const struct service *s)
{
    const struct asym_machine *m = s->run->machine;
    sd_notifyf(0,
               "STATUS=policy %s on %u fast and %u slow CPUs%s; %zu threads steered, %zu changes, %zu program%s; "
               "%.2f %% CPU every %.0f ms%s%s",
               s->run->policy->name, asym_mask_count(&m->fast), asym_mask_count(&m->slow),
               s->run->assumed_slow ? " (assumed)" : "", asym_ledger_count(s->ledger), s->n_changes,
               asym_rtx_count(s->rtx), asym_rtx_count(s->rtx) == 1 ? " speaks" : "s speak", s->budget.percent,
               (double)interval_in_force(s) / 1000, *s->reload_error ? "; the new configuration is bad: " : "",
               s->reload_error);
}

static void housekeeping(struct service *s, asym_usec now)
{
    if (now - s->last_housekeeping < HOUSEKEEPING)
        return;
    mind_budget(s, now);
    mind_ledger(s);
    mind_cpus(s);
    asym_speeds_mind(s->run);
    if (s->rtx)
        asym_rtx_tend(s->rtx, now);
    report_hangs(s);
    asym_log_tend(&s->run->log, now);
    s->last_housekeeping = now;
    status(s);
}

static int give_up(struct service *s, int error)
{
    s->error = error;
    return sd_event_exit(s->event, ASYM_EXIT_FAILED);
}

/* Between two looks, as a program has told of a phase. While one is under way, it is soon over. */
static int prompt_turn(void *userdata)
{
    struct service *s = userdata;
    int r = s->looking ? 0 : turn(s);
    return r < 0 && r != -EINPROGRESS ? give_up(s, r) : 0;
}

static int on_timer(sd_event_source *timer, uint64_t usec, void *userdata)
{
    struct service *s = userdata;
    (void)usec;
    asym_rtx_look_begins(s->rtx);
    int r = turn(s);
    asym_rtx_look_ends(s->rtx);
    if (r < 0 && r != -EINPROGRESS)
        return give_up(s, r);
    asym_usec now = asym_run_now();
    housekeeping(s, now);
    /* From now, not from when it was due: a machine that was suspended or starved is not looked at in a burst. */
    r = sd_event_source_set_time(timer, now + (s->looking ? PIECE_REST : interval_in_force(s)));
    return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* To what could be had before; what cannot be had again is said. */
static void go_back(struct service *s, struct asym_settings *old, const struct asym_policy *policy, const char *why)
{
    struct asym_error err = {""};
    s->run->settings = old;
    int r = asym_run_machine(s->run, &err);
    if (r >= 0)
        r = asym_signals_read(&s->run->signals, &s->run->root, s->run->machine, old, &err);
    if (r >= 0)
        r = asym_speeds_hold(s->run, &err);
    if (r < 0)
        asym_log_say(&s->run->log, LOG_ERR, "the configuration in force: %s", err.text);
    /* Whatever auto would come to now: the engine goes on with what it runs. */
    s->run->policy = policy;
    s->run->policy_why = why;
    /* The profiles, which processes point to, may have been read anew. */
    asym_procfs_set_rules(s->lookout.procfs, old->rules);
}

/* What the new settings want of the machine, of what can be measured, and of the engine. */
static int put_in_force(struct service *s, struct asym_counters **ret_counters, struct asym_error *err)
{
    int r = asym_run_machine(s->run, err);
    if (r >= 0)
        r = asym_run_policy(s->run, err);
    if (r >= 0)
        r = asym_signals_check(s->run->signals.missing, s->run->policy, err);
    if (r >= 0)
        r = asym_speeds_hold(s->run, err);
    if (r >= 0)
        r = asym_signals_counters(&s->run->signals, s->run->settings, ret_counters, err);
    if (r < 0)
        return r;
    asym_run_check_boost(s->run);
    const struct asym_engine_config config = asym_run_engine_config(s->run);
    r = asym_engine_configure(s->engine, &config);
    if (r < 0 && *ret_counters)
        (*ret_counters)->close(*ret_counters);
    return r < 0 ? asym_fail(err, r, "no memory for the new configuration") : 0;
}

/* On any failure the old ones stay. */
static int adopt(struct service *s, struct asym_settings *fresh, struct asym_error *err)
{
    struct asym_settings *old = s->run->settings;
    const struct asym_policy *policy = s->run->policy;
    const char *why = s->run->policy_why;
    struct asym_counters *counters = NULL;
    if (strcmp(fresh->daemon.state_dir, old->daemon.state_dir) != 0)
        return asym_fail(err, -EINVAL, "asymd.state_dir cannot change while asymd runs: restart it");
    if (fresh->rtx.listen != old->rtx.listen)
        return asym_fail(err, -EINVAL, "rtx.listen cannot change while asymd runs: restart it");
    s->run->settings = fresh;
    int r = put_in_force(s, &counters, err);
    if (r < 0) {
        go_back(s, old, policy, why);
        return r;
    }
    asym_procfs_set_rules(s->lookout.procfs, fresh->rules);
    asym_procfs_set_group(s->lookout.procfs, (enum asym_grouping)fresh->daemon.group);
    asym_monitor_set(s->lookout.source, counters, s->run->signals.missing);
    asym_settings_free(old);
    return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
    struct service *s = userdata;
    struct asym_settings *fresh = NULL;
    struct asym_error err = {""};
    (void)source;
    (void)info;
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)asym_run_now());
    int r = asym_run_settings(s->run->cli, &fresh, &err);
    if (r >= 0) {
        r = adopt(s, fresh, &err);
        if (r < 0)
            asym_settings_free(fresh);
    }
    snprintf(s->reload_error, sizeof s->reload_error, "%.255s", r < 0 ? err.text : "");
    if (r < 0)
        asym_log_say(&s->run->log, LOG_ERR, "%s; the configuration in force stays", err.text);
    else
        asym_log_say(&s->run->log, LOG_NOTICE, "configuration read again, policy %s%s%s", s->run->policy->name,
                     s->run->policy_why ? "; chosen by auto: " : "", s->run->policy_why ? s->run->policy_why : "");
    sd_notify(0, "READY=1");
    status(s);
    return 0;
}

static int add_sources(struct service *s)
{
    static const int ends[] = {SIGTERM, SIGINT};
    int r = sd_event_default(&s->event);
    for (size_t i = 0; r >= 0 && i < ASYM_LENGTH(ends); i++)
        r = sd_event_add_signal(s->event, NULL, ends[i], NULL, NULL);
    if (r >= 0)
        r = sd_event_add_signal(s->event, NULL, SIGHUP, on_reload, s);
    if (r >= 0)
        r = sd_event_add_time(s->event, &s->timer, CLOCK_MONOTONIC, asym_run_now(), ASYM_MSEC, on_timer, s);
    if (r >= 0 && s->rtx)
        r = asym_rtx_attach(s->rtx, s->event, prompt_turn, s);
    if (r >= 0)
        r = sd_event_set_watchdog(s->event, true);
    if (r >= 0 && asym_watch_new(s->event, on_cpus, s, &s->watch) < 0)
        s->watch = NULL; /* housekeeping asks, every second */
    return r < 0 ? r : 0;
}

/* Before any thread starts: sd-event takes signals from a signalfd, so every thread has to block them. */
static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Kept descriptors are what makes a scan cheap; the soft limit is there for programs that use select(2). */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int start_guard(struct service *s, struct asym_error *err)
{
    bool realtime;
    if (!s->lookout.births) {
        asym_log_say(&s->run->log, LOG_WARNING,
                     "no events of births: children of steered threads are repaired by the next scan only");
        return 0;
    }
    int r = asym_births_watch(s->lookout.births, asym_guard_on_birth, s->ledger, &realtime);
    if (r < 0)
        return asym_fail(err, r, "cannot start the guard thread: %s", strerror(-r));
    if (!realtime)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "the guard has no real-time priority (CAP_SYS_NICE): more first children inherit a narrowed mask");
    return 0;
}

/* Steering goes on without. */
static void start_rtx(struct service *s)
{
    struct asym_error err = {""};
    if (!s->run->settings->rtx.listen)
        return;
    if (asym_rtx_new(s->run, s->lookout.procfs, &s->rtx, &err) < 0)
        asym_log_say(&s->run->log, LOG_WARNING, "programs cannot say what their threads do: %s", err.text);
    else
        asym_monitor_set_source(s->lookout.source, asym_rtx_source(s->rtx));
}

static int set_up(struct service *s, struct asym_error *err)
{
    asym_run_check_boost(s->run);
    const struct asym_engine_config config = asym_run_engine_config(s->run);
    raise_descriptor_limit();
    int r = asym_leftovers_clear(s->run, &s->ledger, err);
    if (r >= 0)
        r = asym_speeds_hold(s->run, err);
    if (r >= 0)
        r = asym_run_look(s->run, PIECE, &s->lookout, err);
    if (r >= 0)
        r = start_guard(s, err);
    if (r < 0)
        return r;
    start_rtx(s);
    r = asym_actuator_linux_new(s->ledger, &s->actuator);
    if (r >= 0)
        r = asym_engine_new(&config, &s->engine);
    if (r >= 0)
        r = add_sources(s);
    if (r < 0)
        return asym_fail(err, r, "%s", strerror(-r));
    s->cycle = (struct asym_cycle){
        .source = s->lookout.source,
        .procfs = s->lookout.procfs,
        .monitor = s->lookout.source,
        .actuator = s->actuator,
        .engine = s->engine,
    };
    do
        r = turn(s);
    while (r == -EINPROGRESS);
    if (r < 0)
        return asym_fail(err, r, "cannot observe: %s", strerror(-r));
    asym_run_warn(s->run, &s->cycle.snapshot);
    s->abilities = asym_watch_abilities(&s->run->root);
    if (asym_aside_init(&s->aside) >= 0)
        asym_aside_mind(&s->aside, s->run->machine, s->cycle.plan);
    s->last_housekeeping = asym_run_now();
    asym_budget_init(&s->budget, s->last_housekeeping, cpu_time(s));
    return asym_signals_check(s->cycle.snapshot.missing, config.policy, err);
}

static void greet(const struct service *s)
{
    const struct asym_machine *m = s->run->machine;
    char fast[256], slow[256];
    if (s->run->policy_why)
        asym_log_say(&s->run->log, LOG_INFO, "auto: %s", s->run->policy_why);
    asym_log_say(&s->run->log, LOG_INFO, "policy %s; fast CPUs %s, slow CPUs %s%s", s->run->policy->name,
                 asym_mask_format_list(&m->fast, fast, sizeof fast),
                 asym_machine_is_asymmetric(m) ? asym_mask_format_list(&m->slow, slow, sizeof slow) : "none",
                 s->run->assumed_slow ? " (taken for slow as configured; asymd has not made them so)" : "");
}

enum asym_exit asym_mode_service(struct asym_run *run)
{
    ASYM_CLEANUP(service_done) struct service s = {.run = run};
    struct asym_error err = {""};
    if (!run->root.live || run->cli->topology) {
        asym_log_say(&run->log, LOG_ERR,
                     "--root and --topology are for --dry-run and --check: a captured machine cannot be steered");
        return ASYM_EXIT_USAGE;
    }
    block_signals();
    int r = set_up(&s, &err);
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "%s", err.text);
        asym_births_close(ASYM_TAKE(s.lookout.births)); /* as at the stop */
        if (s.ledger)
            asym_leftovers_put_back(run, s.ledger, "not started");
        asym_speeds_put_back(run, "not started");
        return asym_run_exit(r);
    }
    greet(&s);
    sd_notify(0, "READY=1");
    status(&s);
    int exit_status = sd_event_loop(s.event);
    sd_notify(0, "STOPPING=1");
    /* No more events may reach the guard while it is put back what it would read. */
    asym_births_close(ASYM_TAKE(s.lookout.births));
    r = asym_leftovers_put_back(run, s.ledger, "stopped");
    int speeds = asym_speeds_put_back(run, "stopped");
    if (s.error < 0)
        asym_log_say(&run->log, LOG_ERR, "stopped looking: %s", strerror(-s.error));
    return exit_status != 0 || r < 0 || speeds < 0 ? ASYM_EXIT_FAILED : ASYM_EXIT_DONE;
}
