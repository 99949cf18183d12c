/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Codes a machine. */
#ifndef ASYM_RECORD_RECORD_MACHINE_H
#define ASYM_RECORD_RECORD_MACHINE_H

#include <asym/machine.h>

#include "record/record-io.h"

/**
 * Code the fields that asym_machine_finish derives the others from. While reading, *m gets all fields; it is not used if a
 * fault is noted.
 */
void asym_record_machine(struct asym_record_io *io, struct asym_machine *m);

#endif
