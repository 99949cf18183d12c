/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The helper process that accepts and closes the connections of programs (linux/sys/helper-process.h, role "rtx";
 * include/asym/rtx.h).
 *
 * asymd never receives from a program, and never drops the last reference to a file that a program also holds. Both can
 * sleep for as long as the program wants. A message that waits in a socket may carry a file whose last close lingers (TCP) or
 * waits for another process (a pipe, FUSE). The last close of an eventfd waits for each epoll instance that the program has
 * added it to. So this process holds
 * - the listening socket: asymd binds it and passes on its only reference; this process calls listen(2). Until then no
 *   connection can wait in it;
 * - every connection;
 * - a second reference to every eventfd that asymd has handed out. To close one, asymd passes a third reference
 *   (ASYM_RTXD_ORDER_HOLD), which shows that this process is alive, closes its own, and then lets this process close both. If
 *   asymd is killed, this process ends after all threads of asymd. One case remains: this process is killed between the first
 *   two of these steps.
 * A close that may sleep is done by the end of a child process (rtx-closer.h). An ended connection whose page is unread stays
 * open, because only its socket shows when the page is read. A child process empties its queue meanwhile: a program may have
 * sent its own end of the connection and have ended.
 *
 * On kernels with SO_PASSRIGHTS (Linux 6.16), sendmsg(2) of a descriptor fails at the sender.
 */
#ifndef ASYM_LINUX_RTX_ACCEPTOR_H
#define ASYM_LINUX_RTX_ACCEPTOR_H

#include "linux/rtx/rtx-orders.h"

/** Run the role. Returns the exit status of the process. */
int asym_rtxd_acceptor_run(int orders, int reports);

#endif
