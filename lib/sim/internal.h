/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The simulation's insides, shared by the files that make it up. Times are in ns. */
#ifndef ASYM_SIM_INTERNAL_H
#define ASYM_SIM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/heap.h"
#include "sim/rng.h"
#include "sim/sim.h"

#define SIM_NONE UINT32_MAX

/** Points in time of a snapshot begin here: 0 is "never" to the engine. */
#define SIM_EPOCH (1000 * ASYM_SEC)

/** Jobs may arrive while all instances of their program are busy: so many wait, more are turned away, and counted. */
#define SIM_MAX_WAITING 4096u

enum { SIM_MAX_DEPTH = 4 };

/** Up to so many threads a CPU are told apart at once; among CPUs with more one has to look. */
enum { SIM_LEVELS = 64, SIM_LAST_LEVEL = SIM_LEVELS - 1 };

enum sim_state { SIM_NEW /* not begun, or has ended */, SIM_ASLEEP, SIM_QUEUED, SIM_RUNNING };

/** What a thread's running segment is part of. */
enum sim_mode { SIM_IDLE /* waits for work */, SIM_CHUNK, SIM_CRITICAL, SIM_LOCKED_OUT, SIM_PAUSED };

/* Three cache lines: what queues are searched by, what accounting counts up, and what is rarely asked for. */
struct sim_thread {
    _Alignas(64) uint8_t state;
    uint8_t mode;
    bool spinning, newborn, monitor, has_run;
    int8_t nice;
    bool roams; /* its mask leaves a choice */
    uint32_t proc;
    int32_t cpu;         /* where it is, or was last; -1: nowhere yet */
    int32_t node;        /* where its memory is; -1: nowhere yet */
    uint32_t next, prev; /* in the queue of its CPU, or in the queue of the lock */
    uint32_t mask;       /* by number */
    const struct asym_sim_memory *memory;
    double left;     /* instructions of its segment; ns while spinning */
    double debt;     /* ns of stall before it goes on */
    double vruntime; /* ns at weight 1024 */
    double per_ns;   /* virtual time per ns */
    uint64_t queued_at;
    /* totals of this life */
    uint64_t ran, waited;
    double work; /* instructions of segments; the rest with those of spinning */
    double instructions, cycles, misses;
    uint64_t spun;
    /* the same at the last look */
    uint64_t ran_then, waited_then, spun_then;
    double instructions_then, cycles_then, misses_then;
};
_Static_assert(sizeof(struct sim_thread) == 3 * 64, "three cache lines");

/** Masks that are counted apart among those who wait for a CPU: mostly they all have the same. */
enum { SIM_CENSUS = 4 };

struct sim_cpu {
    uint32_t running, last; /* thread; SIM_NONE */
    uint32_t head, tail, n_queued;
    uint32_t n_roaming; /* of those queued: may run elsewhere, too */
    struct sim_census {
        uint32_t mask[SIM_CENSUS], n[SIM_CENSUS], others;
    } census;       /* of those: with which masks; others: with any */
    uint32_t level; /* in asym_sim.levels */
    uint32_t core, llc, node;
    bool pending, preempt; /* preempt: look whether the first in the queue goes first now */
    bool late;             /* the time of its next event is found at the end of this one */
    uint64_t tick_phase;
    double hz;            /* cycles per ns, ticks taken off */
    double rate, missing; /* of the running thread: instructions and misses per ns (spinning: 1) */
    double issue;         /* instructions per ns, spinning included */
    double min_vruntime;
    uint64_t since;      /* accounted up to */
    uint64_t slice_from; /* when the running thread got it */
};

struct sim_llc {
    uint64_t used_kib; /* working sets of those running under it */
    double level;      /* KiB of its working set that each can keep; INFINITY: all of it */
    uint32_t first, n; /* into asym_sim.by_llc */
};

struct sim_core {
    uint32_t first, n; /* into asym_sim.by_core */
};

struct sim_proc {
    uint32_t program, instance, first, n;
    bool alive;
    uint32_t generation, step, passes_left, out; /* out: threads that have not arrived */
    uint32_t loops[SIM_MAX_DEPTH], depth;
    double pool, parallel; /* work left to take; of the last parallel step */
    uint32_t holder, lock_head, lock_tail;
    uint64_t arrived, born;
    struct sim_rng rng;
};

