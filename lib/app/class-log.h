/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Chooses the changes of class of an application that the log has: one line for each change, and one line a minute for an
 * application that changes more often. So an application that changes all the time does not use up the lines of the others; a
 * bound for all of them keeps the log small. It is pure: the time comes with the snapshot.
 */
#ifndef ASYM_APP_CLASS_LOG_H
#define ASYM_APP_CLASS_LOG_H

#include <asym/plan.h>
#include <asym/snapshot.h>

/** An application gets this many lines in a period. The others are summed up. */
#define ASYM_CLASS_LOG_LINES 3
/** All applications together get this many lines in a period. The others are counted. */
#define ASYM_CLASS_LOG_ALL    60
#define ASYM_CLASS_LOG_PERIOD (60 * ASYM_SEC)

enum asym_class_event_kind {
    ASYM_CLASS_EVENT_CHANGE, /**< an application has changed its class */
    ASYM_CLASS_EVENT_SUM,    /**< the changes of an application in the last period, with lines or without */
    ASYM_CLASS_EVENT_LEFT_OUT, /**< the changes and sums of all applications in the last period beyond ASYM_CLASS_LOG_ALL */
};

/** A line for the log. */
struct asym_class_event {
    enum asym_class_event_kind kind;
    unsigned n;             /**< how many; of a change: 0 */
    struct asym_taskid app; /**< as asym_app.id. This and the next two: of a change and a sum */
    const char *comm;       /**< raw bytes, NUL-terminated */
    enum asym_class is;     /**< the class now */
    enum asym_class was; /**< NONE: asymd steers the application for the first time. This and the next: of a change */
    const struct asym_task *task;      /**< the thread in class SP, else the first that asymd steers */
    const struct asym_plan_task *plan; /**< the plan for task */
};

typedef void asym_class_event_fn(void *ctx, const struct asym_class_event *event);

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
