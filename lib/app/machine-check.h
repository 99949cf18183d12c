/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Collects what asymd --check and asymctl check print. Changes nothing on the machine. */
#ifndef ASYM_APP_MACHINE_CHECK_H
#define ASYM_APP_MACHINE_CHECK_H

#include <stddef.h>

#include <asym/snapshot.h>

#include "app/run.h"
#include "core/machine-situation.h"
#include "linux/observe/proc-reader.h"
#include "linux/rtx/rtx-overlay.h"
#include "report/check.h"

/** Write the assessment of the machine of run, which has its machine and its policy. Returns the situation that it describes. */
enum asym_situation asym_assess(const struct asym_run *run, char *buf, size_t size);

/**
 * Read the memory maps of the applications of root through reader (NULL: there is none), waiting at most a second. Returns an
 * array with the result for each application, which the caller frees; NULL: no memory. *ret_unread: how many could not be read
 * until then. A process that has ended meanwhile is none of them.
 */
enum asym_rtxd_detection *asym_machine_check_rtx(const struct asym_root *root, struct asym_proc_reader *reader,
                                                 const struct asym_snapshot *s, uint32_t *ret_unread);

/** Fill check, which is all zero, with the lines and the verdict on the machine and the policy of run. Returns 0; -errno. */
int asym_run_check(struct asym_run *run, struct asym_check *check);

#endif
