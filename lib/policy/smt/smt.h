/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Placement of threads on cores with several hardware threads, shared by smt-naive, smt-symb and smt-sos (Snavely 2002).
 *
 * Every thread has a seat: a CPU on which it stays. Seats are spread evenly, as in any policy. A thread whose share of its
 * core requires it has a window in every rotation. During its window it alone holds the core, its CPU is exclusive, and the
 * other threads of the core are guests on the least loaded other cores. asymd stops no process, so it can only move the
 * others away. At most half of the cores are held at a time, because the guests need other cores. If a thread of the core
 * may run nowhere else, there is no window.
 *
 * This is the exception to rule 3 (docs/policies.md): siblings that a window keeps clear are idle, even if they are fast.
 *
 * Additions to the source:
 * - A thread that is runnable for less than its share is entitled to that time only. Otherwise a thread that mostly sleeps
 *   would keep a core clear without using it.
 * - When a core has more threads than CPUs, the kernel chooses, by nice, which of them run side by side at each moment.
 * - A window ends at a sample. A window shorter than the time between two samples is hit in proportion to its length.
 *
 * With a `pin` other than cpu the kernel may put threads on the siblings that a window keeps clear.
 */
#ifndef ASYM_POLICY_SMT_SMT_H
#define ASYM_POLICY_SMT_SMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "policy/placement/spread.h"

/*
 * smt-place-shares.c: the arithmetic of proportional shares on cores with several hardware threads (Snavely 2002, 3 and 4.1), with
 * numbers only. The source has one core. Here the threads on each core share that core.
 */

enum asym_smt_weights {
    ASYM_SMT_NICE,   /**< the kernel's weight of the nice value */
    ASYM_SMT_SOURCE, /**< 19 - p, with p = nice clamped to 0..19 (Snavely 2002, 3) */
};

/** Returns the weight of a nice value, which is clamped to -20..19. */
double asym_smt_weight(enum asym_smt_weights weights, int nice);

/** Returns FRAC, the part of its core that a thread is entitled to; equal parts of n if all weights are 0. */
double asym_smt_frac(double weight, double sum, size_t n);

/**
 * Returns COFRAC, or COFRAC': the part of the time that a thread may run beside others and still get its share. x is the
 * part of its speed alone that it then has. Naive takes x = 1/P (equation 1). For COFRAC' the source prints MAX and 1/X.
 * Its text requires more coscheduling for a larger X, and names equation 1 as the case X = 1/P. This formula gives both;
 * the printed one does not.
 */
double asym_smt_cofrac(double frac, double x);

/**
 * Lays n windows end to end round a period of length 1, from shift on (McNaughton 1959). At most limit windows are open at
 * once, and no window overlaps itself. If they do not fit, all are shortened by one factor. Rewrites length[].
 * Returns the factor, at most 1.
 */
double asym_smt_lay(double *length, size_t n, unsigned limit, double shift, double *ret_begin);

/** Returns the rest of a window at a point of the period; the end of the period also ends it. 0 if it is not open. */
double asym_smt_left(double begin, double length, double at);

enum asym_smt_kind {
    ASYM_SMT_RUN,      /**< windows by share */
    ASYM_SMT_ALONE,    /**< a window for each thread, to measure it alone */
    ASYM_SMT_TOGETHER, /**< no windows: threads are measured side by side */
};

/** The division of time into stages. A part of length 0 does not exist. */
struct asym_smt_times {
    asym_usec rotation; /* each window opens once in it */
    asym_usec sample;   /* length of the sample phase: half of it alone, half together */
    asym_usec symbios;  /* time between two sample phases */
    unsigned pairings;  /* number of pairings, tried one after the other while together */
};

struct asym_smt_stage {
    enum asym_smt_kind kind;
    asym_usec from, until; /**< windows are laid once for this time */
    uint64_t cycle;   /**< number of the sample phase that this is or follows, from 1; 0: there is no sample phase */
    unsigned pairing; /**< the pairing that is tried; 0: the current one */
};

/** Returns the stage at time now, where the first stage began at `began`. */
struct asym_smt_stage asym_smt_stage_at(const struct asym_smt_times *times, asym_usec began, asym_usec now);

