/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A machine as the core sees it: which CPUs there are, how fast each is, what they share.
 * A plain value without pointers: copy it, write it as a literal, generate it.
 *
 * Three words, which are easily mixed up:
 *
 * - A kind is a design of core, as the machine itself names it: the PMU that counts on the CPU (cpu_core, cpu_atom,
 *   cpu_lowpower), its MIDR on Arm, hwloc's CoreType.
 * - A core type is what policies treat as one: CPUs of one kind and one speed. The kind decides first. Favoured cores, which
 *   reach a higher frequency or a higher CPPC highest_perf than others of their kind (ITMT, amd-pstate's preferred
 *   cores), are no type of their own: the reader of the machine gives all CPUs of a kind one speed, their median, and keeps
 *   what sets them apart as favour. Three rules say where one kind ends:
 *   1. CPUs of one PMU or one CoreType are one kind, however far apart their figures are. The exception is
 *      an E core without the L3 that the other E cores have: it is a low-power core.
 *   2. CPUs of one MIDR are split at a gap: where, fastest first, one reaches less than ASYM_KIN_LEAST of the one before.
 *      The same design can be built for two clocks (eight Cortex-A53, four of them at 60 %). Snapdragon X Elite is one
 *      type: its other cores reach 88 % of the boosted ones, which are therefore favoured ones.
 *   3. CPUs of which the machine names no kind (AMD) are split in the same way: Zen c cores reach 64 to 74 % of the Zen
 *      cores beside them, whereas preferred cores and the two dies of an X3D are within 10 %.
 *   Where CPUs up to such a gap span more than the share themselves, as on a machine of eight even steps, there is nothing
 *   to tell favour from kind by: each keeps its own speed.
 *   Such steps of CPPC's highest_perf are no speeds: AMD ranks preferred cores by it, from 47 down to 33 on sixteen equal cores.
 *   CPPC levels are the exception: such steps among them are AMD's ranking of preferred
 *   cores, and no speeds.
 * - Fast is a property of core types: see asym_machine.fast.
 */
#ifndef ASYM_MACHINE_H
#define ASYM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** More core types than this are merged into the nearest slower one. */
#define ASYM_MAX_TYPES 32

/** Kinds that can have a name. */
#define ASYM_MAX_KINDS 8

/** Two CPUs are of one core type when kind and speed agree within this share (policies.md, Words). */
#define ASYM_TYPE_TOLERANCE 0.05

/** CPUs of one MIDR, or of no known kind, are of one core type when they reach this share of the fastest of them. */
#define ASYM_KIN_LEAST 0.80

/** The default of asym_machine.fast_from. */
#define ASYM_FAST_FROM 0.80

/** Where a speed came from. The order is not a ranking. */
enum asym_origin {
    ASYM_ORIGIN_NONE,     /**< nothing tells the CPUs apart: all are taken for equal */
    ASYM_ORIGIN_CONFIG,   /**< the configuration or --slow said so */
    ASYM_ORIGIN_CAP,      /**< a frequency cap that asymd itself has set */
    ASYM_ORIGIN_CAPACITY, /**< /sys/devices/system/cpu/cpuN/cpu_capacity */
    ASYM_ORIGIN_CPPC,     /**< acpi_cppc/highest_perf */
    ASYM_ORIGIN_CPUFREQ,  /**< cpufreq/cpuinfo_max_freq */
    ASYM_ORIGIN_BASE,     /**< cpufreq/base_frequency */
    ASYM_ORIGIN_CPUKINDS, /**< hwloc cpukinds efficiency rank */
    ASYM_N_ORIGINS
};

/** One CPU. Group numbers are dense, starting at 0; -1 where the CPU is not usable or it is unknown. */
struct asym_cpu {
    double speed;        /**< b_j, relative to the slowest usable CPU: >= 1 (Roehrich 2007, S = (n; b)) */
    int16_t type;        /**< index into asym_machine.types: 0 is the fastest */
    int16_t kind;        /**< hwloc cpukind; CPUs of different kinds are never of one type */
    int16_t core;        /**< physical core: SMT siblings share one */
    int16_t llc;         /**< last-level cache */
    int16_t node;        /**< NUMA node */
    int16_t freq_domain; /**< cpufreq policy */
    uint8_t smt_rank;    /**< position among the usable siblings of its core: 0 is the first */
    uint8_t origin;      /**< enum asym_origin of speed */
    uint8_t rank;        /**< place in its core type by favour: 0 is the most favoured, equal favour has equal rank */
    uint32_t favour;     /**< what the machine says of CPUs of one type, in any unit; more is better; 0: nothing */
    uint32_t l3_kib;     /**< size of its L3; 0: it has none that is known. An attribute: it makes no core type */
};

