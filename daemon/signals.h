/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What this run can measure beyond /proc: counters and profiles; and which policies that leaves. */
#ifndef ASYM_DAEMON_SIGNALS_H
#define ASYM_DAEMON_SIGNALS_H

#include <stddef.h>

#include <asym/error.h>
#include <asym/machine.h>
#include <asym/policy.h>
#include <asym/settings.h>
#include <asym/signal.h>

#include "linux/counters.h"
#include "linux/root.h"
#include "profile/profiles.h"

/** All zero: nothing was looked for yet. */
struct asym_signals {
    const char *missing[ASYM_N_SIGNALS]; /**< NULL: it is there; else why not. Static */
    const struct asym_root *root;        /**< borrowed */
    struct asym_profiles *profiles;      /**< NULL: there are none */
    struct asym_profile *resolved;       /**< by the machine's core types, in the order of the file; addresses hold */
    size_t n_resolved;
};

/**
 * Find out. The file of profiles need not exist. Returns 0; -errno with err, and *s is as it was: the file is there and
 * cannot be read as one.
 */
int asym_signals_read(struct asym_signals *s, const struct asym_root *root, const struct asym_machine *machine,
                      const struct asym_settings *settings, struct asym_error *err);
void asym_signals_done(struct asym_signals *s);

/** The core types of the machine may be others now. */
void asym_signals_resolve(struct asym_signals *s, const struct asym_machine *machine);

/** For asym_procfs_config.profile_of and wants_build_id; s is a struct asym_signals. */
const struct asym_profile *asym_signals_profile_of(void *s, const char *exe, const char *build_id);
bool asym_signals_wants_build_id(void *s, const char *exe);

/** Counters for as many threads as the settings' descriptors allow; NULL: there are none. 0; -errno with err. */
int asym_signals_counters(const struct asym_signals *s, const struct asym_settings *settings,
                          struct asym_counters **ret, struct asym_error *err);

/** 0; -ENODATA with err: why the policy cannot run live, or the first signal that it needs and lacks, and which can run. */
int asym_signals_check(const char *const missing[ASYM_N_SIGNALS], const struct asym_policy *policy,
                       struct asym_error *err);

/** Names of the policies that need nothing that is missing, comma-separated. */
void asym_signals_policies(const char *const missing[ASYM_N_SIGNALS], char *buf, size_t size);

#endif
