/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The state of a simulation, and the functions that its files share. Times are in ns. */
#ifndef ASYM_SIM_INTERNAL_H
#define ASYM_SIM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mask-table.h"
#include "sim/rng.h"
#include "sim/sim.h"

#define SIM_NONE UINT32_MAX

/*
 * event-heap.c: the queue of future events. A slot is one source of events, and has one time or none. The heap takes the slot
 * with the smallest time first, and of slots with equal times the one with the smallest number. A node has four children: they
 * share a cache line, so that a step touches fewer lines than with two children.
 */

#define SIM_NEVER UINT64_MAX

struct sim_heap_item {
    uint64_t time;
    uint32_t slot;
};

struct sim_heap {
    void *memory;                /* owned */
    struct sim_heap_item *items; /* points into memory; the four children of a node share a cache line */
    uint32_t *at;                /* owned; by slot: 1 + its index in items; 0: the slot is not in the heap */
    uint32_t n;
    /* 1 + the slot that was taken last; 0: none. It stays in items until the next call, because most slots get a new time
     * at once. */
    uint32_t taken;
};

/** Returns 0; -ENOMEM. */
int sim_heap_init(struct sim_heap *h, uint32_t n_slots);
void sim_heap_done(struct sim_heap *h);

/** Sets the time of the slot, in ns, whether it has one or not. SIM_NEVER removes the slot. */
void sim_heap_set(struct sim_heap *h, uint32_t slot, uint64_t time);

/** Removes the slot that was taken last, unless sim_heap_set has given it a new time. */
void sim_heap_drop(struct sim_heap *h);

/** Returns the time of the next event in ns; SIM_NEVER: no event. */
static inline uint64_t sim_heap_time(struct sim_heap *h)
{
    if (h->taken)
        sim_heap_drop(h);
    return h->n > 0 ? h->items[0].time : SIM_NEVER;
}

/** Returns the slot of the next event. Valid only right after sim_heap_time returned a time other than SIM_NEVER. */
static inline uint32_t sim_heap_slot(const struct sim_heap *h)
{
    return h->items[0].slot;
}

/** Takes the next event and returns its slot. The heap must not be empty. */
uint32_t sim_heap_take(struct sim_heap *h);

/** The time of the first snapshot, us: the engine reads 0 as "never". */
#define SIM_EPOCH (1000 * ASYM_SEC)

/** The most jobs that wait while all instances of their program are busy. Further jobs are turned away and counted. */
#define SIM_MAX_WAITING 4096u

enum { SIM_MAX_DEPTH = 4 };

/** CPUs are kept in sets by their load: a search for the one with the most or the least reads few others. */
enum { SIM_LEVELS = 64, SIM_LAST_LEVEL = SIM_LEVELS - 1 };

enum sim_state { SIM_NEW /* before its start or after its end */, SIM_ASLEEP, SIM_QUEUED, SIM_RUNNING };

/** The activity of a thread in its current segment. */
enum sim_mode { SIM_IDLE /* waits for work */, SIM_CHUNK, SIM_CRITICAL, SIM_LOCKED_OUT, SIM_PAUSED };

/* Three cache lines: the fields that queue searches read, the counts of accounting, and the rarely used fields. */
struct sim_thread {
    _Alignas(64) uint8_t state;
    uint8_t mode;
    bool spinning, newborn, counted, has_run;
    int8_t nice;
    uint32_t proc;
    int32_t cpu;         /* its current or last CPU; -1: none yet */
    int32_t node;        /* of its memory; -1: none yet */
    uint32_t next, prev; /* in the queue of its CPU or of the lock */
    uint32_t mask;       /* its number in masks */
    const struct asym_sim_memory *memory;
    double left;     /* of its segment: instructions; ns while spinning */
    double debt;     /* ns of stall before it continues */
    double vruntime; /* ns at weight 1024 */
    double per_ns;   /* virtual runtime per ns */
    uint64_t queued_at;
    /* totals since its process started */
    uint64_t ran, waited;
    double work; /* instructions without those of spinning; instructions and cycles include them */
    double instructions, cycles, misses;
    uint64_t spun;
    /* the same at the last sample */
    uint64_t ran_then, waited_then, spun_then;
    double instructions_then, cycles_then, misses_then;
    uint64_t turns; /* how often it got a CPU */
};
_Static_assert(sizeof(struct sim_thread) == 3 * 64, "three cache lines");

