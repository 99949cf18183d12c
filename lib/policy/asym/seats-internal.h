/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The steps of the policy asym. A seat is a CPU with the speed that a further thread would get there. A thread fills it by its
 * duty, the mean share of the time in which it is runnable. So a thread that sleeps most of the time leaves a seat on its CPU, and
 * a hyperthread is a seat of the speed that it adds to its core.
 *
 * A plan observes the threads, weighs them, fills the seats in the order of their speeds, grants claims, places the crowd, for
 * which no seat is left, and says how wide each mask is. asym.c has the steps in their order.
 */
#ifndef ASYM_POLICY_ASYM_SEATS_INTERNAL_H
#define ASYM_POLICY_ASYM_SEATS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/policy.h>

#include "base/macro.h"

/** A thread that has passed a limit keeps what that gave it down to this share of the limit. */
#define ASYM_SEATS_STAYS 0.8

/** A thread that was runnable for a smaller share of an interval slept in it. */
#define ASYM_SEATS_SLEPT_BELOW 0.95

/** A seat is no seat below this speed. */
#define ASYM_SEATS_LEAST 0.02

struct asym_seats_params {
    asym_usec tau, tau_duty, tau_couple, trial, quick;
    double sticky, duty, narrow, heavy, budget, fluid, flood, remote, miss_ns;
    int boost;
};

/** State of the policy. */
struct asym_seats_state {
    /** Until then these limits count as passed, see asym_seats; 0: they were not. */
    asym_usec crowded_until, flooded_until, presses_until, outnumbered_until, strangers_until;
    asym_usec needs_help_until; /**< until then the kernel needs help, see asym_machine_kernel_knows */
    asym_usec crowd_ends; /**< then a crowd ends even if threads outnumber CPUs, unless one is without a seat again */
    double light;         /**< of the last plan */
};

/** The rounds of a process. Each of its threads has them, because threads come and go: of several the last plan's are right. */
struct asym_seats_rounds {
    double in_step;        /**< how often its threads woke at once, of the intervals in which several woke */
    double period;         /**< mean time between two rounds in seconds, tau_couple; 0: not known */
    asym_usec began;       /**< the last one; 0: none did */
    asym_usec tried;       /**< for how long it has tried quick turns, and counted its rounds */
    asym_usec rests_until; /**< until then it may use all CPUs and takes no turns, while its rounds are short */
    uint32_t tried_rounds; /**< the rounds in tried */
    bool are_short;        /**< its threads sleep in most intervals */
    bool sleeps;           /**< they do in some */
};

/** State of a thread. Rates and speeds are shares of the fastest CPU's. */
struct asym_seats_thread {
    asym_usec mate_until; /**< until then another thread of its process counts as active; 0: none was */
    asym_usec job_until;  /**< the same of another thread of its application */
    asym_usec last, seen; /**< time of the last plan that measured it; 0: new. Time for which the policy has seen it */
    double duty;          /**< mean over tau_duty of the runnable share */
    double critical;      /**< mean over tau_couple of the critical share, if the input has it */
    double needed;        /**< mean over tau_couple of the runnable share, to compare critical with */
    double rate;          /**< mean over tau of the progress while runnable */
    double pace, usual;   /**< means of the progress and of the runnable share, tau_couple */
    double partial;       /**< share of the intervals in a part of which it slept, tau_couple */
    double step, since;   /**< seconds of progress in the interval; since it woke in it, 0: it did not */
    double round;         /**< of a coupled program: seconds of progress since the last time that a thread woke */
    struct asym_seats_rounds rounds;
    double work;            /**< seconds of progress, in all */
    double exec, stall;     /**< seconds of an instruction on a CPU of speed 1; of its misses. exec 0: not known */
    double left;            /**< of the seats that it left since `last`, in exchanges: speed by microseconds */
    asym_usec sat_at;       /**< the last of these exchanges; valid until the next measurement */
    double smt;             /**< share of the CPU's speed that the last plan expected beside siblings */
    int16_t given;          /**< CPU of the last plan */
    int16_t node;           /**< where it first ran, + 1; 0: not known */
    uint8_t kind;           /**< of its seat: a number of seats-fill.c; 0: none */
    bool awake, woke;       /**< it was awake at the last plan; it was, and slept at the plan before */
    bool coupled, roams;    /**< its program waits for all of its threads; its mask had several core types */
    uint8_t claims;         /**< ASYM_CLAIM_* that the last plan granted */
    bool above, busy, pins; /**< it passed the limits heavy, fluid and narrow */
    bool counts;            /**< its program needs enough of a CPU to have seats */
    bool rests;             /**< it is coupled, and rests_until is not over */
    bool leads;             /**< its process waits for it more than for any other of its threads, on whatever seats */
};

