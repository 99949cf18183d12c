/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-detection.h"

#include "linux/sys/proc-parse.h"

/*
 * A thread that was runnable for less than this share of an interval has paused. The kernel brings the counters of a thread up to
 * date at a tick (10 ms at 100 Hz) and when a wait ends: in half a second, 0.04 can be missing of one that never pauses.
 */
#define ALL_OF_IT 0.95

bool asym_rtxd_never_pauses(const struct asym_snapshot *s, const struct asym_app *app)
{
    size_t n = 0;
    for (uint32_t i = 0; i < app->n_tasks; i++)
        n += s->tasks[app->first_task + i].runnable >= ALL_OF_IT;
    return n >= 2;
}

bool asym_rtxd_detection_needs_maps(const struct asym_app *app)
{
    return !app->uses_rtx && !app->cgroup;
}

enum asym_rtxd_detection asym_rtxd_detect(unsigned maps, const struct asym_snapshot *s, const struct asym_app *app)
{
    if (!asym_rtxd_detection_needs_maps(app))
        return app->uses_rtx ? ASYM_RTXD_DETECTION_REPORTS : ASYM_RTXD_DETECTION_NONE;
    if (maps & ASYM_MAPS_PAGE)
        return ASYM_RTXD_DETECTION_REPORTS;
    return maps & ASYM_MAPS_OPENMP && asym_rtxd_never_pauses(s, app) ? ASYM_RTXD_DETECTION_SUSPECT
                                                                     : ASYM_RTXD_DETECTION_NONE;
}
