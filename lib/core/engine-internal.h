/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The engine's insides, shared by the files that make up a step. */
#ifndef ASYM_CORE_ENGINE_INTERNAL_H
#define ASYM_CORE_ENGINE_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include <asym/engine.h>

#include "base/arena.h"
#include "core/classify.h"
#include "core/heirs.h"
#include "core/intern.h"
#include "core/memory.h"
#include "core/pool.h"
#include "core/table.h"

/** A thread that asymd leaves alone for good, and that has not run for a while. One per tid: its reuse ends it. */
struct asym_untouchable {
    struct asym_taskid key; /* tid only */
    struct asym_taskid id;
    enum asym_reason reason;
    int error;
};

/** What the tables of a step are kept in. */
struct asym_pools {
    struct asym_pool arena, views, view_apps, view_refs, assignments, plan_apps, plan_tasks, actions, action_masks,
        refs, llcs, heirs, narrowed;
};

struct asym_engine {
    struct asym_engine_config config; /* params points into params */
    void *params, *policy_state;
    struct asym_masks masks;
    struct asym_table threads;      /* asym_thread_memory + the policy's state */
    struct asym_table apps;         /* asym_app_memory */
    struct asym_table untouchables; /* asym_untouchable */
    struct asym_table procs;        /* of the running step: asym_proc_entry */
    struct asym_pools pools;
    uint64_t step, plan; /* numbers of the running step and of the last plan */
    uint64_t generation; /* of the machine that was last planned for */
    asym_usec last_plan, next_swap, now;
    asym_usec turn;          /* when the swap period of the last plan began */
    asym_usec first_steered; /* 0: asymd has not set anything yet */
    bool dirty;              /* plan at the next step whatever the swap period says */
    bool flush;              /* the policy was replaced: give back what it had set on threads that do not run */
    size_t n_actions;
    struct asym_plan result;
};

struct asym_proc_entry {
    struct asym_taskid key; /* tgid only */
    uint32_t index;
};

/** What a step has for each task of its snapshot. */
struct asym_task_ref {
    struct asym_seen seen;
    struct asym_thread_memory *memory;
    uint32_t plan_mask; /* by number, where it has a target */
    uint32_t via;       /* of asym_action */
};

/** And for each thread that the policy is shown. */
struct asym_view_ref {
    uint32_t task; /* index */
    uint32_t may;  /* by number */
};

struct asym_step {
    struct asym_engine *e;
    const struct asym_snapshot *s;
    struct asym_circumstances c;
    struct asym_plan_app *apps;
    struct asym_plan_task *tasks;
    struct asym_task_ref *refs;
    struct asym_policy_thread *views;
    struct asym_policy_app *view_apps;
    struct asym_view_ref *view_refs;
    size_t n_views, n_view_apps;
    size_t next_sample; /* the first that may be of a task not shown yet */
};

/** observe.c: take the snapshot into the memories. 0; -ENOMEM. */
int asym_step_observe(struct asym_step *st);
/** observe.c: drop the memories of what has gone. */
void asym_step_forget(struct asym_step *st);

/** views.c: what the policy is shown; asking it; taking down its answers. 0; -ENOMEM. */
int asym_step_views(struct asym_step *st);
int asym_step_plan(struct asym_step *st);

/** masks.c: targets to masks. 0; -ENOMEM. */
int asym_step_masks(struct asym_step *st);

/** ways.c: where threads go that have to leave their CPU. */
void asym_step_ways(struct asym_step *st);

/** diff.c: what is in force against what shall be. 0; -ENOMEM. */
int asym_step_actions(struct asym_step *st);

#endif
