/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A scenario: a machine, its scheduler, and the programs that run on it. Times are in nanoseconds, work in instructions. The
 * machine is the S = (counts; speeds) of Roehrich 2007, with any unit of speed.
 */
#ifndef ASYM_SIM_SCENARIO_H
#define ASYM_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "config/settings.h"

enum { ASYM_SIM_MAX_TYPES = 16, ASYM_SIM_NAME = 32, ASYM_SIM_MAX_STEPS = 64, ASYM_SIM_MAX_MEMORIES = 64 };

/** asym_scenario_parse refuses more threads than this, which take about 1 GiB, with a message. */
#define ASYM_SIM_MAX_THREADS 1000000u

/** The numbering of cores of several speeds; cores with neighbouring numbers share an LLC. */
enum asym_sim_order { ASYM_SIM_BLOCKED, ASYM_SIM_INTERLEAVED };

/** The division of an SMT core's issue width among its threads when their demands exceed it. */
enum asym_sim_fetch { ASYM_SIM_FETCH_EVEN, ASYM_SIM_FETCH_PRIORITY };

/** The CPU on which a new thread begins. */
enum asym_sim_placement { ASYM_SIM_IDLEST, ASYM_SIM_RANDOM };

/**
 * The scheduler's knowledge of speeds. Linux 2.6.18 divides the load of CPUs by their cpu_power, which Morad 2008, 6 set for the
 * large core (kernel/sched.c: find_busiest_group); later kernels divide it by cpu_capacity, and an idle CPU also takes over
 * the only thread of a slower one by active balancing (kernel/sched/fair.c: need_active_balance).
 */
enum asym_sim_capacity {
    ASYM_SIM_CAPACITY_IGNORED,
    ASYM_SIM_CAPACITY_LOAD,   /**< it compares threads per speed, not threads */
    ASYM_SIM_CAPACITY_ACTIVE, /**< and an idle CPU takes over a running thread from a slower one */
};

/** [machine] */
struct asym_sim_machine {
    unsigned n_types;
    unsigned counts[ASYM_SIM_MAX_TYPES]; /**< cores, in the order of speeds */
    double speeds[ASYM_SIM_MAX_TYPES];
    int order;                        /**< enum asym_sim_order */
    unsigned smt[ASYM_SIM_MAX_TYPES]; /**< hardware threads of a core, in the order of speeds */
    unsigned most_smt;                /**< the most of smt */
    unsigned llc;                     /**< cores that share an LLC; 0: all */
    unsigned node;                    /**< LLCs of a NUMA node; 0: all */
    double frequency;                 /**< GHz of a core of speed 1 */
    double max_ipc;                   /**< issue width: most instructions per cycle */
    double smt_loss;   /**< share of its own speed that a thread loses to each busy sibling, for private caches */
    int fetch;         /**< enum asym_sim_fetch */
    double fetch_lost; /**< if slots go by priority: share of a thread's unused slots that no other thread gets */
    asym_usec miss_ns; /**< latency of an LLC miss, ns */
    double remote;     /**< factor on the latency when the memory is on another node */
    unsigned llc_kib;  /**< size of an LLC; 0: unlimited */
};

/** [scheduler]: the stock scheduler and its costs. Times in ns. */
struct asym_sim_scheduler {
    uint64_t tick, slice, wake_margin, balance;
    uint64_t switch_cost, tick_cost;
    uint64_t migrate_llc, migrate_across, migrate_node; /**< within an LLC, across LLCs, across nodes */
    double refill; /**< ns per KiB of working set, fetched again after a migration */
    int placement; /**< enum asym_sim_placement */
    int capacity;  /**< enum asym_sim_capacity */
    /**
     * CPUs on which the kernel's own threads run all the time, such as CPU 0 with nohz_full=1-7 (housekeeping CPUs). They run
     * so briefly that the model leaves out their time: such a CPU is idle, and always the last one that went idle.
     */
    struct asym_mask housekeeping;
};

/** [memory NAME]: how a step uses the memory. */
struct asym_sim_memory {
    char name[ASYM_SIM_NAME];
    double ipc;         /**< instructions per cycle without misses; at most the machine's max_ipc */
    double mpki;        /**< LLC misses per 1000 instructions when the thread has the LLC to itself */
    double apki;        /**< LLC accesses per 1000 instructions: the misses if nothing were cached */
    double working_set; /**< KiB */
};

