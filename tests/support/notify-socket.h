/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The manager's end of the sd_notify socket. A failure ends in an assertion. */
#ifndef ASYM_TESTS_SUPPORT_NOTIFY_SOCKET_H
#define ASYM_TESTS_SUPPORT_NOTIFY_SOCKET_H

#include <stddef.h>

/** Make the socket dir/notify, and set NOTIFY_SOCKET. A receive waits at most ASYM_LIVE_PATIENCE. Returns the descriptor. */
int asym_notify_socket_open(const char *dir);

/** Close the socket, and unset NOTIFY_SOCKET. */
void asym_notify_socket_close(int fd);

/** Send messages "full" to the socket of NOTIFY_SOCKET until its queue takes no more. */
void asym_notify_socket_fill(void);

/** Wait for the next message that contains the text. */
void asym_notify_socket_await(int fd, const char *wanted, char *ret, size_t size);

#endif
