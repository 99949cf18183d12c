/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/outcomes.h"

#include <errno.h>

static struct asym_log_thread thread_line(const char *policy, const struct asym_task *task, const struct asym_action *a,
                                          enum asym_class class)
{
    return (struct asym_log_thread){
        .task = task,
        .policy = policy,
        .class = class,
        .reason = a->reason,
        .figure = {a->figure[0], a->figure[1]},
    };
}

/* Actions name threads, the log wants their names too: find the task in the snapshot; idle ones are not in it. */
static const struct asym_task *find_task(const struct asym_snapshot *snapshot, const struct asym_taskid *id)
{
    for (size_t i = 0; i < snapshot->n_tasks; i++)
        if (snapshot->tasks[i].id.tid == id->tid && snapshot->tasks[i].id.start == id->start)
            return &snapshot->tasks[i];
    return NULL;
}

static void log_outcome(const struct asym_log *log, const char *policy, const struct asym_cycle *cycle,
                        const struct asym_action *a, const struct asym_outcome *o)
{
    const bool hands_off = o->verdict == ASYM_VERDICT_HANDS_OFF ||
                           (a->kind == ASYM_ACTION_FORGET && o->verdict == ASYM_VERDICT_DONE);
    const bool boosted = a->kind == ASYM_ACTION_STEER && a->reason == ASYM_WHY_SP && o->verdict == ASYM_VERDICT_DONE;
    if (!hands_off && !boosted)
        return;
    const struct asym_task unknown = {.id = a->id};
    const struct asym_task *task = find_task(&cycle->snapshot, &a->id);
    struct asym_log_thread line = thread_line(policy, task ? task : &unknown, a,
                                              boosted ? ASYM_CLASS_SP : ASYM_CLASS_NONE);
    if (o->verdict == ASYM_VERDICT_HANDS_OFF) {
        line.reason = o->error == -EBUSY ? ASYM_WHY_FOREIGN : ASYM_WHY_DENIED;
        line.figure[0] = -o->error;
    }
    asym_log_thread(log, hands_off ? LOG_NOTICE : LOG_INFO, &line, hands_off ? "left alone" : "sequential phase");
}

size_t asym_outcomes_log(const struct asym_log *log, const char *policy, const struct asym_cycle *cycle)
{
    size_t changed = 0;
    for (size_t i = 0; i < cycle->n_actions; i++) {
        changed += cycle->outcomes[i].verdict == ASYM_VERDICT_DONE;
        log_outcome(log, policy, cycle, &cycle->actions[i], &cycle->outcomes[i]);
    }
    return changed;
}