/** Returns the position of a time in the stage: 0 .. 1. */
double asym_smt_at(const struct asym_smt_stage *stage, asym_usec now);

/**
 * Returns the point of the stage from which its windows are laid. Samples in step with the rotation would hit a short
 * window always or never. So each stage uses another point (golden section), and over several stages each window gets its
 * proportion of the samples.
 */
double asym_smt_shift(const struct asym_smt_stage *stage);

/** Number of pairings that one sample phase tries. */
#define ASYM_SMT_PAIRINGS 4

/** The parameters that all three share; they stand at the front of each policy's own. */
struct asym_smt_params {
    asym_usec rotation;
    int weights; /* enum asym_smt_weights */
};

/** The seat of a thread; it stands at the front of the thread's state. */
struct asym_smt_seat {
    int32_t base;         /* CPU + 1; 0: none yet */
    int32_t given;        /* CPU in the last plan */
    asym_usec laid;       /* start of the stage that its window belongs to, + 1 */
    double begin, length; /* its window, in shares of that stage */
    asym_usec planned;    /* time of the last plan that it was in */
};

/** A core, during one plan. */
struct asym_smt_core {
    uint32_t n, contexts; /* threads with a seat on it; its usable CPUs */
    double weights;       /* sum over its threads */
    int32_t alone;        /* the thread that holds it; -1: none */
    bool due, stuck;      /* a window is open; but another of its threads may run nowhere else */
};

/** State of one plan while it is computed. */
struct asym_smt {
    const struct asym_policy_input *in;
    struct asym_policy_input seated; /* a copy of in, in which each thread prefers the CPU of its seat */
    struct asym_policy_thread *threads;
    const struct asym_smt_params *params;
    struct asym_smt_stage stage;
    struct asym_spread sp;
    struct asym_smt_core *cores;
    int32_t *seat;          /* per thread: CPU */
    double *length, *begin; /* per core: all its windows together */
    uint32_t *all, *guests;
    size_t n_guests;
    /** Returns X of a thread that shares its core with p - 1 others; NULL: X is 1 / p for all (Naive). */
    double (*x)(const struct asym_smt *s, uint32_t t, double p);
    bool (*behind)(const struct asym_smt *s, uint32_t t); /* the thread is to be alone for a while; NULL: none */
    bool compares;                                        /* the sample phase compares pairings */
    bool no_windows;                                      /* the fetch unit makes the shares */
};

/** Reasons of a thread that is measured. */
extern const struct asym_reason asym_smt_own_core;       /**< no other thread has its seat on the core */
extern const struct asym_reason asym_smt_measured_alone; /**< figure 0: seconds left */
extern const struct asym_reason asym_smt_measured;       /**< beside the others of its core; figure 0: seconds left */

/**
 * Takes memory from the arena and gives every thread a seat. s->params and s->stage must be set.
 * Returns 0, or -ENOBUFS if the arena is too small.
 */
int asym_smt_init(struct asym_smt *s, const struct asym_policy_input *in, struct asym_assignment *ret);

/** Returns the part of its core that the thread is entitled to. */
double asym_smt_share(const struct asym_smt *s, uint32_t t);

/** Seats all threads again, each as near as possible to its s->threads[].preferred_cpu. */
void asym_smt_seat_all(struct asym_smt *s);

/**
 * Opens windows, moves guests away, sets the reasons, and updates the state of each thread. preferred_cpu[t] becomes the
 * seat that thread t keeps for the next plan; NULL: it keeps its current seat.
 */
void asym_smt_finish(struct asym_smt *s, const int32_t *preferred_cpu);

static inline struct asym_smt_seat *asym_smt_seat_of(const struct asym_smt *s, size_t t)
{
    return s->in->threads[t].state;
}

static inline struct asym_smt_core *asym_smt_core_of(const struct asym_smt *s, uint32_t t)
{
    return &s->cores[s->in->machine->cpus[s->seat[t]].core];
}

extern const char *const asym_smt_weights_names[];

