/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads the followed threads from the memory that the BPF programs write, while they write it. It makes no system call. */
#ifndef ASYM_LINUX_OBSERVE_PHASES_LIST_H
#define ASYM_LINUX_OBSERVE_PHASES_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "linux/observe/phases-shared.h"

struct asym_phases_event;

/** A followed thread, all times until now. Another one that gets its tid has another place, or counts from 0. */
struct asym_phases_thread {
    int32_t tid, tgid; /**< 0: the place is free */
    uint32_t app;
    bool is_runnable;     /**< now */
    int32_t cpu;          /**< that it got last; -1: not known */
    uint16_t renewed;     /**< changes when it calls exec or gets another name */
    uint64_t running_ns;  /**< on a CPU */
    uint64_t waiting_ns;  /**< runnable, but on no CPU */
    uint64_t critical_ns; /**< integral of 1 / (runnable threads of its application) while it was runnable */
    uint32_t seq;         /**< grows by 2 with each change of its state; runs over */
    uint32_t settings;    /**< no other thread has it; changes with nice value, policy and mask; 0: not known */
};

/** asymd and the programs. Only phases-kernel.c uses the fields behind threads. */
struct asym_phases {
    struct asym_phases_shared *shared;
    struct asym_phases_thread threads[ASYM_PHASES_SLOTS]; /**< as they were read last */
    struct phases_bpf *bpf;
    struct ring_buffer *ring;
    struct bpf_link *everything; /**< the iterator of asym_phases_reconcile() */
    bool is_new;                 /**< a process is followed since the last reconciliation */
    uint64_t n_lost;             /**< that asym_phases_take() has told */
    void (*fn)(void *ctx, const struct asym_phases_event *e);
    void *ctx;
};

/** Begins to read: each place counts as changed. */
void asym_phases_list_begin(struct asym_phases *p, struct asym_phases_shared *shared);

/**
 * The functions behind asym_phases_list(). The first notes in shared->listed which places the second reads, and returns how many
 * there are. Times until now_ns (CLOCK_MONOTONIC). No time is less than in the call before. has_settings: the program has compared
 * the settings of those that are listed.
 */
uint32_t asym_phases_list_find(struct asym_phases_shared *shared);
void asym_phases_list_read(struct asym_phases *p, uint64_t now_ns, bool has_settings,
                           const struct asym_phases_thread **ret_threads, const uint32_t **ret_slots);

/** Begin another interval between two samples. */
void asym_phases_begin_interval(struct asym_phases *p);

/**
 * Returns whether no thread of the process, followed or not, has got a CPU in this interval or the one before. One that has kept
 * its CPU for all that time got none. false: it has, or in the interval before those, or the programs do not know: then they begin
 * to look.
 */
bool asym_phases_slept(struct asym_phases *p, int32_t tgid);

/**
 * Have the descriptor become readable when one of the processes for which slept() was called gets its first CPU in this interval.
 * Returns false if one has got it, or the programs do not know: then nothing happens.
 */
bool asym_phases_doze(struct asym_phases *p);

/** Runnable threads of the application now; the thread, where it is one: its tid in *ret_tid, else 0. */
uint32_t asym_phases_runnable(const struct asym_phases *p, uint32_t app, int32_t *ret_tid);

/**
 * Returns the next slot behind slot whose thread seems to be runnable, and has not changed for half a second; 0: no more. If an
 * event is lost, this is what remains: a lost wake-up is found by the next switch, a lost switch or end by nothing.
 */
uint32_t asym_phases_list_old(const struct asym_phases_shared *shared, uint32_t slot, uint64_t now_ns);

#endif
