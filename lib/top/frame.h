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
    unsigned type; /**< of core; 0 is the fastest */
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
    char comm[64];
    char phase[12];    /**< "idle", "serial", "parallel" */
    char class[4];     /**< "MP", "HP", "SP"; "": none */
    double runnable;   /**< threads, mean */
    double fast_share; /**< 0..1, of its running time on fast CPUs */
    unsigned threads, steered;
    unsigned moves; /**< of its threads, in a minute */
    char reason[160];
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

/** Forget the values, and keep the memory for the next frame. */
void asym_top_frame_clear(struct asym_top_frame *frame);

void asym_top_frame_done(struct asym_top_frame *frame);

/**
 * Returns how long top waits between two frames: the interval, or longer, so that frames that take that much CPU time take at
 * most 1 % of a CPU.
 */
asym_usec asym_top_pace(asym_usec interval, asym_usec cpu_time);

#endif
