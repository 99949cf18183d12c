/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The helper reports a new connection. */
#ifndef ASYM_LINUX_RTX_RTX_ADMIT_H
#define ASYM_LINUX_RTX_RTX_ADMIT_H

#include "linux/rtx/rtx-orders.h"
#include "linux/rtx/rtx-server-config.h"

/** Admit the program, or refuse it and close the connection. */
void asym_rtxd_admit(struct asym_rtxd_server *s, const struct asym_rtxd_report *came, asym_usec now);

#endif
