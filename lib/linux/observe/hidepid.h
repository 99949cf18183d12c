/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The mount option hidepid of /proc: whether the kernel hides processes from users who do not own them. */
#ifndef ASYM_LINUX_OBSERVE_HIDEPID_H
#define ASYM_LINUX_OBSERVE_HIDEPID_H

#include <stdbool.h>

#include <asym/types.h>

#include "linux/sys/helper-process.h"
#include "linux/sys/root.h"

/**
 * Read the option of the file system that is mounted at proc of the root, from mountinfo. What asymd itself may see does not
 * matter. The read ends at the line of /proc, which is among the first: it costs about 30 us, and waits for no file system. But the
 * kernel takes its lock for all mounts (namespace_sem), and any user who may create a user namespace can keep that lock for
 * seconds. So the service lets a helper process read, as below.
 * Returns 1: hidepid is not 0; 0: it is, or is not given; -ENOENT: mountinfo has no such mount; -errno.
 */
int asym_hidepid_read(const struct asym_root *root);

/**
 * The time for which an answer holds, in microseconds. A user can keep the lock for seconds at a time, and with luck for longer, or
 * keep asymd from starting a helper: the last answer must not hold for as long as the user likes.
 */
#define ASYM_HIDEPID_WITHIN (10 * ASYM_SEC)

/** Reads the option of this machine again and again, in a helper (linux/sys/helper-process.h). */
struct asym_hidepid_watch {
    struct asym_helper helper;
    bool asked; /**< the helper has not answered yet */
    asym_usec asked_at;
    asym_usec answered_at; /**< the last answer; before the first one: when the watch began */
    bool hides; /**< the last answer; true before the first one, and while it is older than ASYM_HIDEPID_WITHIN */
};

/** program: the helper's file, borrowed. */
void asym_hidepid_watch_init(struct asym_hidepid_watch *w, const char *program, asym_usec now);

/**
 * Take the answer to the last request, then request the option again, unless an answer is due. Sets hides. Starts the helper, and
 * starts another one if it has ended, or has not answered for ASYM_HIDEPID_WITHIN. Never waits. A helper that waits for the lock
 * does not end before it has the lock, so at most ASYM_HELPER_MAX_DYING are replaced.
 * Returns 0: there is a new answer; -EAGAIN: there is none yet; -ETIMEDOUT: nor has there been one for ASYM_HIDEPID_WITHIN; -errno:
 * the helper cannot be started, or cannot read the option.
 */
int asym_hidepid_watch_update(struct asym_hidepid_watch *w, asym_usec now);

/** Kill the helper. Accepts a watch that is all zero. */
void asym_hidepid_watch_done(struct asym_hidepid_watch *w);

/** Run as a helper: asym_helper_role.run. Returns the exit status. */
int asym_hidepid_run(int orders, int reports);

#endif
