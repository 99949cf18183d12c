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
#include "core/memory.h"
#include "core/table.h"

/** A growing array that keeps its memory from step to step. */
struct asym_pool {
    void *items;
    size_t capacity; /* items */
};

/** Room for n items of size; what was there is not kept. NULL: no memory. */
void *asym_pool_reserve(struct asym_pool *pool, size_t n, size_t size);

/** Masks of one step, each content once, so that equal ones have equal addresses. */
struct asym_interner {
    struct asym_mask *masks; /* room for as many as there are tasks */
    uint32_t *slots;         /* hash of contents: index + 1; n_slots is a power of two */
    uint32_t n, n_slots;
};

/** A thread that asymd leaves alone for good, and that has not run for a while. One per tid: its reuse ends it. */
struct asym_untouchable {
    struct asym_taskid key; /* tid only */
    struct asym_taskid id;
    enum asym_reason reason;
    int error;
};

/** What the tables of a step are kept in. */
struct asym_pools {
    struct asym_pool arena, views, view_apps, view_task, assignments, plan_apps, plan_tasks, actions, may, slots,
        memory, llcs;
};

struct asym_engine {
    struct asym_engine_config config; /* params points into params */
    void *params, *policy_state;
    struct asym_table threads;      /* asym_thread_memory + the policy's state */
    struct asym_table apps;         /* asym_app_memory */
    struct asym_table untouchables; /* asym_untouchable */
    struct asym_table procs;        /* of the running step: asym_proc_entry */
    struct asym_heirs heirs;
    struct asym_pools pools;
    uint64_t step, plan; /* numbers of the running step and of the last plan */
    uint64_t generation; /* of the machine that was last planned for */
    asym_usec last_plan, next_swap, now;
    bool dirty; /* plan at the next step whatever the swap period says */
    bool flush; /* the policy was replaced: give back what it had set on threads that do not run */
    size_t n_actions;
    struct asym_plan result;
};

struct asym_proc_entry {
    struct asym_taskid key; /* tgid only */
    uint32_t index;
};

struct asym_step {
    struct asym_engine *e;
    const struct asym_snapshot *s;
    struct asym_interner masks;
    struct asym_plan_app *apps;
    struct asym_plan_task *tasks;
    struct asym_thread_memory **memory; /* of each task */
    struct asym_policy_thread *views;
    struct asym_policy_app *view_apps;
    uint32_t *view_task; /* task of each view */
    size_t n_views, n_view_apps;
};

const struct asym_mask *asym_intern(struct asym_interner *masks, const struct asym_mask *m);

/** observe.c: take the snapshot into the memories. 0; -ENOMEM. */
int asym_step_observe(struct asym_step *st);
/** observe.c: drop the memories of what has gone. */
void asym_step_forget(struct asym_step *st);

/** views.c: what the policy is shown; asking it; taking down its answers. 0; -ENOMEM. */
void asym_step_views(struct asym_step *st);
int asym_step_plan(struct asym_step *st);

/** masks.c: targets to masks. 0; -ENOMEM. */
int asym_step_masks(struct asym_step *st);

/** diff.c: what is in force against what shall be. 0; -ENOMEM. */
int asym_step_actions(struct asym_step *st);

#endif