enum asym_sim_step_kind { ASYM_SIM_SERIAL, ASYM_SIM_PARALLEL, ASYM_SIM_IO, ASYM_SIM_LOOP, ASYM_SIM_END };

/** The distribution of a step's work. */
enum asym_sim_draw { ASYM_SIM_FIXED, ASYM_SIM_UNIFORM /**< 0 to twice the mean */, ASYM_SIM_EXPONENTIAL };

/** One step of a program's script. */
struct asym_sim_step {
    enum asym_sim_step_kind kind;
    enum asym_sim_draw draw;
    double work;      /**< instructions, all threads together; IO: ns; LOOP: number of passes */
    double follow;    /**< SERIAL: above 0, the work is this share of the last parallel step's */
    double chunk;     /**< PARALLEL: instructions that a thread takes at a time; 0: static even shares */
    double critical;  /**< PARALLEL: instructions under the program's lock after each chunk */
    double pause;     /**< PARALLEL: ns of I/O wait after each chunk */
    unsigned memory;  /**< index; 0: the default */
    unsigned partner; /**< END: its LOOP */
    unsigned line;
};

/** [program NAME]: a script and its instances. */
struct asym_sim_program {
    char name[ASYM_SIM_NAME];
    unsigned threads;          /**< threads of one instance, its master included */
    unsigned count;            /**< most instances at a time */
    int nice_low, nice_high;   /**< each instance draws its nice value from this range */
    struct asym_mask affinity; /**< empty: all CPUs */
    uint64_t start;
    double rate;     /**< arrivals per second, exponential gaps; 0: all at start */
    unsigned passes; /**< passes through its script until it ends; UINT_MAX: no end */
    bool restart;    /**< when it ends, it starts again as a new process */
    bool job;        /**< its instances are the processes of one application, as the compilers of a build are */
    uint64_t spin;   /**< ns that a thread spins for work before it sleeps; UINT64_MAX: no end. Not for locks */
    bool rtx;        /**< it reports over RTX which threads spin and which is the master (Saez 2010, 2.2) */
    unsigned n_steps;
    struct asym_sim_step steps[ASYM_SIM_MAX_STEPS];
    unsigned line;
};

enum asym_sim_until {
    ASYM_SIM_UNTIL_TIME,
    ASYM_SIM_UNTIL_DONE, /**< when all programs have ended, or at duration */
    ASYM_SIM_UNTIL_RUNS, /**< when each has ended runs times, or at duration (Saez 2010, 3) */
};

/** The error of the source in the time for which a thread is runnable. */
enum asym_sim_runnable {
    ASYM_SIM_RUNNABLE_EXACT,
    ASYM_SIM_RUNNABLE_CREDITED, /**< what asymd's observer makes of the kernel's credits (base/runnable.h) */
};

/** [run] */
struct asym_sim_run {
    uint64_t duration;
    int until; /**< enum asym_sim_until */
    unsigned runs;
    bool alone;   /**< also run each program alone, as the base of the speedups */
    int runnable; /**< enum asym_sim_runnable */
};

struct asym_scenario {
    struct asym_sim_machine machine;
    struct asym_sim_scheduler scheduler;
    struct asym_sim_run run;
    unsigned n_memories, n_programs;
    struct asym_sim_memory memories[ASYM_SIM_MAX_MEMORIES]; /**< 0: no misses */
    struct asym_sim_program *programs;                      /**< owned */
    struct asym_settings *settings; /**< owned: the sections of asymd.conf, which configure the engine */
};

/** The option at index i of the sections of scenarios; NULL after the last. */
const struct asym_option *asym_scenario_option(size_t i);

/**
 * Parses a scenario. name is the file name in messages, which read "FILE:LINE: the fault; what is accepted".
 * Returns 0; -EINVAL or -ENOMEM with err.
 */
int asym_scenario_parse(const char *text, size_t len, const char *name, struct asym_scenario **ret_scenario,
                        struct asym_error *err);
void asym_scenario_free(struct asym_scenario *s);

/** The largest number of threads at one time. */
size_t asym_scenario_threads(const struct asym_scenario *s);

/** The number of the machine's CPUs. */
static inline unsigned asym_scenario_cpus(const struct asym_scenario *s)
{
    unsigned n = 0;
    for (unsigned k = 0; k < s->machine.n_types; k++)
        n += s->machine.counts[k] * s->machine.smt[k];
    return n;
}

#endif
