/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Records in memory, made from generated loads. A call that fails ends in an assertion. */
#ifndef ASYM_TESTS_SUPPORT_RECORD_FIXTURE_H
#define ASYM_TESTS_SUPPORT_RECORD_FIXTURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <asym/engine.h>
#include <asym/port.h>

#include "support/generate.h"

struct record_fixture {
    char *bytes; /* the record; owned */
    size_t len;
    char **shown; /* record_fixture_show of each snapshot that the writer handed on; owned */
    size_t n;     /* number of snapshots */
};

/** The parameters of a record to make. */
struct record_fixture_plan {
    uint64_t seed;
    unsigned threads, snapshots;
    asym_usec interval;
    const char *policy;
    bool noisy;    /* each thread has another share in each snapshot */
    bool enforced; /* the actions are carried out; else a dry actuator refuses them */
    bool plain;    /* the machine has four CPUs, two of them fast */
    bool keep;     /* fill shown */
    /* Called with each plan; NULL: not called. */
    void (*planned)(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                    const struct asym_action *actions, size_t n_actions);
    void *ctx;
};

void record_fixture_make(struct record_fixture *f, const struct record_fixture_plan *plan);
void record_fixture_done(struct record_fixture *f);

/** Returns all fields of a snapshot as text; the caller frees it. */
char *record_fixture_show(const struct asym_snapshot *s);

#endif
