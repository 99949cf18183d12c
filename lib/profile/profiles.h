/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What programs did on each type of core, measured beforehand: an INI file with a section for each executable.
 *
 *     [/usr/bin/gzip]
 *     build_id = 53e2a2...
 *     ips.P-core = 9123000000.000
 *     mpki.P-core = 0.4100
 *     ips.E-core = 4711000000.000
 *
 * A section's name is the path with bytes that are not printable UTF-8 as \xNN and a backslash as \\.
 */
#ifndef ASYM_PROFILE_PROFILES_H
#define ASYM_PROFILE_PROFILES_H

#include <stddef.h>

#include <asym/error.h>
#include <asym/machine.h>
#include <asym/snapshot.h>

#include "profile/build-id.h"

struct asym_profile_type {
    char name[32]; /**< of a core type: letters, digits and " -_+." inside */
    double ips;    /**< instructions per second on a CPU; 0: not known */
    double mpki;   /**< misses of the last-level cache per 1000 instructions; below 0: not known */
};

struct asym_profile_entry {
    const char *path;                 /**< absolute; borrowed */
    char build_id[ASYM_BUILD_ID_MAX]; /**< lower-case hexadecimal digits; "": not known */
    unsigned n_types;
    struct asym_profile_type types[ASYM_MAX_TYPES];
};

struct asym_profiles;

/**
 * Read the file. Returns 0; -ENOENT: there is none; -EINVAL: its content, with "FILE:LINE: what is wrong, what is
 * accepted"; -errno; with err each.
 */
int asym_profiles_load(const char *file, struct asym_profiles **ret, struct asym_error *err);
void asym_profiles_free(struct asym_profiles *p);

/** NULL behind the last; by path. */
const struct asym_profile_entry *asym_profiles_at(const struct asym_profiles *p, size_t i);

/**
 * The profile of this executable; NULL: there is none, or it is of another build. build_id NULL or "", or not known to the
 * profile: the path decides alone.
 */
const struct asym_profile_entry *asym_profiles_find(const struct asym_profiles *p, const char *path,
                                                    const char *build_id);

/** What it has for the core type of that name; NULL: nothing. */
const struct asym_profile_type *asym_profile_on(const struct asym_profile_entry *profile, const char *type);

/** The same by the machine's types, as snapshots have it: what was measured on types of other names is left out. */
struct asym_profile asym_profile_of(const struct asym_profile_entry *profile, const struct asym_machine *m);

/**
 * Put the profile into the file, in place of the section of its path or else at the end; the rest stays as it is, comments
 * too. The file is made where there is none, replaced as a whole, and locked against others who do the same.
 * Returns 0; -EINVAL: the profile cannot be written down, or the file is not one of profiles (as asym_profiles_load says it);
 * -errno; with err each, and the file unchanged.
 */
int asym_profiles_save(const char *file, const struct asym_profile_entry *profile, struct asym_error *err);

#endif
