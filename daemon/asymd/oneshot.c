/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/oneshot.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/macro.h"
#include "app/crash-recovery.h"
#include "app/policy-setup.h"
#include "linux/enforce/enforce.h"

void asym_oneshot_done(struct asym_oneshot *o)
{
    asym_cycle_done(&o->cycle);
    asym_engine_free(o->engine);
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

int asym_oneshot_init(struct asym_oneshot *o, struct asym_run *run, bool overlay_ledger, struct asym_error *err)
{
    struct asym_engine_config config = asym_run_engine_config(run);
    /* The mode uses only the plan of the last sample, so there is no earlier plan that the swap period could protect. */
    config.enforce.swap_period = 0;
    int r = asym_observer_open(run, 0, &o->observer, err);
    if (r >= 0 && overlay_ledger)
        r = open_ledger_overlay(o, run, err);
    if (r >= 0)
        r = asym_observer_count(&o->observer, run, err);
    if (r < 0)
        return r;
    r = asym_engine_new(&config, &o->engine);
    if (r < 0)
        return asym_fail(err, r, "%s", strerror(-r));
    o->cycle = (struct asym_cycle){.source = o->observer.source, .actuator = asym_actuator_dry(), .engine = o->engine};
    return 0;
}

static void sleep_for(asym_usec t)
{
    struct timespec left = {.tv_sec = (time_t)(t / ASYM_SEC), .tv_nsec = (long)(t % ASYM_SEC) * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
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
        sleep_for(end - now < 2 * d->interval ? end - now : d->interval);
        r = asym_cycle_plan(&o->cycle);
    }
    if (r == -ENODATA)
        return r;
    return r < 0 ? asym_fail(err, r, "cannot observe: %s", strerror(-r)) : 0;
}