/**
 * The runnable threads of an application: a process, or the processes of a job. A thread has its number + 1 here; 0: none. All
 * threads that are runnable at one time gain the same critical time, so the team keeps the sum.
 */
struct sim_team {
    uint32_t n, threads; /* threads: the sum of their numbers */
    uint64_t since;      /* time of the last change of n */
    double sum;          /* ns: the integral of 1 / n up to then, while there was one */
    uint32_t alone;      /* the only runnable one, also while it sleeps afterwards */
    uint32_t heard;      /* asymd has been told that it is alone, and nothing else since */
    uint32_t answered;   /* alone in a snapshot, since the last one that was not refreshed */
    uint64_t due;        /* time from which asymd may be told of the phase */
    uint64_t calm, paid; /* buckets, as times: phases that begin at once; asymd.phase_rate */
    bool armed;          /* its timer */
};

/** The critical time of a thread: the integral of 1 / n of its team while it was runnable. */
struct sim_critical {
    double total, from, then; /* ns: up to its last sleep; the team's sum when it woke; the total at the last sample */
};

struct sim_cpu {
    uint32_t running, last; /* thread; SIM_NONE */
    uint32_t head, tail, n_queued;
    uint32_t level; /* in asym_sim.levels */
    uint32_t core, llc, node;
    bool pending, preempt; /* preempt: compare the first of the queue with the running thread */
    bool late;             /* sim_settle computes the time of its next event */
    uint64_t tick_phase;
    double hz;            /* cycles per ns, less the share of ticks */
    double rate, missing; /* of the running thread, per ns: instructions (spinning: 1), misses */
    double issue;         /* instructions per ns, spinning included */
    double min_vruntime;
    uint64_t since;      /* time of the last accounting */
    uint64_t idle_since; /* when the CPU went idle; 0: it has not run anything yet */
    uint64_t slice_from; /* start of the running thread's slice */
};

struct sim_llc {
    uint64_t used_kib; /* working sets of the threads that run under it */
    double level;      /* KiB of its working set that each thread can keep; INFINITY: all */
    uint32_t first, n; /* CPUs */
};

struct sim_core {
    uint32_t first, n; /* CPUs */
};

struct sim_proc {
    uint32_t program, instance, first, n;
    bool alive;
    uint32_t generation, step, passes_left, out; /* out: threads that have not finished the step */
    uint32_t loops[SIM_MAX_DEPTH], depth;
    double pool, parallel; /* instructions: not yet taken of the step; of the last parallel step */
    uint32_t holder, lock_head, lock_tail;
    uint64_t arrived, born;
    struct sim_team team; /* of a job: that of its first process */
    struct sim_rng rng;
};

struct sim_program {
    uint32_t first_proc, n_procs;
    bool active;
    uint64_t *waiting; /* owned: arrival times, a ring */
    uint32_t n_waiting, first_waiting;
    uint64_t n_jobs; /* jobs by rate that have begun */
    struct sim_rng rng;
    char comm[16];
    struct asym_profile profile;
    struct asym_sim_tally tally;
    double past_work, past_cpu; /* of runs that have ended */
};

