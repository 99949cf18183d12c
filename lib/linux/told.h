/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What programs say of their own threads, and how it becomes part of a snapshot.
 *
 * Who says it stands behind a teller: the pages that programs have filled (rtx-server.h), or whatever a test or a
 * simulator makes up. The rest is a source around another one: it hands on that one's snapshots with ASYM_TASK_MASTER and
 * ASYM_TASK_SPINNING set and spinning threads left out of the runnable counts, so that a trace of them holds it all.
 *
 * Counts of an interval are means. Of one who spins that part of it is left out for which it has spun; where there is a
 * barrier every millisecond that is next to nothing, whoever happens to be at it when somebody looks, and only who has spun
 * for all of the interval ranks as a spinning thread. In a serial phase all who wait do, at once.
 *
 * A program's word is taken for its own threads only, as the inner source lists them, and for little: whoever lies can make
 * its own application look more or less parallel than it is, and get one master.
 */
#ifndef ASYM_LINUX_TOLD_H
#define ASYM_LINUX_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/port.h>
#include <asym/types.h>

/** What is said of one thread. */
struct asym_told_thread {
    int32_t tid;
    bool spins;      /**< waits, and has for long enough that it counts */
    asym_usec since; /**< since when it spins; 0: its program is in a serial phase, and nothing before that counts */
    bool master;     /**< works in a serial phase of its program */
    bool works;      /**< works, by its own word ... */
    bool news;       /**< ... and has changed its word since the last whole snapshot */
};

/** What one program says. */
struct asym_told {
    int32_t pid;
    uint64_t start;                         /**< of the process: a successor's threads are not meant */
    asym_usec at;                           /**< when it was said */
    const struct asym_told_thread *threads; /**< by tid, rising */
    size_t n;
};

/** How a teller is asked. */
enum {
    ASYM_ASK_FINAL = 1 << 0,   /**< the answer goes into a snapshot; news are counted from here, if it is not hurried */
    ASYM_ASK_HURRIED = 1 << 1, /**< who has not told of a phase since may say what it said the last time, and when */
};

struct asym_teller {
    /** What all programs say now, by pid, rising; one pid may come several times. Valid until the next call. Returns how many. */
    size_t (*ask)(struct asym_teller *teller, asym_usec now, unsigned how, const struct asym_told **ret_told);
};

struct asym_told_config {
    struct asym_source *inner; /**< borrowed */
    /**
     * Hand out the inner source's last snapshot once more with what can be had in microseconds read again: masks, forks.
     * What it measured stays. 0; -ENODATA: there is none that could be; -errno. NULL: cannot.
     */
    int (*again)(struct asym_source *inner, struct asym_snapshot *ret);
    struct asym_teller *teller; /**< borrowed */
    asym_usec (*now)(void);     /**< the clock of the snapshots */
};

/** 0; -ENOMEM. */
int asym_told_source_new(const struct asym_told_config *config, struct asym_source **ret_source);

/** The next snapshot is the last one, with what programs say now. Without one before it is a whole one. */
void asym_told_source_hurry(struct asym_source *source);

#endif
