/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * asymd's channel to the process that accepts connections (rtx-acceptor.h), as the server sees it. A table of functions, so
 * that tests put themselves in that process's place. No call waits.
 */
#ifndef ASYM_LINUX_RTX_LINK_H
#define ASYM_LINUX_RTX_LINK_H

#include <stddef.h>
#include <sys/types.h>

#include <asym/error.h>

#include "linux/rtx-acceptor.h"

struct asym_rtx_link {
    /** Start the process; there must be none. 0; -errno with err. */
    int (*start)(struct asym_rtx_link *link, struct asym_error *err);
    /** Readable when there are reports, or the process has ended; -1: there is none. Borrowed. */
    int (*fd)(const struct asym_rtx_link *link);
    /** The descriptors stay the caller's. 0; -EAGAIN: not now; -ENOTCONN: the process has ended. */
    int (*order)(struct asym_rtx_link *link, const struct asym_rtx_order *order, const int *fds, size_t n_fds);
    /** One report. Its length, which the caller checks; -EAGAIN: none; -ENOTCONN: the process has ended. */
    ssize_t (*report)(struct asym_rtx_link *link, struct asym_rtx_report *ret);
    /** End the process. Nothing happens where there is none. */
    void (*kill)(struct asym_rtx_link *link);
    /** Collect those that were ended and are gone by now. */
    void (*reap)(struct asym_rtx_link *link);
    /** Also kill. */
    void (*close)(struct asym_rtx_link *link);
};

/** A helper process; program is copied. NULL: no memory. */
struct asym_rtx_link *asym_rtx_link_new(const char *program);

#endif
