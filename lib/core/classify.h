/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What an application is doing, remembered from one snapshot to the next (policies.md, Classes).
 *
 * The count of a mean estimator is a fraction, and two threads that always run are measured as 1.97 or 2.02. So the
 * count is rounded to whole threads before any rule is asked: below 0.5 is idle, 0.5 up to below 1.5 is one thread
 * (it is mostly there), and "more than serial_max_threads" or "more than hp_threshold" begins half a thread above.
 */
#ifndef ASYM_CORE_CLASSIFY_H
#define ASYM_CORE_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/engine.h>
#include <asym/plan.h>
#include <asym/snapshot.h>

/** A value that changes only when another was seen for some intervals on end. */
struct asym_held {
    unsigned value, next, count; /* next was seen count times on end */
    asym_usec since;             /* when value was taken up; 0: never changed */
};

/** How many threads run, as far as SP asks. */
enum asym_crowd { ASYM_CROWD_NONE, ASYM_CROWD_ONE, ASYM_CROWD_MANY };

/** Memory of one application. All zero: never seen, and idle. */
struct asym_app_memory {
    struct asym_taskid id;
    struct asym_held phase, class, crowd; /* of enum asym_phase, asym_class, asym_crowd */
    bool was_many;                        /* more than one thread ran, and no boost was given for what follows yet */
    bool boosting;                        /* one thread is boosted, from sp_since on */
    bool told;                            /* sp runs a serial phase that its program tells of (RTX) */
    struct asym_taskid sp;                /* which one */
    asym_usec sp_since;
    uint64_t seen; /* number of the step that saw it last */
};

/** The runnable count by the estimator in force. */
double asym_classify_runnable(const struct asym_classify_settings *c, const struct asym_app *app);

/**
 * Take the application one interval further; app is NULL when the snapshot does not list it: it is idle.
 *
 * SP begins when an application that ran more than one thread is down to one, and ends after amp_boost or when it runs
 * more than one again. It is of the thread that was runnable for the largest share of the interval, whichever that is
 * from interval to interval: in the one that saw the end of a parallel phase it may be a worker that ended last. A
 * pause of up to amp_boost in between does not break the transition: at a join the master often waits for I/O first.
 *
 * Where a program tells of its serial phases its word goes before the count: its master is SP at once, for as long.
 */
void asym_classify(const struct asym_classify_settings *c, const struct asym_snapshot *s, const struct asym_app *app,
                   struct asym_app_memory *memory);

/** Is it idle, with nothing to remember? */
bool asym_classify_is_blank(const struct asym_classify_settings *c, const struct asym_app_memory *memory,
                            asym_usec now);

/** SP for the boosted thread, else its application's class. *ret_since is set for SP only: when the boost began. */
enum asym_class asym_classify_thread(const struct asym_app_memory *memory, const struct asym_taskid *id,
                                     asym_usec *ret_since);

#endif
