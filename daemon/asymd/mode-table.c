/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/mode-table.h"

const struct asym_mode_entry *const asym_modes[] = {
#define ASYM_MODE(NAME, name) &asym_mode_##name,
#include "daemon/asymd/modes.def"
#undef ASYM_MODE
};
