/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Users that the ACL of the socket keeps out. */
#ifndef ASYM_LINUX_RTX_RTX_BAR_H
#define ASYM_LINUX_RTX_RTX_BAR_H

#include "linux/rtx/rtx-server-config.h"

/**
 * Forbid a user to connect to the socket. Root is always allowed. 0; -EOPNOTSUPP: the file system has no ACLs; -EINVAL: the
 * user is not mapped in this user namespace; -ENOSPC: ASYM_RTXD_MAX_BARRED others; -errno. After an error only the helper
 * refuses the user.
 */
int asym_rtxd_bar(struct asym_rtxd_server *s, uid_t uid);

/** Allow it again. If the ACL cannot be changed, the next change or the next socket lets the user in. */
void asym_rtxd_unbar(struct asym_rtxd_server *s, uid_t uid);

#endif
