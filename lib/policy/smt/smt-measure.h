/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The measurement of smt-symb and smt-sos (Snavely 2002, 5.2 and 5.4). In a sample phase they measure the IPC of each thread
 * alone on its core, in a window that it gets for this, and beside the other threads of its core. X is the ratio of the
 * two. If one of them is not known (the thread slept, or never was alone), X is 1/P, as in Naive.
 *
 * On a core with more than four threads for each CPU, the policy measures only threads whose share is at least half of the
 * 1/P that they get anyway. The sample phase has no time for more, and the other threads would need a window only if X were
 * lower still.
 *
 * With `catch_up` an account says how far each thread is behind: what its share of the core is of its speed alone, less its
 * progress, in seconds alone. "If a job starts falling behind it can be solo-scheduled for a while to catch up" (5.2): from
 * `catch_up` behind, its window is the whole rotation, until it is behind no more.
 */
#ifndef ASYM_POLICY_SMT_MEASURE_H
#define ASYM_POLICY_SMT_MEASURE_H

#include <stdint.h>

#include <asym/policy.h>

#include "policy/smt/smt-place.h"

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
