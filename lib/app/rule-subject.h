/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Reads the attributes of a process that rules match, as the service reads them. */
#ifndef ASYM_APP_RULE_SUBJECT_H
#define ASYM_APP_RULE_SUBJECT_H

#include <asym/error.h>
#include <asym/settings.h>

#include "linux/observe/proc-reader.h"
#include "linux/sys/root.h"

/** Bytes of a path of a program or a control group. */
#define ASYM_RULE_SUBJECT_PATH 4096

/** The texts that of points to. */
struct asym_rule_subject_texts {
    struct asym_rule_subject of; /**< a text that this user may not read is NULL */
    char comm[ASYM_COMM_LEN], exe[ASYM_RULE_SUBJECT_PATH], cgroup[ASYM_RULE_SUBJECT_PATH];
    char cmdline[ASYM_READ_CMDLINE_MAX];
};

/**
 * Read a process. It can delay the call: the command line is in its memory. Returns 0; -ESRCH with err: there is no such process;
 * -errno with err.
 */
int asym_rule_subject_read(const struct asym_root *root, int32_t pid, struct asym_rule_subject_texts *ret,
                           struct asym_error *err);

#endif
