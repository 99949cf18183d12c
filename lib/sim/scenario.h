/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A scenario: a machine, its scheduler, and the programs that run on it. A plain value apart from its arrays. Times are in
 * nanoseconds, work in instructions, speeds as Roehrich 2007 writes them: S = (counts; speeds), relative to the slowest.
 */
#ifndef ASYM_SIM_SCENARIO_H
#define ASYM_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/error.h>
#include <asym/settings.h>
#include <asym/types.h>

enum { ASYM_SIM_MAX_TYPES = 16, ASYM_SIM_NAME = 32, ASYM_SIM_MAX_STEPS = 64, ASYM_SIM_MAX_MEMORIES = 64 };

/** More threads than this are refused, in words: about 1 GiB. */
#define ASYM_SIM_MAX_THREADS 1000000u

/** How CPUs of several speeds are numbered, and so which of them share an LLC. */
enum asym_sim_order { ASYM_SIM_BLOCKED, ASYM_SIM_INTERLEAVED };

/** Who is fetched for when threads of an SMT core want more than its issue width. */
enum asym_sim_fetch { ASYM_SIM_FETCH_EVEN, ASYM_SIM_FETCH_PRIORITY };

/** Where a new thread begins. */
enum asym_sim_placement { ASYM_SIM_IDLEST, ASYM_SIM_RANDOM };

/** [machine] */
struct asym_sim_machine {
    unsigned n_types;
    unsigned counts[ASYM_SIM_MAX_TYPES]; /**< cores, in the order of speeds */
    double speeds[ASYM_SIM_MAX_TYPES];
    int order;         /**< enum asym_sim_order */
    unsigned smt;      /**< hardware threads of a core */
    unsigned llc;      /**< cores that share an LLC; 0: all */
    unsigned node;     /**< LLCs of a NUMA node; 0: all */
    double frequency;  /**< GHz of a core of speed 1 */
    double max_ipc;    /**< issue width: instructions per cycle at most */
    double smt_loss;   /**< share of its own speed that a thread loses to each busy sibling, for private caches */
    int fetch;         /**< enum asym_sim_fetch */
    asym_usec miss_ns; /**< nanoseconds: what an LLC miss stalls */
    double remote;     /**< factor of that where the memory is another node's */
    unsigned llc_kib;  /**< size of an LLC; 0: nothing is ever pushed out */
};

/** [scheduler]: the stock one, and what its doings cost. */
struct asym_sim_scheduler {
    uint64_t tick, slice, wake_margin, balance;
    uint64_t switch_cost, tick_cost;
    uint64_t migrate_llc, migrate_across, migrate_node; /**< within an LLC, across, across nodes */
    double refill;                                      /**< ns per KiB of working set that is to be fetched anew */
    int placement;                                      /**< enum asym_sim_placement */
};

/** [memory NAME]: how a stretch of work uses the memory. */
struct asym_sim_memory {
    char name[ASYM_SIM_NAME];
    double ipc;         /**< instructions per cycle while no miss stalls it; at most the machine's */
    double mpki;        /**< LLC misses per kilo-instruction, the LLC to itself */
    double apki;        /**< LLC accesses per kilo-instruction: the misses were nothing cached */
    double working_set; /**< KiB */
};

enum asym_sim_step_kind { ASYM_SIM_SERIAL, ASYM_SIM_PARALLEL, ASYM_SIM_IO, ASYM_SIM_LOOP, ASYM_SIM_END };

/** What a figure of a step is drawn from. */
enum asym_sim_draw { ASYM_SIM_FIXED, ASYM_SIM_UNIFORM /**< 0 to twice the mean */, ASYM_SIM_EXPONENTIAL };

/** One step of a program's script. */
struct asym_sim_step {
    enum asym_sim_step_kind kind;
    enum asym_sim_draw draw;
    double work;      /**< instructions, of all threads together; of IO: nanoseconds; of LOOP: times */
    double follow;    /**< SERIAL: not its own work, but this share of what the last parallel step had */
    double chunk;     /**< PARALLEL: instructions a thread takes at a time; 0: static, an even share each */
    double critical;  /**< PARALLEL: instructions under the program's lock behind each chunk */
    double pause;     /**< PARALLEL: ns of waiting (I/O) behind each chunk */
    unsigned memory;  /**< index; 0: the default */
    unsigned partner; /**< END: its LOOP, LOOP: its END */
    unsigned line;
};

/** [program NAME]: a script and how often it is there. */
struct asym_sim_program {
    char name[ASYM_SIM_NAME];
    unsigned threads;          /**< of one instance, its master included */
    unsigned count;            /**< instances at a time, at most */
    int nice_low, nice_high;   /**< drawn anew for each instance */
    struct asym_mask affinity; /**< empty: all CPUs */
    uint64_t start;
    double rate;     /**< arrivals per second, exponential gaps; 0: all at start */
    unsigned passes; /**< of its script until it ends; UINT_MAX: for ever */
    bool restart;    /**< when it ends it begins anew, as another process */
    uint64_t spin;   /**< how long who waits for work spins before it sleeps; UINT64_MAX: for ever. Locks: asleep */
    bool rtx;        /**< says who spins and who is the master (Saez 2010, 2.2) */
    unsigned n_steps;
    struct asym_sim_step steps[ASYM_SIM_MAX_STEPS];
    unsigned line;
};

enum asym_sim_until {
    ASYM_SIM_UNTIL_TIME,
    ASYM_SIM_UNTIL_DONE, /**< all programs have ended, or time */
    ASYM_SIM_UNTIL_RUNS, /**< each has ended runs times, or time (Saez 2010, 3) */
};

/** [run] */
struct asym_sim_run {
    uint64_t duration;
    int until; /**< enum asym_sim_until */
    unsigned runs;
    bool alone; /**< run each program alone, too: speedups are over that */
};

struct asym_scenario {
    struct asym_sim_machine machine;
    struct asym_sim_scheduler scheduler;
    struct asym_sim_run run;
    unsigned n_memories, n_programs;
    struct asym_sim_memory memories[ASYM_SIM_MAX_MEMORIES]; /**< 0: pure computing */
    struct asym_sim_program *programs;                      /**< owned */
    struct asym_settings *settings;                         /**< owned: the sections of asymd.conf, for the engine */
};

/**
 * Read a scenario from text; name is for messages: "FILE:LINE: what is wrong, what is accepted".
 * 0; -EINVAL, -ENOMEM with err.
 */
int asym_scenario_parse(const char *text, size_t len, const char *name, struct asym_scenario **ret_scenario,
                        struct asym_error *err);
void asym_scenario_free(struct asym_scenario *s);

/** All threads that may be there at a time. */
size_t asym_scenario_threads(const struct asym_scenario *s);

/** CPUs of the machine. */
unsigned asym_scenario_cpus(const struct asym_scenario *s);

#endif
