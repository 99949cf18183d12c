/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The engine's internal types; the files that make up a step share them. */
#ifndef ASYM_CORE_ENGINE_INTERNAL_H
#define ASYM_CORE_ENGINE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include <asym/engine.h>

#include "base/arena.h"
#include "base/grow.h"
#include "core/classify.h"
#include "base/mask-table.h"
#include "core/task-table.h"
#include "core/thread-state.h"

/** A thread that asymd leaves alone for good and that has not run for a while. One per tid: a new thread with it ends it. */
struct asym_untouchable {
    struct asym_taskid key; /* tid only */
    struct asym_taskid id;
    asym_usec at;
    enum asym_exclusion reason;
    int error;
};

/** The memory of the tables of a step. */
union asym_pools {
    struct {
        struct asym_pool arena, policy_threads, policy_apps, policy_refs, assignments, plan_apps, plan_tasks, actions,
            action_masks, refs, app_states, llcs, inherited, narrowed, asleep;
    };
    struct asym_pool all[15];
};
_Static_assert(sizeof(union asym_pools) == sizeof(((union asym_pools *)0)->all), "all of them");

struct asym_engine {
    struct asym_engine_config config; /* params points into params */
    void *params, *policy_state;
    struct asym_mask_table masks;
    struct asym_table threads;      /* asym_thread_state and the policy's state */
    struct asym_table apps;         /* asym_app_state */
    struct asym_table untouchables; /* asym_untouchable */
    struct asym_table procs;        /* of the current step, where it needs them: asym_proc_entry */
    struct asym_table nice_groups;  /* of the current step: asym_proc_entry; the tid of its key is the group */
    union asym_pools pools;
    uint64_t step, plan; /* numbers of the current step and of the last plan */
    uint64_t generation; /* machine generation of the last plan */
    asym_usec last_plan, next_swap, now;
    asym_usec measured; /* the last plan with new measurements; 0: none yet */
    asym_usec again; /* the policy wants to plan again, this long after the last plan; 0: when the swap period ends */
    asym_usec swap_began;    /* when the swap period of the last plan began */
    asym_usec first_steered; /* 0: asymd has not set anything yet */
    bool dirty;              /* plan at the next step, without waiting for the swap period */
    bool flush;              /* the policy was replaced: release threads that do not run */
    size_t n_actions;
    struct asym_mask shared, crowded; /* pinning.c: of the last step */
    struct asym_mask spare;           /* the CPUs that the last plan leaves idle */
    struct asym_plan result;
};

struct asym_proc_entry {
    struct asym_taskid key; /* tgid only */
    uint32_t index;
};

/** A task of the snapshot during a step. */
struct asym_task_ref {
    struct asym_seen seen;
    struct asym_thread_state *thread_state;
    uint32_t plan_mask;   /* number in the mask table; valid with a target */
    uint32_t transit_cpu; /* transit_cpu of its asym_action */
};

/** A thread of the policy's input. */
struct asym_policy_ref {
    uint32_t task;       /* index in the snapshot */
    uint32_t allowed;    /* number in the mask table */
    enum asym_pin width; /* of its assignment; valid with a target */
};

struct asym_step {
    struct asym_engine *e;
    const struct asym_snapshot *s;
    struct asym_circumstances c;
    struct asym_classify_settings classify; /* with the hp_threshold in force */
    double decay;                           /* of the interval (asym_duty_decay) */
    struct asym_plan_app *apps;
    struct asym_plan_task *tasks;
    struct asym_task_ref *refs;
    struct asym_app_state **app_states; /* of the snapshot's applications; valid until asym_step_forget */
    struct asym_policy_thread *policy_threads;
    struct asym_policy_app *policy_apps;
    struct asym_policy_ref *policy_refs;
    size_t n_policy_threads, n_policy_apps;
    double unsteered, unsteered_weight; /* see asym_policy_input */
    float *asleep;
    struct asym_mask held, busy; /* by the plan: CPUs that a thread holds; CPUs of threads that are not light */
    size_t next_sample;          /* the first sample that may belong to a task the policy has not seen yet */
};

/** Returns whether the table has threads that the snapshot does not list: if not, no pass over the table looks for them. */
static inline bool asym_step_has_unlisted(const struct asym_step *st)
{
    return st->e->threads.n > st->s->n_tasks;
}

/** observe.c: find the states of the threads and applications of the snapshot. Those of other applications are updated. Returns 0;
 * -ENOMEM. */
int asym_step_observe(struct asym_step *st);
/** observe.c: update the states of an application and its threads. The caller then uses them: so they are read from memory once. */
void asym_step_observe_app(struct asym_step *st, size_t app);
/** observe.c: drop the states of threads and applications that are gone. */
void asym_step_forget(struct asym_step *st);

/** policy-input.c: update the states and build the policy's input, then call the policy and store its answers. 0; -ENOMEM. */
int asym_step_policy_input(struct asym_step *st);
int asym_step_plan(struct asym_step *st);

/** pinning.c: the nice value of a thread without a policy's boost: its own, or the one that its rule lends it. keep: its own. */
int8_t asym_nice_by_rule(const struct asym_thread_state *m, const struct asym_proc *proc, bool keep);
/** pinning.c: the nice value of a thread with a target; steers: the policy steers it, so that its boost counts. */
int8_t asym_planned_nice(const struct asym_task_ref *ref, bool keep, bool steers);

/** pinning.c: turn targets into masks. Returns 0; -ENOMEM. */
int asym_step_masks(struct asym_step *st);

/** pinning.c: choose transit CPUs for running threads that must leave their CPU. */
void asym_step_idle_placement(struct asym_step *st);

#endif
