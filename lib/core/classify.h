/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What an application is doing, remembered from one snapshot to the next (policies.md, Classes). */
#ifndef ASYM_CORE_CLASSIFY_H
#define ASYM_CORE_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/engine.h>
#include <asym/plan.h>
#include <asym/snapshot.h>

/** Memory of one application. All zero: never seen. */
struct asym_app_memory {
    struct asym_taskid id;
    enum asym_phase phase, next_phase; /* next_phase: seen, but not yet for hysteresis intervals */
    enum asym_class class, next_class;
    unsigned phase_held, class_held; /* intervals that next_* was seen for */
    asym_usec phase_since;
    bool many;             /* had more than one runnable thread when last active */
    struct asym_taskid sp; /* its SP thread; tid 0: none */
    asym_usec sp_since;
    uint64_t seen; /* number of the step that saw it last */
};

/** The runnable count by the estimator in force. */
double asym_classify_runnable(const struct asym_classify_settings *c, const struct asym_app *app);

/**
 * Take the application one interval further: phase and class with hysteresis; SP begins when an application that had
 * more than one runnable thread is down to one, belongs to the thread that ran or waited longest, and ends after
 * amp_boost or when the application has more than one again.
 *
 * The count is a mean over the interval, so it is rounded where a rule speaks of threads: idle below 0.5 (the table),
 * one thread below 1.5. Between 0.5 and 1 an application is serial: its one thread is mostly there.
 */
void asym_classify(const struct asym_classify_settings *c, const struct asym_snapshot *s, const struct asym_app *app,
                   struct asym_app_memory *memory);

/** Seconds of boost left for the thread; 0 when it is not SP. */
double asym_classify_sp_left(const struct asym_classify_settings *c, const struct asym_app_memory *memory,
                             const struct asym_taskid *id, asym_usec now);

#endif
