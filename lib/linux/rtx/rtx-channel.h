/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The channel between the RTX server and its helper: starts, pings and replaces the helper, and sends orders to it. */
#ifndef ASYM_LINUX_RTX_RTX_CHANNEL_H
#define ASYM_LINUX_RTX_RTX_CHANNEL_H

#include "linux/rtx/rtx-orders.h"
#include "linux/rtx/rtx-server-config.h"

/** Returns the work of the helpers so far. */
struct asym_rtxd_helper_use asym_rtxd_server_helper_use(const struct asym_rtxd_server *s);

/** Start a helper and hand it the socket. After a failure asym_rtxd_update_helper() tries again later. 0; -errno with err. */
int asym_rtxd_start_helper(struct asym_rtxd_server *s, asym_usec now, struct asym_error *err);

/** Kill the helper. This ends all connections and all clients, which the next asym_rtxd_sweep() frees. */
void asym_rtxd_lose_helper(struct asym_rtxd_server *s, asym_usec now, const char *why);

/** Kill a helper that does not answer, as asym_rtxd_lose_helper(). */
void asym_rtxd_check_helper(struct asym_rtxd_server *s, asym_usec now);

/** Ping the helper, start another one if it is gone, and hand over the eventfds that it has to close. */
void asym_rtxd_update_helper(struct asym_rtxd_server *s, asym_usec now);

/**
 * Send an order. 0; -EAGAIN: the channel is full; -ENOTCONN: the helper has ended, and asym_rtxd_update_helper() replaces it;
 * -errno.
 */
int asym_rtxd_order(struct asym_rtxd_server *s, const struct asym_rtxd_order *order, const int *fds, size_t n_fds);

/**
 * Close the connection and hand the eventfd to the helper (-1: no eventfd). The helper gets the eventfd first: while it has the
 * connection, it knows the user of the eventfd.
 */
void asym_rtxd_close_connection(struct asym_rtxd_server *s, uint32_t id, int event);

#endif