/** Option rows of asym_smt_params, which is the params type or stands at its front. */
#define ASYM_SMT_OPTION_ROTATION                                                                                       \
    ASYM_OPTION(struct asym_smt_params, DURATION, rotation, .def = "1s", .min = 10e3, .max = 3600e6,                   \
                .help = "A thread whose share requires it is alone on its core once in this time.")
#define ASYM_SMT_OPTION_WEIGHTS                                                                                        \
    ASYM_OPTION(                                                                                                       \
        struct asym_smt_params, ENUM, weights, .def = "nice", .values = asym_smt_weights_names,                        \
        .help = "A share follows from the kernel's weight of the nice value (nice), or from 19 - nice (source).")

/** The reason for which a policy that needs fetch priority refuses to run live. */
#define ASYM_SMT_NO_FETCH "no stock x86 or Arm kernel lets software set fetch priority; only a simulated core has it"

/*
 * smt-measure.c: the measurement of smt-symb and smt-sos (Snavely 2002, 5.2 and 5.4). In a sample phase they measure the IPC of
 * each thread alone on its core, in a window that it gets for this, and beside the other threads of its core. X is the ratio of the
 * two. If one of them is not known (the thread slept, or never was alone), X is 1/P, as in Naive.
 *
 * On a core with more than four threads for each CPU, the policy measures only threads whose share is at least half of the 1/P that
 * they get anyway. The sample phase has no time for more, and the other threads would need a window only if X were lower still.
 *
 * With `catch_up` an account says how far each thread is behind: what its share of the core is of its speed alone, less its
 * progress, in seconds alone. "If a job starts falling behind it can be solo-scheduled for a while to catch up" (5.2): from
 * `catch_up` behind, its window is the whole rotation, until it is behind no more.
 */

/** Parameters; smt stands in front. */
struct asym_smt_measure_params {
    struct asym_smt_params smt;
    asym_usec sample_period, symbios, catch_up;
};

/** State of the measurement; it stands in front of the policy's state. */
struct asym_smt_measure {
    asym_usec began, last; /* when the first sample phase began; time of the last plan */
};

struct asym_smt_count {
    double instructions, cycles;
};

/** Bits: a thread that has a core to itself in a pairing sets both, because its IPC alone is what it achieves there. */
enum { ASYM_SMT_COUNT_ALONE = 1 << 0, ASYM_SMT_COUNT_TOGETHER = 1 << 1 };

/** State of a thread; its seat stands in front. */
struct asym_smt_record {
    struct asym_smt_seat seat;
    unsigned counting; /* what is counted since the last plan: ASYM_SMT_COUNT_* */
    unsigned pairing;  /* the pairing since the last plan */
    uint64_t cycle;    /* number of the sample phase that the counts are from */
    struct asym_smt_count alone, together[ASYM_SMT_PAIRINGS];
    double behind; /* seconds alone; below 0: ahead */
    bool catches_up;
};

/**
 * Sets the stage, seats all threads as asym_smt_init does, and adds the samples since the last plan to the counts.
 * Returns 0, or -ENOBUFS if the arena is too small.
 */
int asym_smt_measure_begin(struct asym_smt *s, unsigned pairings, const struct asym_policy_input *in,
                           struct asym_assignment *ret);

/** Calls asym_smt_finish, and decides for each thread what to count until the next sample. */
void asym_smt_measure_finish(struct asym_smt *s, const int32_t *preferred_cpu);

/** Returns instructions per cycle; 0 if it is not known. */
double asym_smt_ipc(const struct asym_smt_count *count);

static inline struct asym_smt_record *asym_smt_record_of(const struct asym_smt *s, size_t t)
{
    return s->in->threads[t].state;
}

extern const struct asym_option asym_smt_measure_options[];

/** The fields of struct asym_policy that are alike in the policies that measure. */
#define ASYM_SMT_MEASURING                                                                                             \
    .needs = 1u << ASYM_SIGNAL_SMT | 1u << ASYM_SIGNAL_IPC, .pin = ASYM_PIN_CPU, .apart = true,                        \
    .every_snapshot = true, .params_size = sizeof(struct asym_smt_measure_params),                                     \
    .options = asym_smt_measure_options, .task_state_size = sizeof(struct asym_smt_record)

#endif
