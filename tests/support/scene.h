/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A machine, what was seen on it and what was planned, written down by hand: what the reports print. */
#ifndef ASYM_TESTS_SCENE_H
#define ASYM_TESTS_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>
#include <asym/plan.h>
#include <asym/settings.h>
#include <asym/snapshot.h>

struct scene {
    struct asym_machine machine;
    struct asym_snapshot snapshot;
    struct asym_plan plan;
    struct asym_settings *settings;
    struct asym_app *apps;
    struct asym_proc *procs;
    struct asym_task *tasks;
    struct asym_plan_app *plan_apps;
    struct asym_plan_task *plan_tasks;
    struct asym_mask all; /* what every thread has unless the test says otherwise */
};

/** Room for so many threads in as many applications; n_cpus CPUs, the last n_fast of them twice as fast, 4 to an LLC. */
struct scene *scene_new(unsigned n_cpus, unsigned n_fast, size_t room);
void scene_free(struct scene *scene);

/** One more application; threads added from here on are its. comm as raw bytes. */
struct asym_plan_app *scene_app(struct scene *s, const char *comm, int32_t pid, enum asym_phase phase,
                                enum asym_class class, double runnable);

/** One more thread, on cpu and to stay there, free to run anywhere. */
struct asym_plan_task *scene_thread(struct scene *s, const char *comm, int32_t tid, int32_t cpu);

/** It is to go to target with that mask. */
void scene_steer(struct scene *s, struct asym_plan_task *task, int32_t target, const char *cpus,
                 enum asym_reason reason);

/** CPUs of a list. */
struct asym_mask scene_cpus(const char *list);

#endif