struct sim_masks; /* masks.c */

struct sim_program {
    uint32_t first_proc, n_procs;
    bool active;
    uint64_t *waiting; /* owned: arrival times, a ring */
    uint32_t n_waiting, first_waiting;
    uint64_t n_jobs; /* that have begun, of those that arrive by rate */
    struct sim_rng rng;
    char comm[16];
    struct asym_profile profile;
    struct asym_sim_tally tally;
    double past_work, past_cpu; /* of lives that have ended */
};

struct asym_sim {
    const struct asym_scenario *scenario; /* borrowed */
    struct asym_machine *machine;         /* owned, as the arrays below */
    struct sim_cpu *cpus;
    struct sim_thread *threads;
    struct sim_proc *procs;
    struct sim_program *programs;
    struct sim_llc *llcs;
    struct sim_core *cores;
    uint32_t *by_llc, *by_core, *pending;
    uint64_t *alive; /* a bit for each of procs: those that look need not go through all */
    struct sim_masks *masks;
    uint32_t n_cpus, n_threads, n_procs, n_programs, n_llcs, n_cores, n_pending;
    uint32_t n_ended; /* lives that have come to their end */
    uint64_t seed, now, end;
    uint64_t kick_at; /* when idle CPUs look again; SIM_NEVER */
    bool over;
    const volatile sig_atomic_t *stop; /* borrowed; NULL: nobody stops it */
    uint32_t polled;
    struct asym_mask idle, overloaded;   /* CPUs with nothing to do; with somebody waiting who may run elsewhere, too */
    struct asym_mask levels[SIM_LEVELS]; /* CPUs by the threads they have; the last: those with as many or more */
    uint32_t at_level[SIM_LEVELS];       /* how many */
    uint32_t top_level;                  /* the highest that has any */
    uint32_t n_waiting;                  /* threads, in all queues */
    uint32_t next_balance;               /* CPU that balances next, at balance_at: they take turns */
    uint64_t balance_at;
    struct sim_heap heap;
    struct sim_rng rng;
    struct asym_sim_totals totals;
    struct asym_sim_tracer tracer;
    double tick_share; /* what ticks leave */
    double slowest;    /* speed of the slowest core in the scenario's units: those of the machine are relative to it */
    struct sim_ports *ports; /* ports.c */
};

/*
 * Slots of the heap: CPUs, threads' timers, programs' arrivals, the kick of idle CPUs. Balancing has none: at one instant it
 * comes behind the CPUs' events and before all others.
 */
static inline uint32_t sim_slot_timer(const struct asym_sim *s, uint32_t thread)
{
    return s->n_cpus + thread;
}

static inline uint32_t sim_slot_arrival(const struct asym_sim *s, uint32_t program)
{
    return s->n_cpus + s->n_threads + program;
}

static inline uint32_t sim_slot_kick(const struct asym_sim *s)
{
    return s->n_cpus + s->n_threads + s->n_programs;
}

/* masks.c: masks of threads, equal ones once, counted by their users. Number 0 is all CPUs. */
int sim_masks_new(uint32_t n_most, const struct asym_mask *all, struct sim_masks **ret_masks);
void sim_masks_free(struct sim_masks *m);
const struct asym_mask *sim_masks_at(const struct sim_masks *m, uint32_t id);
/** A number for mask, with one more user. There is room for n_most. */
uint32_t sim_masks_get(struct sim_masks *m, const struct asym_mask *mask);
void sim_masks_put(struct sim_masks *m, uint32_t id);
/** One thread with this mask waits for a CPU, or (-1) does no longer. */
void sim_masks_wait(struct sim_masks *m, uint32_t id, int sign);
/** Whether any that waits may run there: an idle CPU that nobody may come to need not walk all queues. */
bool sim_masks_any_waits(const struct sim_masks *m, uint32_t cpu);
/** Whether this mask leaves a choice. */
bool sim_masks_roams(const struct sim_masks *m, uint32_t id);

