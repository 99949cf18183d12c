/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The work of the service every second: the ledger, the CPUs, the bus, the status line; and the CPU budget. */
#include "daemon/asymd/service-internal.h"

#include "app/crash-recovery.h"

/* The shortest period of the CPU budget. A longer interval makes it longer: a sample belongs to the whole time until the next. */
#define BUDGET_PERIOD ASYM_SEC

/* The fork guard may use this share of the CPU budget in addition. A longer interval would not make the guard cheaper. */
#define GUARD_SHARE 2.0

/* Another process may have removed the file or its directory, but --restore needs it after a kill -9. */
static void update_ledger(struct asym_service *s)
{
    const int r = asym_ledger_housekeeping(s->ledger);
    if (r > 0)
        asym_log_say(
            &s->run->log, LOG_WARNING,
            "another process has removed or changed the ledger in %s: asymd has written it again, with %zu threads",
            s->run->settings->daemon.state_dir, asym_ledger_count(s->ledger));
    asym_service_report_apply(s, r);
}

static void report_hangs(struct asym_service *s)
{
    const size_t n = asym_proc_reader_hangs(s->observer.reader);
    if (n > s->n_hangs)
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "the kernel did not give the memory map or command line of a process in time, %zu times so far: "
                     "asymd leaves "
                     "such a process alone while it has one thread",
                     n);
    s->n_hangs = n;
}

/* A reload may have changed the budget. */
static void update_limits(struct asym_service *s)
{
    const double allowed = s->run->settings->daemon.cpu_budget;
    asym_proc_reader_set(s->observer.reader, allowed * ASYM_OBSERVER_READING_SHARE);
    if (s->observer.process_events)
        asym_process_events_limit(s->observer.process_events, allowed * GUARD_SHARE);
}

void asym_service_update_budget(struct asym_service *s, asym_usec now)
{
    const double allowed = s->run->settings->daemon.cpu_budget;
    const asym_usec guard = s->observer.process_events ? asym_process_events_spent(s->observer.process_events) : 0;
    if (now - s->budget.last_now < BUDGET_PERIOD)
        return;
    switch (asym_budget_update(&s->budget, allowed, s->run->settings->daemon.interval, now, asym_service_cpu_time(s),
                               s->run->prompt.spent + asym_bus_spent(s->bus) + guard)) {
    case ASYM_BUDGET_EXCEEDED:
        asym_log_say(&s->run->log, LOG_NOTICE,
                     "asymd used %.2f %% of a CPU, above the budget of %.2f %%: it samples less often",
                     s->budget.percent, allowed);
        break;
    case ASYM_BUDGET_KEPT_AGAIN:
        asym_log_say(&s->run->log, LOG_INFO, "asymd is within its CPU budget again: it samples every %.0f ms",
                     (double)s->run->settings->daemon.interval / 1000);
        break;
    case ASYM_BUDGET_SAME:
        break;
    }
}

/* A user who has not asked for this long does not look at the CPUs any more. */
#define LOAD_AGE (10 * ASYM_SEC)

/* With --pid the threads that asymd follows say nothing of the load of a CPU. */
static void update_load(struct asym_service *s, asym_usec now)
{
    const bool is_asked = s->load_asked > 0 && now - s->load_asked < LOAD_AGE;
    if ((s->run->cli->n_pids == 0 && !is_asked) || asym_cpu_load_update(&s->load, &s->run->root) < 0)
        s->load.n = 0;
}

/* The time between two looks for rivals, and the processes and control groups of a look in each housekeeping: 2 ms at most. */
#define RIVALS_PERIOD  (60 * ASYM_SEC)
#define RIVALS_AT_ONCE 50

static void look_for_rivals(struct asym_service *s, asym_usec now)
{
    if (!s->rivals_look && s->rivals_at > 0 && now - s->rivals_at < RIVALS_PERIOD)
        return;
    if (!s->rivals_look)
        s->rivals_look = asym_rivals_new();
    if (!s->rivals_look || !asym_rivals_look(s->rivals_look, &s->run->root, RIVALS_AT_ONCE))
        return;
    asym_check_done(&s->rivals);
    /* Every user can read the facts of the service. */
    asym_rivals_each(s->rivals_look, false, asym_check_add_fact, &s->rivals);
    asym_rivals_free(s->rivals_look);
    s->rivals_look = NULL;
    s->rivals_at = now;
}

void asym_service_housekeeping(struct asym_service *s, asym_usec now)
{
    look_for_rivals(s, now);
    update_limits(s);
    update_ledger(s);
    asym_service_update_cpus(s);
    asym_speeds_update(s->run);
    update_load(s, now);
    asym_service_control_housekeeping(s, now);
    if (s->rtx)
        asym_rtx_service_housekeeping(s->rtx, now);
    asym_service_phases_housekeeping(s);
    asym_service_waits_housekeeping(s, now);
    asym_service_bus_housekeeping(s, now);
    report_hangs(s);
    asym_log_housekeeping(&s->run->log, now);
    asym_service_status(s);
}
