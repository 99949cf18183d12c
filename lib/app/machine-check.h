/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Collects what asymd --check and asymctl check print. Changes nothing on the machine. */
#ifndef ASYM_APP_MACHINE_CHECK_H
#define ASYM_APP_MACHINE_CHECK_H

#include "app/run.h"
#include "report/check.h"

/** Fill check, which is all zero, with the lines and the verdict on the machine and the policy of run. Returns 0; -errno. */
int asym_run_check(struct asym_run *run, struct asym_check *check);

#endif