struct asym_sim {
    const struct asym_scenario *scenario; /* borrowed */
    struct asym_machine *machine;         /* owned, like the arrays below */
    struct sim_cpu *cpus;
    struct sim_thread *threads;
    struct sim_critical *criticals; /* by thread; NULL: not measured */
    struct sim_proc *procs;
    struct sim_program *programs;
    struct sim_llc *llcs;
    struct sim_core *cores;
    double *loads;             /* by CPU, as of sim_recount: a search reads them all */
    struct asym_mask *pullers; /* by CPU: masks of the threads that have queued since its queue was empty, together */
    uint32_t *pending;
    uint64_t *alive;              /* a bit per process, so that a snapshot skips processes that do not run */
    struct asym_mask_table masks; /* of threads */
    uint32_t n_cpus, n_threads, n_procs, n_programs, n_llcs, n_pending;
    uint32_t n_ended; /* runs that have ended */
    uint64_t seed, now, end;
    uint64_t kick_at; /* when idle CPUs try to pull again; SIM_NEVER: not set */
    bool over;
    bool by_speed;                     /* the scheduler knows the speeds */
    bool hears_begins, hears_ends;     /* of serial phases; without the observer bpf neither */
    bool is_told;                      /* of a phase, since the last snapshot */
    uint64_t sampled;                  /* time of the last snapshot that was not refreshed; 0: none */
    const volatile sig_atomic_t *stop; /* borrowed; NULL: none */
    uint32_t polled;
    struct asym_mask idle;               /* idle CPUs */
    struct asym_mask levels[SIM_LEVELS]; /* CPUs by their load, rounded up; the last: that much or more */
    uint32_t top_level;                  /* no level above it has CPUs */
    uint32_t n_waiting;                  /* threads in all queues */
    uint32_t *newborn, n_newborn;        /* threads that begin at this instant, in the order of their programs */
    uint32_t starter;                    /* CPU of the starter at this instant (cpu-search.c); SIM_NONE: none */
    uint32_t next_balance;               /* the CPU that balances next, at balance_at; CPUs take turns */
    uint64_t balance_at;
    struct sim_heap heap;
    struct sim_rng rng;
    struct asym_sim_totals totals;
    struct asym_sim_tracer tracer;
    double tick_share;       /* share of time that ticks leave */
    double slowest;          /* speed of the slowest core in the scenario's unit; machine has speeds relative to it */
    struct sim_ports *ports; /* sim-ports.c */
};

/*
 * Slots of the heap: CPUs, threads' timers, programs' arrivals, the kick of idle CPUs, processes' serial phases. Balancing has no
 * slot: at one instant it comes after the CPUs' events and before all others.
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

static inline uint32_t sim_slot_phase(const struct asym_sim *s, uint32_t proc)
{
    return sim_slot_kick(s) + 1 + proc;
}

/** Returns when the CPU balances in each period: the CPUs' turns are spread over the period. */
static inline uint64_t sim_balance_phase(const struct asym_sim *s, uint32_t cpu)
{
    return s->scenario->scheduler.balance * (cpu + 1) / s->n_cpus + 1;
}

/** The number of the mask of all CPUs. */
enum { SIM_ALL_CPUS = 1 };

/* thread-progress.c: the progress of running threads. */
/** Updates the running thread's counts up to now. */
void sim_account(struct asym_sim *s, uint32_t cpu);
/** Recomputes rates after a change on this CPU: those of all threads that share its core. */
void sim_rerate(struct asym_sim *s, uint32_t cpu);
/** Adds (+1) or removes (-1) the running thread's working set at its LLC. */
void sim_weigh(struct asym_sim *s, uint32_t cpu, uint32_t thread, int sign);
/** Puts the time of the CPU's next event into the heap. */
void sim_schedule(struct asym_sim *s, uint32_t cpu);
/** Fills in the program's profile: what it does on each core type. */
void sim_profile(const struct asym_sim *s, const struct asym_sim_program *program, struct asym_profile *ret);

/* thread-moves.c: threads that wait for a CPU, by virtual runtime. */
void sim_queue_add(struct asym_sim *s, uint32_t cpu, uint32_t thread);
void sim_queue_remove(struct asym_sim *s, uint32_t thread);

/* cpu-search.c: searches for a CPU. */
enum sim_reach { SIM_REACH_LLC, SIM_REACH_NODE, SIM_REACH_ALL, SIM_N_REACHES };
/** The CPUs at this distance from cpu and nearer have consecutive numbers, first to end - 1. */
void sim_span(const struct asym_sim *s, uint32_t cpu, enum sim_reach reach, uint32_t *ret_first, uint32_t *ret_end);
/** Returns a CPU of allowed with the least load, on an idle core if there is one; ties at random. allowed must not be empty. */
uint32_t sim_emptiest(struct asym_sim *s, const struct asym_mask *allowed);
/**
 * Returns an idle CPU of allowed under cpu's LLC, preferably one whose siblings are idle, too. The search goes by number from a
 * start that depends on cpu. -1: none.
 */
