/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Chooses the changes of class of an application that the log has: one line for each, as long as there are tokens for it. Each
 * application has a bucket of its own: one that changes all the time does not use up the lines of the others. A bucket for all of
 * them keeps the log small. It is pure: the time comes with the snapshot.
 */
#ifndef ASYM_APP_CLASS_LOG_H
#define ASYM_APP_CLASS_LOG_H

#include <asym/plan.h>
#include <asym/snapshot.h>

/** An application gets this many lines at once, and as many in a period. */
#define ASYM_CLASS_LOG_LINES 3
/** All applications together get this many. */
#define ASYM_CLASS_LOG_ALL    60
#define ASYM_CLASS_LOG_PERIOD (60 * ASYM_SEC)

/**
 * A line for the log. task is the thread in class SP, else the first that asymd steers; plan has its class. n_left_out: the changes
 * of the application that had no line since its last one.
 */
typedef void asym_class_event_fn(void *ctx, const struct asym_task *task, const struct asym_plan_task *plan,
                                 unsigned n_left_out);

struct asym_class_log;

/** Returns NULL without memory. */
struct asym_class_log *asym_class_log_new(void);
void asym_class_log_free(struct asym_class_log *l);

/**
 * Take the classes of a plan, and call fn for each change that the log is to have. The class of an application is SP if one of
 * its threads has it, else MP or HP. An application counts if asymd steers one of its threads; an idle one keeps the class
 * that it had. Returns 0; -ENOMEM: some changes may be missing.
 */
int asym_class_log_update(struct asym_class_log *l, const struct asym_snapshot *s, const struct asym_plan *plan,
                          asym_class_event_fn *fn, void *ctx);

#endif
