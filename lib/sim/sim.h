/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A simulated machine: a discrete-event model behind the source and the actuator of <asym/port.h>. The same engine steers it
 * as steers a live machine. It is a model, not Linux. Its rules:
 *
 * Cores. A core of speed b runs at b times the base frequency. An instruction takes 1 / (ipc * frequency) of time, plus
 * mpki / 1000 times the latency of a miss. The latency does not shrink with speed. It is longer when the thread's memory is on
 * another node; a thread's memory is on the node where the thread first ran. Ticks take their share of every running CPU.
 *
 * SMT. Each count of cores has its number of hardware threads, or one number holds for all. Siblings compete for issue slots.
 * Each thread demands what it would issue alone, less smt_loss per busy sibling. When the demands exceed the issue width, all
 * threads get equal slots, and a thread that demands less gets no more than its demand (Icount's even mix comes to the same).
 * With fetch = priority the slots are shared in proportion to 19 - nice (0..19) instead; the others get the slots that one thread
 * cannot use, except a share of fetch_lost, which goes lost (instructions that wait fill the issue queue, and the others cannot
 * be fetched).
 *
 * LLC. When the working sets of the threads that run under an LLC exceed its size, each thread keeps at most an equal part.
 * Small working sets stay complete, and the others share what these leave. A thread's hits on the part that it cannot keep
 * become misses: its mpki grows from its own value towards apki.
 *
 * Scheduler. Each CPU has a run queue in order of virtual runtime, which passes inversely to the nice weight (Linux's table).
 * At a tick, after the running thread has used up a slice, the thread with the least virtual runtime runs. A thread that wakes
 * runs on its last CPU if that is idle; else on an idle CPU under the same LLC, fully idle cores first; else it queues on its
 * last CPU, and preempts there if the running thread is wake_margin ahead. A new thread begins on an idle CPU (cpu-search.c has
 * the search); when no CPU is idle, at random among the CPUs with the fewest threads (placement = random: on any CPU).
 * Threads that begin at the same instant begin one after the other, in a random order, whichever programs they belong to. A CPU
 * that goes idle pulls a waiting thread from the CPU with the most threads, the nearest first: LLC, node, machine. Idle CPUs
 * try again at the next tick. A busy CPU balances once in each balance period: it pulls from a CPU that has at least two more
 * threads, half of the difference. Idle CPUs balance in the same way; then one on an idle core takes over the running thread of
 * a CPU whose sibling is busy, too, the nearest first (group_smt_balance in kernel/sched/fair.c since Linux 6.6). No rule knows
 * of speeds, unless capacity = load: then threads per speed take the place of threads in all of these rules, a thread moves if
 * that makes its new CPU less loaded than the old one was, and no running thread leaves its sibling (x86 has capacities only
 * without SMT). With capacity = active an idle CPU that balances also takes over the running thread of the slowest CPU that is
 * more than 5 % slower. The scheduler obeys masks: when a thread's mask excludes its CPU, the thread moves to the CPU of the
 * mask with the fewest threads, idle cores first, ties at random.
 *
 * Costs. A switch to another thread and a migration stall the thread before it continues. The cost of a migration depends on
 * the distance; across LLCs the thread also fetches its working set again.
 *
 * Observer. With asymd.observer = bpf asymd knows the critical time of threads, and hears of serial phases by phase_gap,
 * phase_settle and phase_rate; from the change to the mask it takes 150 us. A thread that spins counts as runnable. auto is procfs.
 *
 * Programs. See scenario.h. All threads of a program take part in a parallel step and wait at its end. Only the master runs a
 * serial step. Jobs that arrive by rate are the same in the same order for every policy. While all instances of their program
 * are busy, up to 4096 jobs wait, and further jobs are turned away. A thread that waits for work spins up to the program's
 * spin, then sleeps. A thread that waits for a lock sleeps; the lock goes to the waiters first come, first served.
 *
 * Time is in whole nanoseconds. Events of one instant have a fixed order, and all chance comes from one generator: the same
 * scenario and seed give the same run. Nothing is allocated after asym_sim_new.
 */
#ifndef ASYM_SIM_SIM_H
#define ASYM_SIM_SIM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <asym/plan.h>
#include <asym/port.h>

#include "sim/scenario.h"

struct asym_sim;

/** Kinds of events in a trace. */
enum asym_sim_event_kind { ASYM_SIM_RUNS, ASYM_SIM_STOPS, ASYM_SIM_STEERED, ASYM_SIM_RELEASED };

struct asym_sim_event {
    enum asym_sim_event_kind kind;
    uint64_t at; /**< ns */
    int32_t cpu; /**< RUNS, STOPS: the CPU; else: the thread's last CPU */
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

/**
 * Creates a simulation of scenario, which is borrowed. only: index of the one program to run; -1: all programs.
 * Returns 0; -ENOMEM; -EINVAL: the machine is not valid.
 */
int asym_sim_new(const struct asym_scenario *scenario, int only, uint64_t seed, struct asym_sim **ret_sim);
void asym_sim_free(struct asym_sim *sim);

void asym_sim_trace(struct asym_sim *sim, const struct asym_sim_tracer *tracer);

/**
 * Polls *stop while time passes. When the caller sets it, the run ends at once, as if its time were over. One interval of
 * the source can take millions of events, so the source alone would stop too late.
 */
void asym_sim_stop_on(struct asym_sim *sim, const volatile sig_atomic_t *stop);

/**
 * Has the source return a refreshed snapshot when a program has come down to one runnable thread, or has left that state, as asymd
 * does for a policy that serves such a thread. Only with asymd.observer = bpf in the scenario.
 */
void asym_sim_hear(struct asym_sim *sim, bool begins, bool ends);

/**
 * Lets time pass up to time, in ns since the beginning of the run, or until there is a phase to hear of. Returns false when the
 * run is over.
 */
bool asym_sim_until(struct asym_sim *sim, uint64_t time);

uint64_t asym_sim_now(const struct asym_sim *sim);

/**
 * The ports of <asym/port.h>; both borrow the simulation. next() lets interval pass first, and returns 0 once the run is over.
 * The source takes counter samples of the threads that the plan of the last feedback counts. refresh() is NULL: a snapshot is
 * refreshed where there is a phase to hear of (asym_sim_hear).
 */
struct asym_source *asym_sim_source(struct asym_sim *sim, asym_usec interval);
struct asym_actuator *asym_sim_actuator(struct asym_sim *sim);

/** Results of a program so far. */
struct asym_sim_tally {
    double work;                        /**< instructions of steps, spinning not counted */
    double cpu;                         /**< seconds of CPU time, all threads */
    unsigned ended;                     /**< runs that have ended */
    unsigned turned_away;               /**< jobs that arrived by rate while 4096 waited */
    double last_end;                    /**< seconds */
    double times, log_times, cpu_ended; /**< sums over ended runs: run times in s, their logarithms, CPU time in s */
};

struct asym_sim_totals {
    /**
     * Scheduling decisions: the end of a segment, or a tick at which the slice is used up; a wake-up; each CPU's periodic
     * balancing; a pull by an idle CPU; a timer; an arrival. A tick at which idle CPUs try again counts only their pulls.
     */
    uint64_t events;
    uint64_t migrations, snapshots, actions;
    double busy; /**< seconds of CPU time used, all CPUs */
};

/** Results of program i of the scenario. */
struct asym_sim_tally asym_sim_tally(struct asym_sim *sim, unsigned program);
struct asym_sim_totals asym_sim_totals(struct asym_sim *sim);

#endif
