/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --once. */
#include "daemon/asymd/oneshot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "app/crash-recovery.h"
#include "app/policy-setup.h"
#include "app/speeds.h"
#include "linux/enforce/enforce.h"

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
    ASYM_CLEANUP(asym_oneshot_done) struct asym_oneshot o = {0};
    struct asym_ledger *ledger = NULL;
    struct asym_error err = {""};
    /* The masks that an earlier asymd has left would look like masks that the threads chose themselves. */
    int r = asym_crash_recovery_clear(run, &ledger, &err);
    asym_run_check_boost(run);
    if (r >= 0)
        r = asym_oneshot_init(&o, run, false, &err);
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
