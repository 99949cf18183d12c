/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The facts that asymctl top shows at one time, as plain values. asymctl fills a frame from the bus; a test fills it by hand. */
#ifndef ASYM_TOP_FRAME_H
#define ASYM_TOP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/* Texts may have any bytes: the layout makes them printable. A text that is too long for its field is cut. */

struct asym_top_cpu {
    unsigned cpu;
    unsigned type;     /**< of core; 0 is the fastest */
    unsigned smt_rank; /**< place among the hardware threads of its core: 0 is the first */
    char type_name[32];
    double speed;     /**< beside the other types */
    bool fast;        /**< by the policy */
    double busy;      /**< 0..1, of the last interval */
    unsigned threads; /**< steered to it */
    char comm[64];    /**< the thread that asymd has seen there last; "": none */
};

struct asym_top_app {
    uint32_t pid; /**< 0: a cgroup */
    char cgroup[128];
    char comm[64];       /**< without the number of processes, which changes */
    char command[160];   /**< the command line, without the directory of the program; "": not known */
    char user[16];       /**< the name of its user; "": none */
    char class_name[16]; /**< "idle", "serial", "highly parallel" */
    double runnable;     /**< threads, mean */
    double running;      /**< CPUs that it used */
    double fast_share;   /**< 0..1, of its running time on fast CPUs */
    unsigned processes, threads, steered;
    unsigned moves; /**< of its threads, in a minute */
    char reason[160];
    asym_usec seen; /**< when asymd listed it last */
};

struct asym_top_frame {
    char policy[48], policy_reason[128];
    char slow_cpus[16]; /**< the first bytes of the list are enough; "": all CPUs are alike */
    bool paused;
    asym_usec paused_for; /**< the time that is left; 0: until the user resumes */
    unsigned steered;     /**< threads */
    unsigned changes;     /**< in the last minute */
    double cpu_usage;     /**< of asymd, of one CPU */
    uint64_t memory;      /**< of asymd, bytes */
    struct asym_top_cpu *cpus;
    size_t n_cpus, cpus_size; /**< used, allocated */
    struct asym_top_app *apps;
    size_t n_apps, apps_size;
};

/** Returns the next CPU of the frame, zeroed; NULL: no memory. */
struct asym_top_cpu *asym_top_add_cpu(struct asym_top_frame *frame);

/** Returns the next application of the frame, zeroed; NULL: no memory. */
struct asym_top_app *asym_top_add_app(struct asym_top_frame *frame);

/** An idle program keeps its row for this long: else rows would come and go with each pause of a program. */
#define ASYM_TOP_KEEP (10 * ASYM_SEC)

/**
 * Add the applications of the frame before that asymd does not list now, as idle ones, if asymd listed them in the last
 * ASYM_TOP_KEEP, and they have not ended. Returns 0; -ENOMEM.
 */
int asym_top_frame_keep(struct asym_top_frame *frame, const struct asym_top_frame *before, asym_usec now,
                        bool (*has_ended)(uint32_t pid));

/**
 * Returns the application of that frame with this PID, cgroup and comm; NULL: there is none. hint: where it may stand.
 */
const struct asym_top_app *asym_top_frame_find(const struct asym_top_frame *frame, const struct asym_top_app *app,
                                               size_t hint);

/** Forget the values, and keep the memory for the next frame. */
void asym_top_frame_clear(struct asym_top_frame *frame);

void asym_top_frame_done(struct asym_top_frame *frame);

/**
 * Returns how long top waits between two frames: the interval, or longer, so that frames that take that much CPU time take at
 * most 1 % of a CPU.
 */
asym_usec asym_top_pace(asym_usec interval, asym_usec cpu_time);

#endif
