/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Detects from outside which programs use RTX, and which OpenMP programs may spin without RTX. */
#ifndef ASYM_LINUX_RTX_DETECTION_H
#define ASYM_LINUX_RTX_DETECTION_H

#include <stdbool.h>

#include <asym/snapshot.h>

enum asym_rtxd_detection {
    ASYM_RTXD_DETECTION_NONE,
    ASYM_RTXD_DETECTION_REPORTS, /**< it has mapped a page of include/asym/rtx.h, or asymd reads its page */
    ASYM_RTXD_DETECTION_SUSPECT, /**< it has an OpenMP runtime and threads that never pause: they may spin at barriers */
};

/** Returns whether at least two threads were runnable for the whole interval. */
bool asym_rtxd_never_pauses(const struct asym_snapshot *s, const struct asym_app *app);

/** Returns whether asym_rtxd_detect() needs the maps of the process: not for a program that uses RTX, nor for a cgroup. */
bool asym_rtxd_detection_needs_maps(const struct asym_app *app);

/** Classify an application of the snapshot. maps: ASYM_MAPS_* of its process (linux/sys/proc-parse.h); 0: not known. */
enum asym_rtxd_detection asym_rtxd_detect(unsigned maps, const struct asym_snapshot *s, const struct asym_app *app);

#endif
