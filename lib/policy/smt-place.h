/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Threads on cores with several hardware threads: what smt-naive, smt-symb and smt-sos share (Snavely 2002).
 *
 * Every thread has a seat: a CPU on which it stays, spread evenly as by any policy. A thread whose share of its core asks
 * for it has a window in every rotation: meanwhile it alone holds the core, with a claim on its CPU, and the others of the
 * core are guests on other cores, the least loaded ones. asymd stops no process, so that this is all that makes it alone.
 * At most half of the cores are held at a time: there has to be somewhere to go. Where somebody has nowhere else to go,
 * there is no window.
 *
 * This is the exception to rule 3 (policies.md): siblings that a window keeps clear are idle, even when they are fast.
 *
 * Beyond the source: a thread that wants less than its share is entitled to what it wants only, or one that mostly sleeps
 * would keep a core clear for nobody. When more threads than CPUs are on a core, who runs beside whom is the kernel's
 * choice, by nice, from one moment to the next. Looks are coarse: a window ends at a look, and one that is shorter than
 * the time between two looks is hit now and then, as often as its length says.
 *
 * With another pin than cpu the kernel may put threads on the siblings that a window keeps clear.
 */
#ifndef ASYM_POLICY_SMT_PLACE_H
#define ASYM_POLICY_SMT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "policy/smt.h"
#include "policy/spread.h"

/** Pairings that are tried in one sample phase. */
#define ASYM_SMT_PAIRINGS 4

/** The parameters of all of them; at the front of each one's own. */
struct asym_smt_params {
    asym_usec rotation;
    int weights; /* enum asym_smt_weights */
};

/** Of a thread; at the front of its state. */
struct asym_smt_seat {
    int32_t base;         /* CPU + 1; 0: none yet */
    int32_t given;        /* CPU of the last plan */
    asym_usec laid;       /* the stage its window is of, + 1 */
    double begin, length; /* of its window, in shares of that stage */
    asym_usec planned;    /* the plan it was last in */
};

/** A core while a plan is made. */
struct asym_smt_core {
    uint32_t n, contexts; /* threads with a seat on it, CPUs that may be used */
    double weights;       /* sum over its threads */
    int32_t alone;        /* the thread that holds it; -1: none */
    bool due, stuck;      /* a window is open; but somebody has nowhere else to go */
};

/** A plan being made. */
struct asym_smt {
    const struct asym_policy_input *in;
    struct asym_policy_input view; /* in, but that threads are at home on their seats */
    struct asym_policy_thread *threads;
    const struct asym_smt_params *params;
    struct asym_smt_stage stage;
    struct asym_spread sp;
    struct asym_smt_core *cores;
    int32_t *seat;          /* of each thread: CPU */
    double *length, *begin; /* of each core's windows together */
    uint32_t *all, *guests;
    size_t n_guests;
    /** X of a thread that shares its core with p - 1 others; NULL: 1 / p for all (Naive). */
    double (*x)(const struct asym_smt *s, uint32_t t, double p);
    bool compares;   /* pairings, in its sample phase */
    bool no_windows; /* shares are made by other means */
};

/** Take the memory and give every thread a seat. in, params and stage are read from s. 0; -ENOBUFS. */
int asym_smt_init(struct asym_smt *s, const struct asym_policy_input *in, struct asym_assignment *ret);

/** Seat everybody anew, each as near as can be to s->threads[].home. */
void asym_smt_seat_all(struct asym_smt *s);

/** Windows, guests, reasons, and what is remembered of it all: seats (home[t]; NULL: where they sit) among them. */
void asym_smt_finish(struct asym_smt *s, const int32_t *home);

static inline struct asym_smt_seat *asym_smt_seat_of(const struct asym_smt *s, size_t t)
{
    return s->in->threads[t].state;
}

static inline struct asym_smt_core *asym_smt_core_of(const struct asym_smt *s, uint32_t t)
{
    return &s->cores[s->in->machine->cpus[s->seat[t]].core];
}

extern const char *const asym_smt_weights_names[];

/** The rows of asym_smt_params, for the option table of params of a type whose field smt it is. */
#define ASYM_SMT_OPTION_ROTATION(params)                                                                               \
    {                                                                                                                  \
        .key = "rotation", .type = ASYM_OPTION_DURATION, .offset = offsetof(params, smt.rotation), .def = "1s",        \
        .min = 10e3, .max = 3600e6,                                                                                    \
        .help = "Every thread whose share asks for it is alone on its core once in this time.",                        \
    }
#define ASYM_SMT_OPTION_WEIGHTS(params)                                                                                \
    {                                                                                                                  \
        .key = "weights", .type = ASYM_OPTION_ENUM, .offset = offsetof(params, smt.weights), .def = "nice",            \
        .values = asym_smt_weights_names,                                                                              \
        .help = "What a share is made of: the kernel's weight of the nice value, or 19 - nice as in the source.",      \
    }

/** Why fetch priority refuses to run live. */
#define ASYM_SMT_NO_FETCH "no stock x86 or Arm kernel lets software set fetch priority; only a simulated core has it"

#endif