/**
 * The later steps read this of a thread. It is side by side: with 10,000 threads each pass over the states and the input would
 * wait for memory.
 */
struct asym_seats_brief {
    const struct asym_mask *allowed;
    float duty, rate; /**< as in its state */
    float slow;       /**< the duty of the input */
    uint32_t app;
    int16_t home;                          /**< preferred_cpu */
    int16_t cpu;                           /**< of the new plan; -1: none yet */
    int8_t last_type;                      /**< of the CPU of the last plan; -1: none */
    uint8_t kind;                          /**< as in its state; of the new plan as soon as it sits */
    bool coupled, plain;                   /**< as in its state; its speed is that of its CPU, wherever its memory is */
    bool above, busy, pins;                /**< as in its state; of the new plan from step 7 on */
    uint8_t slowness;                      /**< of its turns */
    bool leads : 1, counts : 1, rests : 1; /**< as in its state */
    bool settled : 1;                      /**< the policy has seen it for longer than `trial` */
    bool first : 1;                        /**< of the new plan: it runs before those with which it shares its CPU */
    uint8_t width; /**< ASYM_PIN_* of the new plan by rank and duty; before step 8 ASYM_PIN_ALL for one that roams */
};

/** A plan while it is computed. */
struct asym_seats {
    const struct asym_policy_input *in;
    const struct asym_seats_params *p;
    struct asym_assignment *ret;
    double fastest, slowest;        /**< speeds of the machine */
    double *speed;                  /**< per CPU: as a share of the fastest */
    bool slow;                      /**< threads outnumber CPUs, see asym_seats_slowness */
    struct asym_seats_brief *of;    /**< per thread */
    double *weight, *density, *key; /**< per thread: critical share by nice weight; the same by its duty; rank */
    double *behind;  /**< per thread of a coupled program: how much earlier than the others its turn is, -1..1 */
    double *active;  /**< per application: the share of the time in which it is active, the largest of its duties */
    double *overlap; /**< per application: for this share of its time a thread of it has a given other one beside it */
    double *used, *top, *least; /**< per CPU: the duties of its threads, asleep or not; largest and least density */
    uint32_t *n_on;             /**< per CPU: threads that sit there */
    struct asym_mask *on;       /**< per application: the CPUs on which its threads sit */
    uint32_t *open, *list, *scratch; /**< threads without a CPU; working memory */
    uint32_t *heap, *place; /**< of the crowd: CPUs by cost, a heap for each core type; where a CPU is in its heap */
    double *cost;           /**< of the crowd, per CPU */
    double *demand, *kept;  /**< per CPU: what its threads need of it; those that may not leave it for all with room */
    struct asym_mask room[2]; /**< open CPUs that are not full; the second for threads that roam already */
    double needed;            /**< CPUs that all threads need */
    bool full;                /**< more than there are */
    size_t n_open;
    size_t n_counting;       /**< processes that want seats, of applications that count */
    uint8_t *claim;          /**< per thread: ASYM_CLAIM_* */
    struct asym_mask closed; /**< seats that no thread wants */
    double light;            /**< the largest density in the crowd, or in the last one while crowded; 0: none */
    struct asym_mask narrow; /**< CPUs of the crowd's threads that may not run on all: no claim takes one of these */
    uint32_t *groups; /**< per nice group: the application, + 1, before which a boost runs; 0: none; or SEVERAL */
    bool *holds;      /**< per application: a thread of it, for which nice values do not count, has a CPU alone */
    bool strangers; /**< threads that asymd does not steer need, or needed lately, a CPU or more: they enter all CPUs */
    bool crowded, presses, flooded; /**< some have or had no seat; unsteered ones need too much; far too many threads */
};

#define ASYM_SEATS_SEVERAL UINT32_MAX

/** Bits of the claims of a thread: to its CPU, and to the siblings of it, which stay idle. */
enum { ASYM_CLAIM_CPU = 1 << 0, ASYM_CLAIM_SIBLINGS = 1 << 1 };

static inline struct asym_seats_thread *asym_seats_of(const struct asym_seats *q, size_t t)
{
    return (struct asym_seats_thread *)q->in->threads[t].state;
}

/** Returns whether value passes limit, with the hysteresis of a thread that had passed it. */
static inline bool asym_seats_passes(double value, bool had, double limit)
{
    return value >= limit * (had ? ASYM_SEATS_STAYS : 1);
}