/** CPUs that are alike. */
struct asym_core_type {
    char name[32];
    struct asym_mask cpus; /**< usable ones */
    double speed;          /**< the fastest of its CPUs */
    enum asym_origin origin;
};

struct asym_machine {
    uint64_t generation; /**< differs whenever anything below does; lets others cache */
    unsigned n_cpus;     /**< highest known CPU number + 1, at most ASYM_MAX_CPUS */
    unsigned n_types, n_cores, n_llcs, n_nodes;
    struct asym_mask online;
    struct asym_mask usable; /**< online and inside the machine's effective cpuset; never empty */
    struct asym_mask fast;   /**< usable CPUs of the types that reach fast_from of the fastest type's speed */
    struct asym_mask slow;   /**< usable and not fast; empty when all are alike */
    struct asym_mask held;   /**< CPUs that the configuration makes slow: not fast where any other CPU is faster */
    double fast_from;        /**< above 0, up to 1: a share of the fastest type's speed; 0: ASYM_FAST_FROM */
    struct asym_core_type types[ASYM_MAX_TYPES]; /**< fastest first */
    char kind_names[ASYM_MAX_KINDS][16];         /**< "P-core" by asym_cpu.kind; "": it has none */
    struct asym_cpu cpus[ASYM_MAX_CPUS];
};

/**
 * Derive what follows from the figures. On entry n_cpus, online, usable and, for each usable CPU, speed
 * (any positive unit; all 0 or all equal: alike), kind, core, llc, node, freq_domain, origin and favour are set, and
 * fast_from and held. On return speeds are relative to the slowest usable CPU, group numbers dense, types, type names that
 * were empty, fast, slow, smt_rank and rank filled. generation is left alone.
 * Returns 0; -EINVAL when no CPU is usable, a speed is negative or not a number, or fast_from is out of range
 * (machine unchanged).
 */
int asym_machine_finish(struct asym_machine *m);

/**
 * Take the CPUs in slow for slower: their speed is multiplied by factor (0 < factor <= 1), origin
 * ASYM_ORIGIN_CONFIG, they are held, and everything is derived anew.
 * Returns 0; -EINVAL for a factor out of range, -ENXIO when slow names a CPU that is not usable
 * (machine unchanged in both cases).
 */
int asym_machine_assume_slow(struct asym_machine *m, const struct asym_mask *slow, double factor);

/** CPUs that are held below what they can do. */
struct asym_caps {
    struct asym_mask cpus;
    double share[ASYM_MAX_CPUS]; /**< of its own full speed, above 0 and up to 1; valid for cpus */
};

/**
 * Multiply the speed of each capped CPU by its share, origin ASYM_ORIGIN_CAP, hold it, and derive everything anew. CPUs
 * that are not usable are passed over. Returns 0; -EINVAL for a share out of range (machine unchanged).
 */
int asym_machine_cap(struct asym_machine *m, const struct asym_caps *caps);

/**
 * Choose n CPUs to be the slow ones: every LLC domain gets fast and slow CPUs where its size allows
 * (Nie & Duan 2012, 4.5; Saez 2010, 3.4), no frequency domain and no SMT core is split.
 * Returns 0; -ERANGE when n is 0 or not below the number of usable CPUs, or cannot be made up of whole domains.
 */
int asym_machine_choose_slow(const struct asym_machine *m, unsigned n, struct asym_mask *ret_slow);

/** True when the machine has slow CPUs. */
bool asym_machine_is_asymmetric(const struct asym_machine *m);

/** The favoured CPUs of a core type: those of rank 0. False, and all of its CPUs, where none is favoured. */
bool asym_machine_favoured(const struct asym_machine *m, unsigned type, struct asym_mask *ret);

/** "cpufreq", "cpu_capacity" ... A static string. */
const char *asym_origin_name(enum asym_origin origin);

#endif
