/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The helper reports a new connection. */
#ifndef ASYM_LINUX_RTX_RTX_ADMIT_H
#define ASYM_LINUX_RTX_RTX_ADMIT_H

#include "linux/rtx/rtx-orders.h"
#include "linux/rtx/rtx-server-config.h"

struct asym_rtxd_client;

/** Report to the caller of the server that it refuses a program. pid: 0: unknown. */
void asym_rtxd_refuse(const struct asym_rtxd_server *s, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid);

/** asym_rtxd_refuse() and asym_rtxd_end(). */
void asym_rtxd_drop(struct asym_rtxd_server *s, struct asym_rtxd_client *c, enum asym_rtxd_refusal refusal);

/** Free the clients that have ended. */
void asym_rtxd_sweep(struct asym_rtxd_server *s);

/** Size of every memfd, bytes: the library's maximum and 64 KiB for later versions. */
#define ASYM_RTXD_PAGE_SIZE (ASYM_RTXD_MAX_SLOTS * 64 + 65536)

/** Read the header of a page into c->layout. 0; -EAGAIN: no header yet; -EPROTO, -EPROTONOSUPPORT. */
int asym_rtxd_read_header(struct asym_rtxd_server *s, struct asym_rtxd_client *c);

/** Copy the used slots of a page, at most `most`, to s->copy. Returns their number. */
size_t asym_rtxd_copy_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most);

/** Admit the program, or refuse it and close the connection. */
void asym_rtxd_admit(struct asym_rtxd_server *s, const struct asym_rtxd_report *came, asym_usec now);

#endif
