/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The end of a client, and the report of a refusal. */
#ifndef ASYM_LINUX_RTX_RTX_END_H
#define ASYM_LINUX_RTX_RTX_END_H

#include "linux/rtx/rtx-server-config.h"

struct asym_rtxd_client;

/** Report to the caller of the server that it refuses a program. pid: 0: unknown. */
void asym_rtxd_refuse(const struct asym_rtxd_server *s, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid);

/** asym_rtxd_refuse() and asym_rtxd_end(). */
void asym_rtxd_drop(struct asym_rtxd_server *s, struct asym_rtxd_client *c, enum asym_rtxd_refusal refusal);

/** Free the clients that have ended. */
void asym_rtxd_sweep(struct asym_rtxd_server *s);

#endif
