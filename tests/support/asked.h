/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A policy that is asked directly about a few applications on a machine of any speeds. */
#ifndef ASYM_TESTS_ASKED_H
#define ASYM_TESTS_ASKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#define ASKED_MOST  128
#define ASKED_STATE 256

struct asked_app {
    enum asym_phase phase;
    double runnable;
    asym_usec since; /**< its phase */
    unsigned first, n;
    bool here;
};

struct asked_thread {
    unsigned app;
    bool here;      /**< runnable: the policy sees it */
    int nice;       /**< its own */
    uint64_t start; /**< of its id; its number unless set */
    double runnable;
    int32_t home;
    const struct asym_mask *may;
    const struct asym_profile *profile;
    struct asym_sample sample;     /**< of the time since the last plan; instructions 0: there is none */
    struct asym_assignment answer; /**< of the last plan it was in */
    _Alignas(16) unsigned char state[ASKED_STATE];
};

struct asked {
    const struct asym_policy *policy;
    struct asym_machine machine;
    asym_usec now;
    const void *params;
    unsigned n_apps, n_threads;
    struct asked_app apps[ASKED_MOST];
    struct asked_thread threads[ASKED_MOST];
    unsigned moved; /**< threads that the last plan moved off their home */
    unsigned count[ASYM_MAX_CPUS];
    _Alignas(16) unsigned char state[4 * ASKED_STATE];
};

/** CPU 0.. with these speeds, one LLC and node, no siblings. */
void asked_begin(struct asked *w, const char *policy, const double *speeds, size_t n);

/** A new application of n threads, all runnable, phase by n (at most 2: serial). Returns its first thread. */
unsigned asked_enter(struct asked *w, unsigned n);

/** Its threads leave: for good, or until here is set again. */
void asked_leave(struct asked *w, unsigned app);

/** Change the phase of an application, now. */
void asked_phase(struct asked *w, unsigned app, enum asym_phase phase, double runnable);

/** 100 ms later: plan, check what holds for every answer, and let each thread run where it was sent. */
void asked_plan(struct asked *w);

/** The same, so much later. */
void asked_plan_after(struct asked *w, asym_usec time);

/** The same at the same time. */
void asked_plan_again(struct asked *w);

static inline int32_t asked_cpu(const struct asked *w, unsigned thread)
{
    return w->threads[thread].answer.cpu;
}

#endif
