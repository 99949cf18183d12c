/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Slows CPUs by caps, remembers their limits from before, and restores them. asymd writes the original limits to the ledger
 * before the first change, so that they survive a kill -9. A boot removes all caps, as it makes the ledger stale.
 */
#ifndef ASYM_LINUX_SPEED_CAP_SPEED_CAP_H
#define ASYM_LINUX_SPEED_CAP_SPEED_CAP_H

#include <stddef.h>

#include <asym/types.h>
#include <asym/machine.h>

#include "linux/enforce/enforce.h"
#include "linux/speed-cap/cap.h"

struct asym_speed_cap;

/**
 * Loads the records that an earlier asymd has left in the ledger, which is borrowed. methods: NULL-terminated, borrowed; they
 * restore the recorded limits. Returns 0; -ENOMEM. If a record is invalid, it returns 0 with the record in err. The record stays in
 * the ledger, and asymd caps no CPU while it is there.
 */
int asym_speed_cap_open(struct asym_ledger *ledger, const struct asym_cap_method *const *methods,
                        struct asym_speed_cap **ret, struct asym_error *err);

/** Frees a, which may be NULL. The records stay. */
void asym_speed_cap_close(struct asym_speed_cap *a);

/**
 * Caps each usable CPU of slow at the state nearest to its speed that the method has. If the same caps are in force, it changes
 * nothing; else it restores the old ones first. On failure it restores all CPUs.
 * Returns 0; -EINVAL: slow has only a part of a frequency domain or core, the CPUs of one have different speeds, or the method
 * does not know this form of speed; -EOPNOTSUPP, -ENODEV: this machine does not support the method; -EACCES, -EPERM;
 * -ENOTSUP: the driver accepts a cap and ignores it; -errno. err has the CPU and the reason.
 */
int asym_speed_cap_set(struct asym_speed_cap *a, const struct asym_cap_method *method, const struct asym_machine *m,
                       const struct asym_mask *slow, const struct asym_slow_speeds *speeds, struct asym_error *err);

/**
 * Checks the caps. If another program has changed a limit, asymd leaves that limit, restores the other one, and releases the
 * CPUs, which ret_let_go gets. After hotplug it caps a CPU again that has its original limits, or restores a CPU that was
 * offline when asymd had to; the next check looks at what became of that. It never waits.
 * Returns 1 when the speeds have changed (asym_speed_cap_speeds), else 0.
 */
int asym_speed_cap_check(struct asym_speed_cap *a, struct asym_mask *ret_let_go);

/** Returns the speeds in force, as shares of the CPUs' full speed. Borrowed; valid until the next call. */
const struct asym_caps *asym_speed_cap_speeds(const struct asym_speed_cap *a);

struct asym_speed_restore_report {
    size_t restored; /**< frequency domains (cores) that asymd has restored */
    size_t foreign;  /**< domains with a limit that another program has changed, which asymd leaves */
    size_t offline;  /**< domains that are offline; they stay in the ledger until asymd can restore them */
    size_t failed;   /**< domains whose write failed, and records that asymd cannot read; they stay in the ledger */
    int error;       /**< of the first that failed, -errno */
};

/** Restores all CPUs. It changes only limits that still have the value that asymd set. */
void asym_speed_cap_restore(struct asym_speed_cap *a, struct asym_speed_restore_report *ret_report);

#endif
