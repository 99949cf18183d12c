/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The assessment of the machine: one sentence that says what asymd can do for this machine. */
#ifndef ASYM_APP_ASSESSMENT_H
#define ASYM_APP_ASSESSMENT_H

#include <stddef.h>

#include "app/run.h"
#include "core/machine-situation.h"

/** Write the assessment of the machine of run, which has its machine and its policy. Returns the situation that it describes. */
enum asym_situation asym_assess(const struct asym_run *run, char *buf, size_t size);

#endif
