/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Writes a profile into the file of profiles. */
#ifndef ASYM_PROFILE_PROFILES_SAVE_H
#define ASYM_PROFILE_PROFILES_SAVE_H

#include <asym/error.h>

#include "profile/profiles.h"

/**
 * Put the profile into the file: in place of the section of its path, else at the end. The rest stays as it is, with its
 * comments. The function creates a missing file, replaces the file as a whole, and locks the directory against other writers.
 * Returns 0; -EINVAL: the profile has no valid text form, or asym_profiles_load rejects the file; -ENOMEM; -errno. Each error
 * sets err and leaves the file unchanged.
 */
int asym_profiles_save(const char *file, const struct asym_profile_entry *profile, struct asym_error *err);

#endif
