/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Profiles: what a measured run of each program found on each core type. The file is INI, with a section per executable.
 *
 *     [/usr/bin/gzip]
 *     build_id = 53e2a2...
 *     ips.P-core = 9123000000.000
 *     mpki.P-core = 0.4100
 *     ips.E-core = 4711000000.000
 *
 * The name of a section is the path. Bytes that are not printable UTF-8 are \xNN, and a backslash is \\.
 */
#ifndef ASYM_PROFILE_PROFILES_H
#define ASYM_PROFILE_PROFILES_H

#include <limits.h>
#include <stddef.h>

#include <asym/types.h>
#include <asym/machine.h>
#include <asym/snapshot.h>

struct asym_profile_type {
    char name[32]; /**< the core type: letters and digits, and " -_+." between them */
    double ips;    /**< instructions per second on a CPU; 0: not known */
    double mpki;   /**< misses of the last-level cache per 1000 instructions; below 0: not known */
};

struct asym_profile_entry {
    const char *path;                 /**< absolute; borrowed */
    unsigned line;                    /**< of its section, in a file that was read */
    char build_id[ASYM_BUILD_ID_MAX]; /**< lower-case hexadecimal digits; "": not known */
    unsigned n_types;
    struct asym_profile_type types[ASYM_MAX_TYPES];
};

struct asym_profiles;

/**
 * Read the file. Returns 0; -ENOENT: there is none; -EINVAL: its content is wrong, and err says "FILE:LINE: what is wrong,
 * what is accepted"; -ENOMEM; -errno. Each error sets err.
 */
int asym_profiles_load(const char *file, struct asym_profiles **ret, struct asym_error *err);
void asym_profiles_free(struct asym_profiles *p);

/** Returns profile i, in the order of paths; NULL after the last. */
const struct asym_profile_entry *asym_profiles_at(const struct asym_profiles *p, size_t i);

/**
 * Returns the profile of this executable; NULL: there is none, or it is of another build. The path alone decides when
 * build_id is NULL or "", or when the profile has none.
 */
const struct asym_profile_entry *asym_profiles_find(const struct asym_profiles *p, const char *path,
                                                    const char *build_id);

/** Returns the figures for the core type of that name; NULL: the profile has none. */
const struct asym_profile_type *asym_profile_on(const struct asym_profile_entry *profile, const char *type);

/** Returns the figures by the machine's core types, as snapshots hold them. Leaves out types of other names. */
struct asym_profile asym_profile_of(const struct asym_profile_entry *profile, const struct asym_machine *m);

/**
 * Put the profile into the file: in place of the section of its path, else at the end. The rest stays as it is, with its
 * comments. The function creates a missing file, replaces the file as a whole, and locks the directory against other writers.
 * Returns 0; -EINVAL: the profile has no valid text form, or asym_profiles_load rejects the file; -ENOMEM; -errno. Each error
 * sets err and leaves the file unchanged.
 */
int asym_profiles_save(const char *file, const struct asym_profile_entry *profile, struct asym_error *err);

/* Internal to profiles*.c. */

/** The longest path, with every byte escaped, and NUL. */
enum { ASYM_PROFILE_SECTION_MAX = 4 * PATH_MAX + 1 };

/** Parse the path from a line that begins with '['. Returns 0; -EINVAL. */
int asym_profile_parse_section(const char *line, size_t len, char ret[PATH_MAX]);

/** Read the whole file. The caller frees *ret_text, which ends with NUL. Returns 0; -ENOENT: no file; -errno with err. */
int asym_profiles_read_file(const char *file, char **ret_text, size_t *ret_len, struct asym_error *err);

/** Does what asym_profiles_load does, from a text. */
int asym_profiles_parse(const char *file, const char *text, size_t len, struct asym_profiles **ret,
                        struct asym_error *err);

#endif
