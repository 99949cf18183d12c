/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Phase and class of an application, kept from one snapshot to the next (docs/policies.md, Classes).
 *
 * A mean estimator counts in fractions: two threads that always run measure as 1.97 or 2.02. So the engine rounds the
 * count to whole threads before it applies any rule. Below 0.5 the application is idle; from 0.5 to below 1.5 it is one
 * thread; "more than serial_max_threads" and "more than hp_threshold" begin half a thread above.
 */
#ifndef ASYM_CORE_CLASSIFY_H
#define ASYM_CORE_CLASSIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/engine.h>
#include <asym/plan.h>
#include <asym/snapshot.h>

/** A value that changes only after another one held for some intervals in a row. */
struct asym_held {
    unsigned value, next, count; /* the last count intervals in a row gave next */
    asym_usec since;             /* when value last changed; 0: never */
};

/** The number of running threads, as the rule for SP (serial phase of a parallel program) needs it. */
enum asym_thread_count { ASYM_THREAD_COUNT_NONE, ASYM_THREAD_COUNT_ONE, ASYM_THREAD_COUNT_MANY };

/** State of one application. All zero: no snapshot has listed it, and it is idle. */
struct asym_app_state {
    struct asym_taskid id;
    struct asym_held phase, class, thread_count; /* of enum asym_phase, asym_class, asym_thread_count */
    enum asym_class_source class_by;             /* of the last interval */
    bool was_many;                               /* more than one thread ran, and no boost has followed yet */
    bool boosting;                               /* the thread sp is boosted, from sp_since on */
    bool reported;                               /* sp runs a serial phase that its program reports (RTX) */
    struct asym_taskid sp;                       /* the boosted thread */
    asym_usec sp_since;
    uint64_t seen; /* number of the last step whose snapshot listed it */
};

/**
 * A program is active from half a runnable thread on, which rounds to one, and stays so down to this: one that needs half of a
 * CPU would be idle in one sample and serial in the next.
 */
#define ASYM_IDLE_BELOW 0.25

/** The runnable count by the estimator in force. */
double asym_classify_runnable(const struct asym_classify_settings *c, const struct asym_app *app);

/**
 * Update the application's state for one interval. app is NULL when the snapshot does not list it: it is idle then.
 *
 * SP (serial phase) begins when an application that ran more than one thread runs one, and ends after amp_boost or when it
 * runs more than one again. Each interval gives SP to the thread that was runnable for the largest share of it. At the end
 * of a parallel phase that may be the worker that ended last. A pause of up to amp_boost does not end the transition: at a
 * join the master often waits for I/O first.
 *
 * nice is the lowest nice value among its runnable threads, without the boost of a policy. From
 * [classify] background_nice on, the application is parallel and HP; it is never SP, unless it reports a serial phase.
 *
 * A rule can give the application a class. With parallel it counts as many threads: it is never SP, unless it reports a serial
 * phase. With serial it counts as few threads.
 *
 * If the program reports its serial phases (RTX), the report overrides the count: its master is SP at once, for up to
 * amp_boost.
 */
void asym_classify(const struct asym_classify_settings *c, const struct asym_snapshot *s, const struct asym_app *app,
                   int nice, struct asym_app_state *state);

/** True when it is idle and its state holds nothing more: the engine may drop it. */
bool asym_classify_is_blank(const struct asym_classify_settings *c, const struct asym_app_state *state, asym_usec now);

/** Returns SP for the boosted thread, else the class of its application. For SP, *ret_since is when the boost began. */
enum asym_class asym_classify_thread(const struct asym_app_state *state, const struct asym_taskid *id,
                                     asym_usec *ret_since);

/**
 * Returns what an application counts as, in the words of every text: "serial", "mildly parallel", "highly parallel",
 * "background", "serial phase", "parallel" (it has no class), or "idle". has_sp: one of its threads is SP. A static string.
 */
const char *asym_classify_word(const struct asym_plan_app *app, bool has_sp);

#endif
