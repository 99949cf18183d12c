/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The RTX server and its helper without the rest of asymd, in a process of its own, set up as on a kernel that cannot bar
 * descriptors from messages (before SO_PASSRIGHTS, Linux 6.16).
 */
#ifndef ASYM_TESTS_RTX_ALONE_H
#define ASYM_TESTS_RTX_ALONE_H

#include <sys/types.h>

/**
 * Start it with the socket "rtx" in dir. It ends at SIGTERM, and with its parent. notify: -1, or a datagram socket to which it
 * says WATCHDOG=1 about every second. Its process; -errno.
 */
pid_t asym_rtx_alone_start(const char *dir, int notify);

#endif
