/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Makes CPUs slower, remembers what they were held to before, and puts that back. What is to be put back is written to
 * DIR/cpus before the first change, so that it outlives a kill -9; a file of another boot is stale. The caller holds the
 * lock of the ledger in DIR.
 */
#ifndef ASYM_LINUX_ASYMMETRY_H
#define ASYM_LINUX_ASYMMETRY_H

#include <stddef.h>

#include <asym/error.h>
#include <asym/machine.h>

#include "linux/cap.h"

struct asym_asymmetry;

/**
 * Read in what an earlier asymd has left in dir. methods: NULL-terminated, borrowed; they carry out what is put back.
 * 0; -ENOMEM; -errno. Records that cannot be read are said in err, and the file is kept aside as cpus.bad.
 */
int asym_asymmetry_open(const char *dir, const struct asym_cap_method *const *methods,
                        struct asym_asymmetry **ret_asymmetry, struct asym_error *err);

/** Frees; removes the file only when it holds nothing to put back. NULL is accepted. */
void asym_asymmetry_close(struct asym_asymmetry *a);

/**
 * Hold the slow CPUs of the machine that are usable to speed, as near as the method comes. What is held already is let be where it is
 * what is asked for, and put back first where it is not. On failure everything is put back.
 * 0; -EINVAL: the CPUs are part of a frequency domain or core only, or the speed is nothing the method knows;
 * -EOPNOTSUPP, -ENODEV: not to be had here; -EACCES, -EPERM; -ENOTSUP: the driver accepts and ignores; -errno: err says
 * which CPU and why.
 */
int asym_asymmetry_set(struct asym_asymmetry *a, const struct asym_cap_method *method, const struct asym_machine *m,
                       const struct asym_mask *slow, const struct asym_slow_speed *speed, struct asym_error *err);

/**
 * Look after what was set. What somebody else has changed is theirs from now on, and what they have not is given back:
 * ret_let_go has those CPUs. A CPU that was offline and has come back as it was before asymd is held again, one that was to
 * be put back meanwhile is. Returns 1 when the speeds have changed
 * (asym_asymmetry_caps), 0 when not.
 */
int asym_asymmetry_check(struct asym_asymmetry *a, struct asym_mask *ret_let_go);

/** The speeds in force, as shares of what the CPUs can do. Borrowed; valid until the next call. */
const struct asym_caps *asym_asymmetry_caps(const struct asym_asymmetry *a);

struct asym_undo_report {
    size_t restored,
        foreign;    /**< frequency domains (cores): put back; changed by somebody else meanwhile, left alone */
    size_t offline; /**< cannot be reached now; they stay in the file, and are put back when they can */
    size_t failed;  /**< refused: they stay in the file */
    int error;      /**< of the first that failed, -errno */
};

/** Put everything back. Compares before it writes. */
void asym_asymmetry_undo(struct asym_asymmetry *a, struct asym_undo_report *ret_report);

#endif
