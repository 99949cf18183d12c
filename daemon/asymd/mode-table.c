/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/mode-table.h"

#include <stdlib.h>
#include <unistd.h>

const struct asym_mode_entry *const asym_modes[] = {
#define ASYM_MODE(NAME, name) &asym_mode_##name,
#include "daemon/asymd/modes.def"
#undef ASYM_MODE
};

/* systemd sets NOTIFY_SOCKET for a unit of Type=notify, and connects it to no terminal. */
const struct asym_mode_entry *asym_mode_default(void)
{
    const bool by_systemd = getenv("NOTIFY_SOCKET") != NULL;
    return !by_systemd && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) ? &asym_mode_overview : &asym_mode_service;
}