/* rate.c: how fast what runs gets on. */
/** Bring the running thread's counts up to now. */
void sim_account(struct asym_sim *s, uint32_t cpu);
/** Who runs on this CPU, or what it does, has changed: rates anew for all it shares something with. */
void sim_rerate(struct asym_sim *s, uint32_t cpu);
/** The running thread's working set comes to (+1) or leaves (-1) its LLC. */
void sim_weigh(struct asym_sim *s, uint32_t cpu, uint32_t thread, int sign);
/** Time of the CPU's next event into the heap. */
void sim_schedule(struct asym_sim *s, uint32_t cpu);
/** What a program does on each core type. */
void sim_profile(const struct asym_sim *s, const struct asym_sim_program *program, struct asym_profile *ret);

/* queue.c: threads that wait for a CPU, by virtual time. */
void sim_queue_add(struct asym_sim *s, uint32_t cpu, uint32_t thread);
void sim_queue_remove(struct asym_sim *s, uint32_t thread);
/** Count a thread that waits by its mask: in (+1), or out (-1). */
void sim_queue_count(struct asym_sim *s, const struct sim_thread *t, int sign);

/* sched.c */
double sim_nice_weight(int nice);
void sim_set_nice(struct asym_sim *s, uint32_t thread, int nice);
/** Before sim_obey. */
void sim_set_mask(struct asym_sim *s, uint32_t thread, const struct asym_mask *mask);
/** Make a thread that sleeps or is new runnable. */
void sim_wake(struct asym_sim *s, uint32_t thread);
/** Take a thread off its CPU or queue: asleep, or new. */
void sim_stop(struct asym_sim *s, uint32_t thread, enum sim_state state);
/** Move a thread to a CPU it may run on, whatever it is doing. */
void sim_move(struct asym_sim *s, uint32_t thread, uint32_t cpu);
/** Its mask has changed. */
void sim_obey(struct asym_sim *s, uint32_t thread);
/** Look at this CPU again before time passes. */
void sim_pend(struct asym_sim *s, uint32_t cpu, bool preempt);
/** Of those in may, of which there is one, a CPU with the fewest threads; ties at random. */
uint32_t sim_emptiest(struct asym_sim *s, const struct asym_mask *may);
/**
 * Of those in may, an idle CPU under cpu's LLC, one whose siblings are idle, too, where there is such: the first in the order
 * of their numbers from one on that depends on cpu. -1: none.
 */
int sim_idle_near(const struct asym_sim *s, uint32_t cpu, const struct asym_mask *may);
/** Let all CPUs that were marked choose whom to run. */
void sim_settle(struct asym_sim *s);
static inline uint32_t sim_count(const struct asym_sim *s, uint32_t cpu)
{
    return s->cpus[cpu].n_queued + (s->cpus[cpu].running != SIM_NONE);
}
/** After each change of that, before anybody looks for the emptiest or the busiest. */
void sim_recount(struct asym_sim *s, uint32_t cpu);

/* balance.c */
enum sim_reach { SIM_REACH_LLC, SIM_REACH_NODE, SIM_REACH_ALL, SIM_N_REACHES };
/**
 * Of the CPUs at just that distance with more than so many threads, the one with most that has somebody for this one, and
 * whom; the first of equals behind it. SIM_NONE: none.
 */
uint32_t sim_busiest(const struct asym_sim *s, uint32_t cpu, enum sim_reach reach, uint32_t least,
                     uint32_t *ret_thread);
/** A waiting thread for this idle CPU, moved to its queue. False: none. */
bool sim_pull(struct asym_sim *s, uint32_t cpu);
void sim_balance(struct asym_sim *s, uint32_t cpu);
/** Idle CPUs look again at the next tick. */
void sim_kick(struct asym_sim *s);
void sim_kicked(struct asym_sim *s);

/* program.c */
/** The thread's segment has come to its end. */
void sim_segment_done(struct asym_sim *s, uint32_t thread);
void sim_timer(struct asym_sim *s, uint32_t thread);
void sim_arrival(struct asym_sim *s, uint32_t program);
/** Programs that begin at the start begin. */
void sim_begin(struct asym_sim *s);

/* ports.c */
int sim_ports_new(struct asym_sim *s);
void sim_ports_free(struct asym_sim *s);

void sim_trace_thread(const struct asym_sim *s, enum asym_sim_event_kind kind, uint32_t thread,
                      const struct asym_action *action);
struct asym_taskid sim_id(const struct asym_sim *s, uint32_t thread);

#endif