/** Returns until when what this plan sees counts: for `trial`, and for the next plans where they are rare. */
static inline asym_usec asym_seats_until(const struct asym_seats *q)
{
    return q->in->now + ASYM_MAX(ASYM_MAX(q->p->trial, 3 * q->in->interval), 1);
}

/** Threads that sleep for seconds come and go. Each change of what a thread is would change its mask, so it lasts for this time. */
#define ASYM_SEATS_KNOWN_FOR (10 * ASYM_SEC)

/** A thread that needs less of a CPU than this sleeps most of the time. */
#define ASYM_SEATS_SLEEPS_BELOW 0.5

/** The slowness of a process of one thread in a job of several, such as a compiler of a build. */
#define ASYM_SEATS_ONE_OF_JOB 16

/**
 * Returns how slow its turns are: 1 is quick. On a kernel each swap is two changes of masks, and quick turns gain (up to 44 %) only
 * where threads of a process wait for each other at barriers, or spin there:
 *  - less between the processes of a job, or programs; the ranks of MPI are an exception that is not made;
 *  - less where rounds are shorter than an interval, as the frames of a game: one thread has the slower seat in each of them;
 *  - where threads outnumber CPUs, less between those that never sleep, and somewhat less between others.
 */
static inline unsigned asym_seats_slowness(const struct asym_seats *q, size_t t)
{
    const struct asym_seats_thread *s = asym_seats_of(q, t);
    const bool had_mate = s->mate_until != 0 && q->in->now < s->mate_until + ASYM_SEATS_KNOWN_FOR;
    const bool had_job = s->job_until != 0 && q->in->now < s->job_until + ASYM_SEATS_KNOWN_FOR;
    if (q->in->now >= s->mate_until) /* no other thread of its process was in a plan lately */
        return had_job && !had_mate ? ASYM_SEATS_ONE_OF_JOB : 4;
    return s->rounds.are_short || (q->slow && !s->rounds.sleeps) ? 8 : q->slow ? 2 : 1;
}

/** Returns the thread's speed on a CPU of that speed, 0..1, by its counters if they are known. */
double asym_seats_sigma(const struct asym_seats *q, size_t t, double speed, bool is_remote);

/** Returns whether the CPU is far from the memory of the thread. */
bool asym_seats_is_remote(const struct asym_seats *q, size_t t, int cpu);

/**
 * Returns whether a lower nice value lets the thread run before those that share its CPU: a thread of another program in its nice
 * group is one.
 */
static inline bool asym_seats_nice_counts(const struct asym_seats *q, size_t t)
{
    const struct asym_policy_thread *thread = &q->in->threads[t];
    const uint32_t of = q->groups[thread->nice_group];
    return thread->nice_group == 0 || (of != 0 && of != thread->app + 1);
}

/** Returns the speed of the thread in its seat, 0..1. */
double asym_seats_speed_given(const struct asym_seats *q, size_t t);

/** Returns the share that a new value counts in a mean over tau, after that time. */
double asym_seats_gain(double seconds, asym_usec tau);

/** Step 1: bring the means of all threads up to date. */
void asym_seats_observe(struct asym_seats *q);

/** Steps 2 to 4: weights, densities, and the turns of coupled programs. */
void asym_seats_weigh(struct asym_seats *q);

/** Returns the speed that a thread of that density would add on cpu, a share of the fastest CPU's; 0: no seat is left. */
double asym_seats_value(const struct asym_seats *q, int cpu, double density);

/** Returns the share of its speed that cpu has beside its busy siblings. */
double asym_seats_beside(const struct asym_seats *q, int cpu);

/** Step 5: fill the seats, the fastest first. Afterwards open has the threads without one. */
void asym_seats_fill(struct asym_seats *q);

/** Put thread t on cpu. */
void asym_seats_sit(struct asym_seats *q, uint32_t t, int cpu);

/** Step 6: place the threads of open on the CPUs of cpus. */
void asym_seats_place_crowd(struct asym_seats *q, const struct asym_mask *cpus);

/** Place the threads that do not count, beside those that have a place already. */
void asym_seats_place_small(struct asym_seats *q, const struct asym_mask *cpus);

/** Step 7: find out who ranks above the crowd, and grant claims within the budget. Returns the CPUs that the crowd may use. */
struct asym_mask asym_seats_claim(struct asym_seats *q);

/** A thread that is alone exchanges seats of the plan in ret with a thread of its application that has a better one. */
void asym_seats_exchange(struct asym_seats *q);

/** Move the k of n threads of list with the largest keys to its front, sorted, the largest first. */
void asym_seats_sort(struct asym_seats *q, uint32_t *list, size_t n, size_t k);

#endif
