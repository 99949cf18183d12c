/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Machines and loads made up from a seed: the same seed gives the same, everywhere. */
#ifndef ASYM_TESTS_GENERATE_H
#define ASYM_TESTS_GENERATE_H

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

/** 0..n-1; n > 0. */
unsigned gen_below(struct gen *g, unsigned n);

/** 1..most, small numbers about as often as large ones. */
unsigned gen_size(struct gen *g, unsigned most);

/** 1..1024 CPUs, 1..8 core types, SMT 1, 2 or 4; some CPUs offline or outside the cpuset, numbers with gaps. */
void gen_machine(struct gen *g, struct asym_machine *m);

/** n CPUs numbered 0.., the first n_fast of them twice as fast; one LLC and node, no siblings. */
void gen_plain_machine(struct asym_machine *m, unsigned n, unsigned n_fast);

/** A snapshot with all that it borrows. Change what you like between two steps; call gen_load_intern after masks. */
struct gen_load {
    struct asym_snapshot s;
    struct asym_app *apps;
    struct asym_proc *procs; /* one per application */
    struct asym_task *tasks;
    struct asym_mask *masks, *cpusets; /* per task: what it has, what its cgroup lets it have */
    uint32_t *slots;
    uint32_t n_slots;
};

/**
 * n threads in applications of sizes[] threads each (n_apps of them), all runnable and old enough to be steered, free to
 * run anywhere on the machine. NULL: no memory.
 */
struct gen_load *gen_load_new(const struct asym_machine *m, const unsigned *sizes, size_t n_apps);

/** n threads in applications of random sizes; unless uniform, some in cpusets or with masks of their own, or marked by RTX. */
struct gen_load *gen_load_random(struct gen *g, const struct asym_machine *m, unsigned n, bool uniform);

/** The defaults of a policy's options, into params_size bytes at params. */
void gen_params(const struct asym_policy *policy, void *params);

void gen_load_free(struct gen_load *load);

/** Set the runnable share of all threads of an application, and the application's counts with it. */
void gen_load_share(struct gen_load *load, size_t app, double share);

/** Set it for one thread. */
void gen_load_share_one(struct gen_load *load, size_t task, double share);

/** About a third of the applications go down to one runnable thread, a tenth idle. */
void gen_load_calm(struct gen *g, struct gen_load *load);

/** Time passes. */
void gen_load_pass(struct gen_load *load, asym_usec time);

/** Do to the threads what the kernel would; actions on threads that are not there do nothing. */
void gen_load_apply(struct gen_load *load, const struct asym_action *actions, size_t n);

/** Every steered thread runs where the plan wants it. */
void gen_load_move(struct gen_load *load, const struct asym_plan *plan);

void gen_load_intern(struct gen_load *load);

#endif
