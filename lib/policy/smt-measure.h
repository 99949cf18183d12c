/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What smt-symb and smt-sos measure (Snavely 2002, 5.2 and 5.4): in a sample phase the IPC of each thread alone on its
 * core, in a window that it is given for it, and beside the others of its core. The ratio is X; of whom either is not
 * known (it slept, or did not come to be alone), 1/P is taken, as by Naive.
 *
 * On a core with more than four threads a CPU, only those are measured whose share is at least half of what they have
 * anyhow: there is no time for more, and the others would want a window only if X were lower still.
 */
#ifndef ASYM_POLICY_SMT_MEASURE_H
#define ASYM_POLICY_SMT_MEASURE_H

#include <stdint.h>

#include <asym/policy.h>

#include "policy/smt-place.h"

/** Parameters; smt in front. */
struct asym_smt_measure_params {
    struct asym_smt_params smt;
    asym_usec sample_period, symbios;
};

/** Of the policy; in front of its state. */
struct asym_smt_measure {
    asym_usec began, last; /* the first sample phase, the last plan */
};

struct asym_smt_count {
    double instructions, cycles;
};

/** As bits: who has a core to itself in some pairing is alone, and that is what it achieves there. */
enum { ASYM_SMT_COUNT_ALONE = 1 << 0, ASYM_SMT_COUNT_TOGETHER = 1 << 1 };

/** State of a thread; its seat in front. */
struct asym_smt_record {
    struct asym_smt_seat seat;
    unsigned counting; /* since the last plan: ASYM_SMT_COUNT_* */
    unsigned pairing;  /* meanwhile */
    uint64_t cycle;    /* the sample phase of which the counts are */
    struct asym_smt_count alone, together[ASYM_SMT_PAIRINGS];
};

/** The stage, and everybody's seat, as asym_smt_init; then what was counted is credited. 0; -ENOBUFS. */
int asym_smt_measure_begin(struct asym_smt *s, unsigned pairings, const struct asym_policy_input *in,
                           struct asym_assignment *ret);

/** asym_smt_finish, and what is to be counted until the next look. */
void asym_smt_measure_finish(struct asym_smt *s, const int32_t *home);

/** 0: not known. */
double asym_smt_ipc(const struct asym_smt_count *count);

static inline struct asym_smt_record *asym_smt_record_of(const struct asym_smt *s, size_t t)
{
    return s->in->threads[t].state;
}

#define ASYM_SMT_OPTION_SAMPLE(params)                                                                                 \
    {                                                                                                                  \
        .key = "sample_period", .type = ASYM_OPTION_DURATION, .offset = offsetof(params, sample_period), .def = "4s",  \
        .min = 100e3, .max = 3600e6,                                                                                   \
        .help = "How long threads are measured: half of it one by one on their cores, half together.",                 \
    }
#define ASYM_SMT_OPTION_SYMBIOS(params)                                                                                \
    {                                                                                                                  \
        .key = "symbios", .type = ASYM_OPTION_DURATION, .offset = offsetof(params, symbios), .def = "60s", .min = 0,   \
        .max = 86400e6, .help = "How long what was found is made use of before it is measured anew.",                  \
    }

#endif
