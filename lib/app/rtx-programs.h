/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Finds the programs of a snapshot that report their threads by RTX (linux/rtx/rtx-detection.h). */
#ifndef ASYM_APP_RTX_PROGRAMS_H
#define ASYM_APP_RTX_PROGRAMS_H

#include <asym/snapshot.h>

#include "linux/observe/proc-reader.h"
#include "linux/rtx/rtx-detection.h"

/**
 * Read the memory maps of the applications of root through reader (NULL: there is none), waiting at most a second. Returns an
 * array with the result for each application, which the caller frees; NULL: no memory. *ret_unread: how many could not be read
 * until then. A process that has ended meanwhile is none of them.
 */
enum asym_rtxd_detection *asym_rtxd_programs_detect(const struct asym_root *root, struct asym_proc_reader *reader,
                                                    const struct asym_snapshot *s, uint32_t *ret_unread);

#endif
