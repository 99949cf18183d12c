/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A record: the machine, the settings and the snapshots of an observation, in a file. docs/record-format.md describes the
 * bytes. The limits below bound the memory that a reader needs, whatever the file says.
 */
#ifndef ASYM_RECORD_RECORD_H
#define ASYM_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

/** The version of the format. A reader refuses every other one. */
#define ASYM_RECORD_VERSION 4u

/** The most threads, processes and applications of a snapshot, and the most actions on them. */
#define ASYM_RECORD_MAX_TASKS   (1u << 18)
#define ASYM_RECORD_MAX_ACTIONS (1u << 19)

/** The most threads, masks, texts and profiles that a segment names. */
#define ASYM_RECORD_MAX_KNOWN    (1u << 19)
#define ASYM_RECORD_MAX_MASKS    (1u << 17)
#define ASYM_RECORD_MAX_TEXTS    (1u << 16)
#define ASYM_RECORD_MAX_PROFILES (1u << 12)

/** The most threads and applications of a whole record, and the most phases of its applications, that a program keeps. */
#define ASYM_RECORD_MAX_THREADS      (1u << 20)
#define ASYM_RECORD_MAX_APPLICATIONS (1u << 19)
#define ASYM_RECORD_MAX_PHASES       (1u << 20)

/** The most bytes of a segment's content, and of a text. */
#define ASYM_RECORD_MAX_CONTENT ((size_t)32 << 20)
#define ASYM_RECORD_MAX_TEXT    4096u

/** A record keeps shares of an interval as whole numbers of this part. */
#define ASYM_RECORD_SHARE 16384

/** An option of the configuration that was in force: "classify.amp_boost", "1s". */
struct asym_record_setting {
    const char *name, *value;
};

/** The facts about a whole record. All texts are borrowed, and are UTF-8 without control characters. */
struct asym_record_head {
    const char *version; /**< of the asymd that made it */
    const char *policy;  /**< the policy that planned while asymd recorded */
    bool keep_nice;      /**< asym_engine_config.keep_nice */
    uint64_t began;      /**< seconds since 1970 */
    asym_usec interval;  /**< microseconds between two samples, as configured */
    const struct asym_record_setting *settings;
    const char *const *notes; /**< sentences on what affects a plan and is not in the snapshots */
    size_t n_settings, n_notes;
};

enum { ASYM_RECORD_MAX_SETTINGS = 4096, ASYM_RECORD_MAX_NOTES = 64 };

#endif
