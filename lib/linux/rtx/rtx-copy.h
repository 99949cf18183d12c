/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The page of a program: a memfd, of which the server reads copies. */
#ifndef ASYM_LINUX_RTX_RTX_COPY_H
#define ASYM_LINUX_RTX_RTX_COPY_H

#include "linux/rtx/rtx-server-config.h"

struct asym_rtxd_client;

/** Size of every memfd, bytes: the library's maximum and 64 KiB for later versions. */
#define ASYM_RTXD_PAGE_SIZE (ASYM_RTXD_MAX_SLOTS * 64 + 65536)

/** Create the memfd of a page. Returns its descriptor; -errno. */
int asym_rtxd_make_memfd(void);

/** Read the header of a page into c->layout. 0; -EAGAIN: no header yet; -EPROTO, -EPROTONOSUPPORT. */
int asym_rtxd_read_header(struct asym_rtxd_server *s, struct asym_rtxd_client *c);

/** Copy the used slots of a page, at most `most`, to s->copy. Returns their number. */
size_t asym_rtxd_copy_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most);

#endif
