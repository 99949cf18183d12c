/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A machine whose clock we own: a discrete-event model behind the two ports, steered by the engine that steers a live one.
 * It is a model, not Linux. Its rules:
 *
 * Cores. A core of speed b runs at b times the base frequency. An instruction takes 1 / (ipc * frequency), plus
 * mpki / 1000 times the latency of a miss, which does not shrink with speed, and is longer where the thread's memory (the
 * node it first ran on) is another node's. Ticks take their share of every running CPU.
 *
 * SMT. Siblings compete for issue slots: each wants what it would issue alone (less smt_loss per busy sibling), and where
 * that exceeds the issue width all get equal slots, those who want less no more than that (which is what Icount's even mix
 * comes to). fetch = priority shares in proportion to 19 - nice (0..19) instead: slots that one cannot use go to the rest.
 *
 * LLC. Where the working sets of the threads running under an LLC exceed its size, each keeps at most an equal part (small
 * ones stay whole, what they leave goes to the others); of what a thread cannot keep, hits become misses: its mpki grows
 * from its own value towards apki.
 *
 * Scheduler. Each CPU has a queue in order of virtual time, which passes inversely to the nice weight (Linux's table). At a
 * tick, once a slice has been used, who has least virtual time runs. A thread that wakes runs where it ran last if that is
 * idle; else on an idle CPU under the same LLC, whole idle cores first; else where it ran last, and preempts there if it is
 * wake_margin behind. A new thread begins on an idle CPU, at random among such; with none, at random among those with the
 * fewest (placement = random: anywhere). A CPU that goes idle pulls a waiting thread from the CPU with most, the nearest
 * first: LLC, node, machine; idle CPUs look again at the next tick. A busy CPU looks every balance period, and pulls when
 * another has at least two more, half of the difference; idle CPUs balance so, too. No rule knows of speeds. Masks are
 * obeyed: a thread whose mask leaves out its CPU goes to the CPU of the mask with the fewest threads, ties at random.
 *
 * Costs. A switch to another thread, and a migration (by distance, plus the working set fetched anew across LLCs) stall the
 * thread before it goes on.
 *
 * Programs. See scenario.h. All threads of a program take part in a parallel step and wait at its end; a serial step is the
 * master's. Jobs that arrive by rate are the same in the same order for every policy; while all instances of their program are
 * busy 4096 wait, and more are turned away. Waiting for work is spinning up to the program's spin, then sleeping; waiting for a
 * lock is sleeping, and it is handed over first come, first served.
 *
 * Time is in whole nanoseconds, events of one instant in a fixed order, chance from one generator: the same scenario and
 * seed give the same run. After asym_sim_new nothing is allocated.
 */
#ifndef ASYM_SIM_SIM_H
#define ASYM_SIM_SIM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/machine.h>
#include <asym/plan.h>
#include <asym/port.h>

#include "sim/scenario.h"

struct asym_sim;

/** What happened, for a trace. */
enum asym_sim_event_kind { ASYM_SIM_RUNS, ASYM_SIM_STOPS, ASYM_SIM_STEERED, ASYM_SIM_RELEASED };

struct asym_sim_event {
    enum asym_sim_event_kind kind;
    uint64_t at; /**< ns */
    int32_t cpu; /**< RUNS, STOPS: where; else: its last */
    struct asym_taskid id;
    const char *program;
    unsigned instance, rank;
    bool spinning;
    const struct asym_action *action; /**< STEERED, RELEASED */
};

struct asym_sim_tracer {
    void (*event)(void *ctx, const struct asym_sim_event *event);
    void *ctx;
};

/** only: the one program to run, by index; -1: all of them. scenario is borrowed. 0; -ENOMEM, -EINVAL (the machine). */
int asym_sim_new(const struct asym_scenario *scenario, int only, uint64_t seed, struct asym_sim **ret_sim);
void asym_sim_free(struct asym_sim *sim);

void asym_sim_trace(struct asym_sim *sim, const struct asym_sim_tracer *tracer);

/**
 * Poll this flag while time passes: set from outside, it ends the run where it is, as if its time were over. What passes
 * between two looks can be millions of events.
 */
void asym_sim_stop_on(struct asym_sim *sim, const volatile sig_atomic_t *stop);

/** Let time pass up to so many ns since the beginning. Returns false when the run is over. */
bool asym_sim_until(struct asym_sim *sim, uint64_t time);

uint64_t asym_sim_now(const struct asym_sim *sim);

const struct asym_machine *asym_sim_machine(const struct asym_sim *sim);

/** The ports. A look lets interval pass first, and returns 0 once the run is over. Both borrow the simulation. */
struct asym_source *asym_sim_source(struct asym_sim *sim, asym_usec interval);
struct asym_actuator *asym_sim_actuator(struct asym_sim *sim);

/** Count from now on for those the plan of the last look asks to monitor. */
void asym_sim_monitor(struct asym_sim *sim, const struct asym_plan *plan);

/** What a program has done so far. */
struct asym_sim_tally {
    double work;                  /**< instructions of steps, spinning not counted */
    double cpu;                   /**< seconds on CPUs, all threads */
    unsigned ended;               /**< runs that came to their end */
    unsigned turned_away;         /**< jobs that arrived by rate when too many waited */
    double first_start, last_end; /**< seconds */
    double times, log_times,
        cpu_ended; /**< of ended ones: sums of lives in seconds, of their logarithms, of CPU seconds */
};

struct asym_sim_totals {
    /**
     * Decisions taken: the end of a segment, or a tick at which the slice is used up; a wake-up; each CPU's look for balance;
     * what an idle CPU pulls; a timer; an arrival. The tick at which idle CPUs look again counts by what they pull.
     */
    uint64_t events;
    uint64_t switches, wakeups;
    uint64_t migrations[3]; /**< within an LLC, across, across nodes */
    uint64_t looks, actions;
    double busy; /**< seconds of CPU time used, all CPUs */
};

/** Of program i of the scenario. */
struct asym_sim_tally asym_sim_tally(struct asym_sim *sim, unsigned program);
struct asym_sim_totals asym_sim_totals(struct asym_sim *sim);

#endif
