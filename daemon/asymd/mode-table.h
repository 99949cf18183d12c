/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The table of the modes, from modes.def. cli.c reads it, and it holds --help and --help-config, whose texts cli.c prints:
 * these files call each other in a circle.
 */
#ifndef ASYM_DAEMON_ASYMD_MODE_TABLE_H
#define ASYM_DAEMON_ASYMD_MODE_TABLE_H

#include "daemon/asymd/mode.h"

/** Indexed by enum asym_mode. */
extern const struct asym_mode_entry *const asym_modes[ASYM_N_MODES];

#endif
