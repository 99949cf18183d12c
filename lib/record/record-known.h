/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The names that a segment has given so far: threads, processes, applications, texts and profiles, each with a number. */
#ifndef ASYM_RECORD_RECORD_KNOWN_H
#define ASYM_RECORD_RECORD_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include <asym/signal.h>
#include <asym/snapshot.h>

#include "base/hash.h"
#include "base/pool.h"
#include "record/record-io.h"

/** The last values of a thread, process or application, in the units of the file. */
struct asym_record_item {
    struct asym_taskid id;
    uint64_t snapshot; /* number of the last snapshot that names it */
    union {
        struct asym_task task;
        struct asym_proc proc;
        struct asym_app app;
    } last;
    uint32_t mask, cpuset;      /* thread: their numbers */
    uint32_t runnable, running; /* thread: in 1 / ASYM_RECORD_SHARE */
    uint32_t text, profile;     /* process: rule and profile; application: cgroup */
    int64_t difference;         /* application: its runnable mean, less the sum over its threads */
};

/** All zero: empty. */
struct asym_record_known {
    struct asym_pool items;
    struct asym_hash index; /* by tid */
    uint32_t n;
    uint32_t next; /* the item that probably comes next: lists mostly keep their order */
};

void asym_record_known_done(struct asym_record_known *k);
void asym_record_known_reset(struct asym_record_known *k);

/**
 * Code which item has this id; an item that is named for the first time gets the next number. An item may be named once in a
 * snapshot. Returns the item, which holds until the next call; NULL after a fault.
 */
struct asym_record_item *asym_record_item(struct asym_record_io *io, struct asym_record_known *k,
                                          struct asym_taskid *id, uint64_t snapshot);

/** Returns item i. */
struct asym_record_item *asym_record_item_at(const struct asym_record_known *k, uint32_t i);

/** Texts by number, from 1. All zero: none. */
struct asym_record_texts {
    struct asym_pool items; /* char *, owned */
    struct asym_hash index;
    uint32_t n;
};

void asym_record_texts_reset(struct asym_record_texts *t);
void asym_record_texts_done(struct asym_record_texts *t);

/** Code the number of a text, and the text itself the first time. Returns the table's copy; NULL: none. */
const char *asym_record_text(struct asym_record_io *io, struct asym_record_texts *t, const char *text);

/** Profiles by number, from 1. All zero: none. */
struct asym_record_profiles {
    struct asym_pool items; /* struct asym_profile *, owned */
    uint32_t n;
};

void asym_record_profiles_reset(struct asym_record_profiles *p);
void asym_record_profiles_done(struct asym_record_profiles *p);

/** The same for a profile. */
const struct asym_profile *asym_record_profile(struct asym_record_io *io, struct asym_record_profiles *p,
                                               const struct asym_profile *profile);

#endif
