/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The RTX server and its helper without the rest of asymd, in a separate process. It is set up as on a kernel before Linux
 * 6.16, which has no SO_PASSRIGHTS and so cannot refuse descriptors in messages.
 */
#ifndef ASYM_TESTS_SUPPORT_RTX_ALONE_H
#define ASYM_TESTS_SUPPORT_RTX_ALONE_H

#include <sys/types.h>

/**
 * Start the server with the socket "rtx" in dir. It ends at SIGTERM, and with its parent. notify is -1, or a datagram socket to
 * which it sends WATCHDOG=1 about every second. Returns the process id; -errno.
 */
pid_t asym_rtx_alone_start(const char *dir, int notify);

#endif
