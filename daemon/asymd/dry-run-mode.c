/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --dry-run. */
#include <stdio.h>

#include "app/command-line.h"
#include "app/machine-check.h"
#include "base/macro.h"
#include "daemon/asymd/oneshot.h"
#include "report/report.h"

static enum asym_exit mode_dry_run(struct asym_run *run)
{
    ASYM_CLEANUP(asym_oneshot_done) struct asym_oneshot o = {0};
    struct asym_error err = {""};
    int r = asym_oneshot_init(&o, run, true, &err);
    if (r >= 0)
        r = asym_oneshot_observe(&o, run, &err);
    if (r < 0)
        return asym_mode_fail(run, r, &err);
    uint32_t unread = 0;
    ASYM_AUTO_FREE enum asym_rtxd_detection *detection = run->root.live
                                                             ? asym_rtxd_programs_detect(&run->root, o.observer.reader,
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
