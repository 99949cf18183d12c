/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The server's channel to the helper process that accepts connections (rtx-acceptor.h). It is a table of functions, so that
 * tests can replace the helper. No call blocks.
 */
#ifndef ASYM_LINUX_RTX_LINK_H
#define ASYM_LINUX_RTX_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/error.h>

#include "linux/rtx/rtx-orders.h"

struct asym_rtxd_link {
    /**
     * Start the helper; none may be running. The calling process becomes a subreaper until close, to count the closers
     * (rtx-closer.h) of helpers that were killed. 0; -EBUSY: those of ASYM_HELPER_MAX_DYING helpers have not ended; -errno.
     * Both with err.
     */
    int (*start)(struct asym_rtxd_link *link, struct asym_error *err);
    /** Returns a borrowed descriptor, readable when reports wait or the helper has ended; -1: no helper runs. */
    int (*fd)(const struct asym_rtxd_link *link);
    /** Send an order. The caller keeps its descriptors. 0; -EAGAIN: the channel is full; -ENOTCONN: the helper has ended. */
    int (*order)(struct asym_rtxd_link *link, const struct asym_rtxd_order *order, const int *fds, size_t n_fds);
    /** Receive one report. Returns its length, which the caller checks; -EAGAIN: none; -ENOTCONN: the helper has ended. */
    ssize_t (*report)(struct asym_rtxd_link *link, struct asym_rtxd_report *ret);
    /** Returns whether the helper runs or waits for a CPU. false: it sleeps, has ended, or none runs. */
    bool (*is_runnable)(const struct asym_rtxd_link *link);
    /** Kill the helper. Does nothing if none runs. */
    void (*kill)(struct asym_rtxd_link *link);
    /** Reap killed helpers and their closers that have exited. */
    void (*reap)(struct asym_rtxd_link *link);
    /** Kill the helper and free the link. The calling process is a subreaper afterwards only if it was one before. */
    void (*close)(struct asym_rtxd_link *link);
};

/** Create a link that runs `program` as the helper. The string is copied. Returns NULL if memory is short. */
struct asym_rtxd_link *asym_rtxd_link_new(const char *program);

#endif