int sim_idle_near(const struct asym_sim *s, uint32_t cpu, const struct asym_mask *allowed);
/** Returns whether this CPU and its siblings are idle. */
bool sim_core_is_idle(const struct asym_sim *s, uint32_t cpu);
static inline uint32_t sim_count(const struct asym_sim *s, uint32_t cpu)
{
    return s->cpus[cpu].n_queued + (s->cpus[cpu].running != SIM_NONE);
}
/** Without SSE4.1, ceil is a function call. */
static inline uint64_t sim_round_up(double x)
{
    const uint64_t whole = (uint64_t)x;
    return whole + ((double)whole < x);
}

/** Returns the threads of the CPU, and that many more; per speed if the scheduler knows the speeds. */
static inline double sim_load(const struct asym_sim *s, uint32_t cpu, uint32_t more)
{
    const double n = sim_count(s, cpu) + more;
    return s->by_speed ? n / s->machine->cpus[cpu].speed : n;
}

static inline bool sim_is_runnable(unsigned state)
{
    return state == SIM_RUNNING || state == SIM_QUEUED;
}

/* phases.c: what the observer bpf knows. */
/** Returns whether the observer bpf follows the process: a sample has shown it, and its application may have several threads. */
bool sim_is_followed(const struct asym_sim *s, const struct sim_proc *p);
/** Sets the state of the thread. Each change of a state goes through it. */
void sim_set_state(struct asym_sim *s, uint32_t thread, enum sim_state state);
/** Returns the thread's critical time in ns since the last call. */
double sim_take_critical(struct asym_sim *s, uint32_t thread);
/** At the time of the process's timer: tells asymd that a serial phase has begun, or has ended. */
void sim_phase_timer(struct asym_sim *s, uint32_t proc);
/** Returns 1 + the thread of the same application that is alone, as far as asymd has been told; 0: none. */
uint32_t sim_alone_of(const struct asym_sim *s, uint32_t thread);
/** A snapshot shows who is alone. */
void sim_phases_seen(struct asym_sim *s, bool refreshed);

/* thread-moves.c: puts threads on CPUs and queues, and takes them off. */
void sim_set_nice(struct asym_sim *s, uint32_t thread, int nice);
/** Makes room for the masks of all threads, and numbers that of all CPUs. Returns 0; -ENOMEM. */
int sim_masks_init(struct asym_sim *s);
/** Returns the number of the mask. It stays valid until the next call, or as long as a thread has it. */
uint32_t sim_mask_id(struct asym_sim *s, const struct asym_mask *mask);
/** Sets the mask; the caller then calls sim_obey. */
void sim_set_mask(struct asym_sim *s, uint32_t thread, const struct asym_mask *mask);
/** Takes a thread off its CPU or queue. state: SIM_ASLEEP or SIM_NEW. */
void sim_stop(struct asym_sim *s, uint32_t thread, enum sim_state state);
/** Moves a running or queued thread to a CPU that its mask allows. */
void sim_move(struct asym_sim *s, uint32_t thread, uint32_t cpu);
/** Updates the CPU's level and load. To be called after each change of its number of threads, before a search for a CPU. */
void sim_recount(struct asym_sim *s, uint32_t cpu);
/** Returns the least distance at which the one reaches the other. */
enum sim_reach sim_distance(const struct asym_sim *s, uint32_t a, uint32_t b);
/** Marks the CPU for sim_settle. */
void sim_pend(struct asym_sim *s, uint32_t cpu, bool preempt);
/** Moves a thread that is on no queue to cpu: it pays for the migration, and its virtual runtime becomes relative to cpu's. */
void sim_settle_on(struct asym_sim *s, uint32_t thread, uint32_t cpu);
/** Runs a thread that is on no queue on this CPU, which runs none. */
void sim_run_on(struct asym_sim *s, uint32_t cpu, uint32_t thread);
/** Takes the running thread off. The caller marks the CPU for sim_settle, which rates its core anew, or chooses its next thread. */
void sim_take_off(struct asym_sim *s, uint32_t cpu);

