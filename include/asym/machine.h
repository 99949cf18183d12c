/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A machine as the core sees it: its CPUs, the speed of each, and what they share.
 * It is a plain value without pointers, so code can copy it, write it as a literal, or generate it.
 *
 * Three terms are easily confused:
 *
 * - A kind is a design of core. The machine names it: by the PMU that counts on the CPU (cpu_core, cpu_atom, cpu_lowpower), by
 *   the MIDR on Arm, or by hwloc's CoreType.
 * - A core type is a set of CPUs of one kind and one speed. Policies treat these CPUs as alike. The kind decides first.
 *   Favoured cores (ITMT, amd-pstate's preferred cores) reach a higher frequency or a higher CPPC highest_perf than others of
 *   their kind. They are not a type of their own: the topology reader gives all CPUs of a kind one speed, their median, and
 *   records the difference as favour. Three rules define the CPUs of one kind:
 *   1. CPUs of one PMU or one CoreType are one kind, however far apart their figures are. The exception is
 *      an E core without the L3 that the other E cores have: it is a low-power core.
 *   2. CPUs of one MIDR are sorted by speed, fastest first, and split at a gap: where a CPU reaches less than ASYM_KIN_LEAST of
 *      the CPU before it. A vendor can build the same design for two clocks (eight Cortex-A53, four of them at 60 %). The
 *      Snapdragon X Elite is one type: its other cores reach 88 % of the boosted ones, so the boosted ones are favoured cores.
 *   3. Where the machine names no kind (AMD), the same rule splits the CPUs: Zen c cores reach 64 to 74 % of the Zen
 *      cores beside them, whereas preferred cores and the two dies of an X3D are within 10 %.
 *   On a machine with many small steps, such as eight even ones, the CPUs up to a gap can span more than that share. The reader
 *   cannot tell favour from kind there, so each CPU keeps its own speed. CPPC's highest_perf is an exception: AMD ranks
 *   preferred cores by it, from 47 down to 33 on sixteen equal cores, so such steps are not speeds.
 * - Fast is a property of core types: see asym_machine.fast.
 *
 * A seat is what a policy gives to a thread: a hardware thread, with the speed that it adds to the machine. The first busy
 * hardware thread of a core adds the speed of the core. A further one adds smt_gain times that, and the threads of the core
 * share the sum: a hyperthread is not a core. Seats of one core type that add the same are a row; see asym_machine.rows.
 */
#ifndef ASYM_MACHINE_H
#define ASYM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/types.h>

/** The most core types. Types beyond these are merged into the nearest slower one. */
#define ASYM_MAX_TYPES 32

/** The most kinds that can have a name. */
#define ASYM_MAX_KINDS 8

/**
 * Two CPUs are of one core type if their kinds are equal and their speeds agree within this share (docs/policies.md, Words).
 */
#define ASYM_TYPE_TOLERANCE 0.05

/** CPUs of one MIDR, or of no known kind, are split where one reaches less than this share of the next faster one. */
#define ASYM_KIN_LEAST 0.80

/** The default of asym_machine.fast_from. */
#define ASYM_FAST_FROM 0.80

/** The most hardware threads of a core that counts of threads tell apart. */
#define ASYM_MAX_SIBLINGS 8

/** The origin of a speed: one of these three, or a source of speeds (speed-sources.def has a row for each). */
enum asym_origin {
    ASYM_ORIGIN_NONE,   /**< no source tells the CPUs apart: asymd treats all as equal */
    ASYM_ORIGIN_CONFIG, /**< the configuration or --slow gives it */
    ASYM_ORIGIN_CAP,    /**< a frequency cap that asymd itself has set */
#define ASYM_SPEED_SOURCE(origin, ...) ASYM_ORIGIN_##origin,
#include <asym/speed-sources.def>
#undef ASYM_SPEED_SOURCE
    ASYM_N_ORIGINS
};

/** One CPU. Group numbers are dense and start at 0; -1: the CPU is not usable, or its group is unknown. */
struct asym_cpu {
    double speed;        /**< b_j, relative to the slowest usable CPU: >= 1 (Roehrich 2007, S = (n; b)) */
    int16_t type;        /**< index into asym_machine.types: 0 is the fastest */
    int16_t kind;        /**< hwloc cpukind; CPUs of different kinds always have different types */
    int16_t core;        /**< physical core: SMT siblings share one */
    int16_t llc;         /**< last-level cache */
    int16_t node;        /**< NUMA node */
    int16_t freq_domain; /**< cpufreq policy */
    int16_t sibling;     /**< the next usable CPU of its core, in a ring: itself if it has no sibling */
    uint8_t smt_rank;    /**< position among the usable SMT siblings of its core: 0 is the first */
    uint8_t origin;      /**< enum asym_origin of speed */
    uint8_t rank; /**< place in its core type by favour: 0 is the most favoured; CPUs of equal favour have equal rank */
    uint32_t favour; /**< how the machine ranks CPUs of one type, in any unit; more is better; 0: not ranked */
    uint32_t l3_kib; /**< size of its L3; 0: no L3 is known. It does not affect the core type */
};

/** CPUs of one kind and one speed. */
struct asym_core_type {
    char name[32];
    struct asym_mask cpus; /**< its usable CPUs */
    double speed;          /**< the fastest of its CPUs */
    enum asym_origin origin;
    uint8_t siblings; /**< the most usable CPUs of one of its cores: 1 without SMT */
    uint8_t row[2];   /**< of its seats on idle cores; of those beside a busy sibling (only if siblings > 1) */
};

/** Seats of one core type that add the same speed. */
struct asym_seat_row {
    double speed;   /**< what one of them adds to the machine */
    uint8_t type;   /**< core type */
    bool is_beside; /**< beside a busy sibling; else on an idle core */
};

struct asym_machine {
    uint64_t generation; /**< changes whenever a field below changes; callers use it to cache */
    unsigned n_cpus;     /**< highest known CPU number + 1, at most ASYM_MAX_CPUS */
    unsigned n_types, n_cores, n_llcs, n_nodes;
    struct asym_mask online;
    struct asym_mask usable;   /**< online and inside the machine's effective cpuset; never empty */
    struct asym_mask fast;     /**< usable CPUs of the types that reach fast_from of the fastest type's speed */
    struct asym_mask slow;     /**< usable CPUs that are not fast; empty if all are alike */
    struct asym_mask isolated; /**< usable CPUs set apart from ordinary threads at boot (isolcpus, nohz_full) */
    struct asym_mask held;     /**< CPUs that the configuration makes slow: never fast if any other CPU is faster */
    double fast_from;          /**< share of the fastest type's speed, above 0 and up to 1; 0: ASYM_FAST_FROM */
    double smt_gain; /**< what a further busy hardware thread adds, as a share of its core's speed, from 0 to 1 */
    struct asym_core_type types[ASYM_MAX_TYPES];   /**< fastest first */
    struct asym_seat_row rows[2 * ASYM_MAX_TYPES]; /**< in the order in which seats are filled */
    unsigned n_rows;
    char kind_names[ASYM_MAX_KINDS][16]; /**< such as "P-core", indexed by asym_cpu.kind; "": no name */
    struct asym_cpu cpus[ASYM_MAX_CPUS];
};

/**
 * Derive the remaining fields. The caller sets n_cpus, online, usable, isolated, fast_from, smt_gain and held, and for each
 * usable CPU speed (any positive unit; all 0 or all equal: alike), kind, core, llc, node, freq_domain, origin and favour. On
 * return speeds are relative to the slowest usable CPU, and group numbers are dense. types, type names that were empty, rows,
 * fast, slow, sibling, smt_rank and rank are filled. generation does not change.
 * Returns 0; -EINVAL if no CPU is usable, a speed is negative or not a number, or fast_from or smt_gain is out of range
 * (machine unchanged).
 */
int asym_machine_finish(struct asym_machine *m);

/**
 * Assume that the CPUs in slow are slower: multiply their speed by factor (0 < factor <= 1), set their origin to
 * ASYM_ORIGIN_CONFIG, add them to held, and derive all other fields again.
 * Returns 0; -EINVAL if factor is out of range, -ENXIO if slow names a CPU that is not usable
 * (machine unchanged in both cases).
 */
int asym_machine_assume_slow(struct asym_machine *m, const struct asym_mask *slow, double factor);

/** CPUs that run below their full speed. */
struct asym_caps {
    struct asym_mask cpus;
    double share[ASYM_MAX_CPUS]; /**< share of the CPU's own full speed, above 0 and up to 1; valid for cpus */
};

/**
 * Multiply the speed of each capped CPU by its share, set its origin to ASYM_ORIGIN_CAP, add it to held, and derive all other
 * fields again. CPUs that are not usable are ignored. Returns 0; -EINVAL if a share is out of range (machine unchanged).
 */
int asym_machine_cap(struct asym_machine *m, const struct asym_caps *caps);

/**
 * Choose n CPUs as the slow ones. Every LLC domain gets fast and slow CPUs if it is large enough
 * (Nie & Duan 2012, 4.5; Saez 2010, 3.4). No frequency domain and no SMT core is split.
 * Returns 0; -ERANGE if n is 0 or not below the number of usable CPUs, or if whole domains do not add up to n.
 */
int asym_machine_choose_slow(const struct asym_machine *m, unsigned n, struct asym_mask *ret_slow);

/** Returns true if the machine has slow CPUs. */
bool asym_machine_is_asymmetric(const struct asym_machine *m);

/** Returns true if the CPUs that ordinary threads get differ in speed, though all may count as fast. */
bool asym_machine_speeds_differ(const struct asym_machine *m);

/**
 * Returns true if the kernel places threads by these speeds: all come from cpu_capacity. Then it gives a busy thread an idle fast
 * CPU, also while the thread runs on a slow one. It does not know which threads are waited for.
 */
bool asym_machine_kernel_knows(const struct asym_machine *m);

/**
 * Returns the usable CPUs that ordinary threads get: those that are not isolated; all if every CPU is isolated. What counts CPUs
 * for ordinary threads counts these. fast and slow keep isolated CPUs, for the threads whose masks include them.
 */
struct asym_mask asym_machine_ordinary(const struct asym_machine *m);

/** Returns the fast ones of these; all of these if no fast CPU is among them, since then no other is faster for such a thread. */
struct asym_mask asym_machine_ordinary_fast(const struct asym_machine *m);

/** Returns true and the favoured CPUs of a core type, those of rank 0; or false and all of its CPUs if none is favoured. */
bool asym_machine_favoured(const struct asym_machine *m, unsigned type, struct asym_mask *ret);

/** Returns one CPU of each core that cpus has a CPU of: the first. Their number is that of the cores. */
struct asym_mask asym_machine_cores(const struct asym_machine *m, const struct asym_mask *cpus);

/** Returns the row of a seat on cpu: is_beside if a sibling of cpu is busy. */
static inline unsigned asym_machine_row(const struct asym_machine *m, int cpu, bool is_beside)
{
    return m->types[m->cpus[cpu].type].row[is_beside];
}

/** Returns the name of an origin, such as "cpufreq" or "cpu_capacity". A static string. */
const char *asym_origin_name(enum asym_origin origin);

#endif
