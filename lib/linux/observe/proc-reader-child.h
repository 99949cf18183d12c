/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The helper of proc-reader.h: reads the facts of one process after the other. */
#ifndef ASYM_LINUX_OBSERVE_PROC_READER_CHILD_H
#define ASYM_LINUX_OBSERVE_PROC_READER_CHILD_H

#include "linux/observe/proc-reader.h"

/**
 * Read at once, in this process. The process that is read can block the call. build_id: as asym_build_id_read; NULL: build ids
 * are not read.
 */
void asym_proc_read(const struct asym_root *root, const struct asym_read_request *request,
                    int (*build_id)(int fd, char *ret), struct asym_read_answer *ret);

/** Run as a helper: asym_helper_role.run. build_id: as above. Returns the exit status. */
int asym_proc_reader_run(int orders, int reports, int (*build_id)(int fd, char *ret));

#endif
