/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Adds the reports of programs on their own threads to a snapshot.
 *
 * A provider supplies the reports: the pages of programs (rtx-server.h), a test, or a simulator. The overlay is a source around
 * another source. It passes that source's snapshots on with ASYM_TASK_MASTER and ASYM_TASK_SPINNING set, and takes spinning
 * threads out of the runnable counts. So a trace of its snapshots is complete.
 *
 * Counts of an interval are means. The overlay subtracts the part of the interval for which a thread is known to have spun.
 * With a barrier every millisecond that part is close to zero, whichever thread waits at the moment of the sample. Only a
 * thread that has spun for the whole interval ranks as spinning. In a serial phase every waiting thread ranks as spinning at
 * once.
 *
 * The overlay trusts a program only for its own threads, as the inner source lists them. A program that lies can make its own
 * application look more or less parallel than it is, and get one master.
 */
#ifndef ASYM_LINUX_RTX_OVERLAY_H
#define ASYM_LINUX_RTX_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/port.h>
#include <asym/snapshot.h>
#include <asym/types.h>

/** A program's report on one thread. */
struct asym_rtxd_thread_report {
    int32_t tid;
    bool spins;      /**< it waits, and has waited long enough to count as spinning */
    asym_usec since; /**< start of the wait; 0: the program is in a serial phase, so the whole interval counts */
    bool master;     /**< it works, in a reported serial phase or as the master of a program that reports none */
    bool in_phase;   /**< a master in a reported serial phase */
    bool works;      /**< the thread reports that it works ... */
    bool changed;    /**< ... and has changed its word since the last full snapshot */
};

/** The report of one page. */
struct asym_rtxd_program_report {
    int32_t pid;
    uint64_t start; /**< start time of the process: tells it from a later process with the same pid */
    asym_usec at;   /**< time of the report */
    const struct asym_rtxd_thread_report *threads; /**< in ascending order of tid */
    size_t n;
};

/** Bits of a question to a provider. */
enum {
    ASYM_ASK_FINAL = 1 << 0,   /**< the answer goes into a snapshot; without REFRESH, `changed` counts from here */
    ASYM_ASK_REFRESH = 1 << 1, /**< the provider may repeat its last report of a program with no new change of phase */
};

struct asym_rtxd_provider {
    /**
     * Hand out the reports of all programs, in ascending order of pid; a pid may occur several times. They are valid until the
     * next call. Returns their number.
     */
    size_t (*ask)(struct asym_rtxd_provider *provider, asym_usec now, unsigned how,
                  const struct asym_rtxd_program_report **ret_reports);
    /** Called for each process of a full snapshot: its user's programs may report from now on. NULL: not wanted. */
    void (*meet)(struct asym_rtxd_provider *provider, int32_t pid, uint64_t start);
};

struct asym_rtxd_overlay_config {
    struct asym_source *inner;           /**< borrowed */
    struct asym_rtxd_provider *provider; /**< borrowed */
    asym_usec (*now)(void);              /**< same clock as the snapshots */
};

/** Create the overlay; ret_source->close frees it. 0; -ENOMEM. */
int asym_rtxd_overlay_new(const struct asym_rtxd_overlay_config *config, struct asym_source **ret_source);

/** Detects from outside which programs use RTX, and which OpenMP programs may spin without RTX. */
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
