/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Sets up the machine of a run: its topology and speeds, as changed by the configuration. */
#ifndef ASYM_APP_MACHINE_SETUP_H
#define ASYM_APP_MACHINE_SETUP_H

#include <asym/error.h>

#include "app/run.h"

/** Read the machine, and mark the configured CPUs as slow. Returns 0; -errno with err, and changes nothing. */
int asym_run_machine(struct asym_run *run, struct asym_error *err);

/** Do the same after hotplug. Keeps the choice of slow CPUs; a slow CPU that is offline is no error. */
int asym_run_machine_changed(struct asym_run *run, struct asym_error *err);

#endif
