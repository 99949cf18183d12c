/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Random machines and loads. The same seed gives the same result on every machine. */
#ifndef ASYM_TESTS_SUPPORT_GENERATE_H
#define ASYM_TESTS_SUPPORT_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>
#include <asym/plan.h>
#include <asym/policy.h>
#include <asym/snapshot.h>

struct gen {
    uint64_t state;
};

uint64_t gen_next(struct gen *g);

/** Returns a number 0..n-1; n > 0. */
unsigned gen_below(struct gen *g, unsigned n);

/** Returns a number 1..most; small numbers are about as frequent as large ones. */
unsigned gen_size(struct gen *g, unsigned most);

/** Make a machine: 1..1024 CPUs, 1..8 core types, SMT 1, 2 or 4; some CPUs offline or outside the cpuset; gaps in numbers. */
void gen_machine(struct gen *g, struct asym_machine *m);

/** Make a machine: CPUs 0..n-1, the first n_fast of them twice as fast; one LLC and node, no SMT siblings. */
void gen_plain_machine(struct asym_machine *m, unsigned n, unsigned n_fast);

/** A snapshot with all data that it borrows. A test may change it between two steps; after masks it calls gen_load_share_masks. */
struct gen_load {
    struct asym_snapshot s;
    struct asym_app *apps;
    struct asym_proc *procs; /* one per application */
    struct asym_task *tasks;
    struct asym_mask *masks, *cpusets; /* per task: its affinity, and the CPUs that its cgroup allows */
    uint32_t *slots;
    uint32_t n_slots;
};

/**
 * Returns a load of n_apps applications with sizes[] threads each. All threads are runnable, old enough to be steered, and may
 * run on all CPUs. NULL: no memory.
 */
struct gen_load *gen_load_new(const struct asym_machine *m, const unsigned *sizes, size_t n_apps);

/** The same with n threads in applications of random sizes. Unless uniform, some have cpusets, own masks, or marks of RTX. */
struct gen_load *gen_load_random(struct gen *g, const struct asym_machine *m, unsigned n, bool uniform);

/** Write the defaults of a policy's options to the params_size bytes at params. */
void gen_params(const struct asym_policy *policy, void *params);

/** Room for the params of any policy. */
struct gen_params_room {
    _Alignas(16) unsigned char bytes[256];
};

/** Returns the defaults of a policy's options, but for the option key, which has this value. key: NULL: all are defaults. */
struct gen_params_room gen_params_with(const struct asym_policy *policy, const char *key, const char *value);

void gen_load_free(struct gen_load *load);

/** Set the runnable share of all threads of an application, and the application's counts with it. */
void gen_load_share(struct gen_load *load, size_t app, double share);

/** The same for one thread. */
void gen_load_share_one(struct gen_load *load, size_t task, double share);

/** Counts the threads that run anew, after a test has set their shares by hand. */
void gen_load_count(struct gen_load *load);

/** Leave about a third of the applications with one runnable thread, and make a tenth idle. */
void gen_load_calm(struct gen *g, struct gen_load *load);

/** Advance the time. */
void gen_load_pass(struct gen_load *load, asym_usec time);

/** Carry out the actions on the threads as the kernel would. Actions on threads that do not exist do nothing. */
void gen_load_apply(struct gen_load *load, const struct asym_action *actions, size_t n);

/** Put every steered thread on its planned CPU. */
void gen_load_move(struct gen_load *load, const struct asym_plan *plan);

/** Let threads with equal masks point to the same one, as in a snapshot of the observer. */
void gen_load_share_masks(struct gen_load *load);

#endif