/* scheduler.c */
/** Moves a waiting thread to this idle CPU's queue. Returns false when it finds none. */
bool sim_pull(struct asym_sim *s, uint32_t cpu);
void sim_balance(struct asym_sim *s, uint32_t cpu);
/** Idle CPUs try to pull. */
void sim_kicked(struct asym_sim *s);
/** Makes a sleeping or new thread runnable. */
void sim_wake(struct asym_sim *s, uint32_t thread);
/** Applies a changed mask: moves the thread if its CPU is not allowed. */
void sim_obey(struct asym_sim *s, uint32_t thread);
/** Lets each marked CPU choose the thread that it runs. */
void sim_settle(struct asym_sim *s);

/*
 * cpu-search.c: the CPU on which a new thread begins. With idle CPUs it is the one that Linux 6.1 finds for a fork (kernel/sched/
 * fair.c: find_idlest_cpu, find_idlest_group, find_idlest_group_cpu; kernels up to 6.18 have the same rules):
 *
 * - The search begins at the CPU of the thread that starts the new one. It goes from the machine to one of its nodes, from the
 *   node to one of its LLCs, and from the LLC to a CPU.
 * - It stays in the part of its own CPU unless another part has more idle CPUs. Then it goes to the part with the most, ties at
 *   random, and there to the CPU that went idle last, ties at random.
 * - Where it did not change parts, it takes any idle CPU, at random; fully idle cores first. The kernel takes the one with the
 *   least utilization, which fades with a half-life of 32 ms, so that CPUs that were idle for some tenths of a second are equal.
 *
 * `./dev vm starts` traces how far Linux 6.1 agrees, on two nodes of four CPUs; docs/data/kernel/starts.json has the counts.
 *
 * Only allowed CPUs count. Speeds do not: a new thread has no utilization yet, so it fits every cpu_capacity. The model leaves
 * out that a node keeps a thread while at most max(1, an eighth of its CPUs) threads run there (imb_numa_nr).
 *
 * A master starts the other threads of its program, once it runs. One more program, the starter, starts the programs of an
 * instant; a shell on any idle CPU, drawn by the seed, started it before. The starter runs meanwhile, so its CPU is not idle, and
 * sleeps afterwards. If all other CPUs are busy, a thread begins on the CPU of the starter. The model has a starter only if there
 * are several LLCs: with one, its CPU does not change what threads find.
 */
/** Returns the CPU on which this new thread begins. Draws the starter if it needs one and the instant has none yet. */
uint32_t sim_place_new(struct asym_sim *s, uint32_t thread);

/* sim-program.c */
/** Continues a thread at the end of its segment. */
void sim_segment_done(struct asym_sim *s, uint32_t thread);
void sim_timer(struct asym_sim *s, uint32_t thread);
void sim_arrival(struct asym_sim *s, uint32_t program);
/** Wakes the threads that begin at this instant, in an order that the seed draws. */
void sim_wake_newborn(struct asym_sim *s);
/** Schedules the start of each program. */
void sim_begin(struct asym_sim *s);

/* thread-moves.c: the identity of threads, and the events of a trace. */
/** Returns the id of the thread: a restarted process has new ones. */
struct asym_taskid sim_id_of(const struct asym_sim *s, uint32_t thread);
/** Returns the live thread with this id; SIM_NONE: none. */
uint32_t sim_find_thread(const struct asym_sim *s, const struct asym_taskid *id);
void sim_trace_thread(const struct asym_sim *s, enum asym_sim_event_kind kind, uint32_t thread,
                      const struct asym_action *action);

/* sim-ports.c */
int sim_ports_new(struct asym_sim *s);
void sim_ports_free(struct asym_sim *s);

#endif
