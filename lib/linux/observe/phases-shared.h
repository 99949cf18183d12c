/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The memory that the BPF programs (phases.bpf.c) share with asymd, which maps it. The programs write, asymd reads; asymd writes
 * the limits, the orders, the number of the interval, `watch`, the marks of processes for which it asks, and what it takes out of
 * `touched` only.
 *
 * Each followed thread has a slot, and each application a record. A slot's word says in which application the thread is counted,
 * and in which state. Programs change it by an atomic exchange: the one that gets the old word takes the thread out of the
 * counts, by the new word it puts it in. So counts and words agree, however many events are lost or come twice.
 */
#ifndef ASYM_LINUX_OBSERVE_PHASES_SHARED_H
#define ASYM_LINUX_OBSERVE_PHASES_SHARED_H

/* The BPF target has no libc: these types are there on both sides. */
#include <linux/types.h>

enum {
    ASYM_PHASES_SLOTS = 8192,       /**< slot 0 is no place; a power of two, because the programs mask an index */
    ASYM_PHASES_APP_RECORDS = 1024, /**< application 0 is none; a power of two, too */
    ASYM_PHASES_MARKS = 65536,      /**< of processes, one a byte; a power of two, too */
    ASYM_PHASES_FRACTION = 10,      /**< bits behind the point of a virtual time, whose unit is ns / 1024 */
    ASYM_PHASES_RING = 256 * 1024,  /**< bytes of the ring buffer of events */
    ASYM_PHASES_BACK_OFF = 16,      /**< a timer that finds flicker waits at most so many settle times */
    ASYM_PHASES_CALM = 3,           /**< so many serial phases may begin at once after a quiet while */
    ASYM_PHASES_CREDIT = 250000000, /**< ns; the rate limit lets the events of this time pass at once */
    ASYM_PHASES_FIRST = 2,          /**< interval; a mark of the one before it is no 0 either */
    ASYM_PHASES_LAST = 255,         /**< interval: it has to fit into a mark */
};

/** The programs do this when a process that asymd asks for gets its first CPU in this interval. */
enum asym_phases_watch {
    ASYM_PHASES_RAN,   /**< nothing: one has */
    ASYM_PHASES_NOTES, /**< they set it to RAN */
    ASYM_PHASES_RINGS, /**< they wake asymd, too */
};

/** The states of a thread, in the order of the word. A thread is runnable from ASYM_PHASES_WAITING on. */
enum asym_phases_state {
    ASYM_PHASES_NONE,    /**< the slot is free */
    ASYM_PHASES_UNKNOWN, /**< it slept when following began, and has not run since */
    ASYM_PHASES_BLOCKED,
    ASYM_PHASES_WAITING, /**< for a CPU */
    ASYM_PHASES_RUNNING,
};

/** A followed thread: one cache line. */
struct asym_phases_slot {
    __u32 seq;       /**< odd while a program writes the slot */
    __u32 word;      /**< application << 8 | state */
    __u32 tid, tgid; /**< in the PID namespace of asymd; tid 0: the slot is free */
    __u64 since;     /**< last change of state, CLOCK_MONOTONIC ns */
    __u64 running_ns, waiting_ns;
    __u64 critical; /**< virtual time of the application while the thread was runnable */
    __u64 entered;  /**< virtual time of the application when the thread became runnable */
    __u16 cpu;      /**< CPU that it got last, + 1; 0: not known */
    __u16 renewed;  /**< grows when it calls exec or gets another name; runs over */
    __u32 round;    /**< of the last reconciliation that met the thread */
};

/** An application. The first cache line changes with each change of the number of its runnable threads. */
struct asym_phases_app {
    __u64 runnable;  /**< number << 32 | sum of the slots: if the number is 1, the sum is the thread */
    __u64 last;      /**< change of runnable, ns */
    __u64 v;         /**< virtual time: the integral of 1 / number while it was not 0 */
    __u64 low_since; /**< the thread `alone` became the only runnable one, ns */
    __u32 alone;     /**< slot; 0: several threads were runnable last */
    __u32 told;      /**< slot of the serial phase that was told; 0: none */
    __u32 armed;     /**< the timer runs */
    __u32 n_threads;
    __u64 calm;     /**< the bucket of serial phases, as the time at which it is full */
    __u64 paid;     /**< the bucket of events, as the time until which the rate is used up */
    __u64 back_off; /**< the next delay of the timer, ns */
    __u64 n_limited, n_repaired, n_timers, n_full;
    __u32
        holey; /**< threads are missing in its counts, because they found no slot or come just now: no phase is told */
    __u32 missed; /**< the same, found by the reconciliation that runs */
    __u64 spare[2];
};

struct asym_phases_shared {
    __u64 gap_ns, settle_ns;
    __u64 pair_ns;         /**< the part of the rate that a SERIAL and its PARALLEL use: 2 s / rate; 0: none is told */
    __u32 tgid, app;       /**< order of asymd for the iterator: follow this process in app; app 0: follow it no more */
    __u32 level;           /**< depth of the PID namespace of asymd */
    __u32 round;           /**< number of this reconciliation */
    __u32 stale;           /**< slot that the last reconciliation did not meet; 0: none */
    __u32 n_met, n_failed; /**< answers of the iterator: threads that are followed now, threads that found no place */
    __u32 n_fresh;         /**< slots that were in use at some time: 1..n_fresh */
    __u32 n_threads;       /**< slots in use */
    __u32 n_listed;        /**< order of asymd: compare the settings of the threads in so many slots of `listed` */
    __u32 n_settings;      /**< changes of settings that were found; runs over */
    __u64 n_lost;          /**< events that found the ring buffer full */
    __u8 quiet_ends;       /**< a PARALLEL does not wake asymd */
    __u8 interval;         /**< number of the interval between two samples, FIRST..LAST */
    __u32 watch;           /**< enum asym_phases_watch */
    /**
     * The interval in which a thread of a process has last got a CPU; 0: asymd has not asked for it since FIRST. Processes whose
     * numbers are alike in the last 16 bits share a mark.
     */
    __u8 marks[ASYM_PHASES_MARKS];
    __u8 touched[ASYM_PHASES_SLOTS]; /**< of each slot: 1: its word has changed since asymd wrote 0 here */
    __u32 listed[ASYM_PHASES_SLOTS];
    __u32 settings[ASYM_PHASES_SLOTS]; /**< of each slot: the n_settings of the last change of its thread's */
    struct asym_phases_app apps[ASYM_PHASES_APP_RECORDS] __attribute__((aligned(64)));
    struct asym_phases_slot slots[ASYM_PHASES_SLOTS] __attribute__((aligned(64)));
};

/** An entry of the ring buffer: tid is runnable alone, or a second thread is runnable (tid 0). */
struct asym_phases_record {
    __u64 changed_ns;
    __u32 app, tid;
};

#endif
