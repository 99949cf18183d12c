/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The orders and reports between asymd and the helper process that accepts connections, and its limits (rtx-acceptor.h). */
#ifndef ASYM_LINUX_RTX_ORDERS_H
#define ASYM_LINUX_RTX_ORDERS_H

#include <stdint.h>

/**
 * Connections at a time, including those that asymd has not answered yet, and ended ones whose page is unread. The last
 * ASYM_RTXD_MAX_UNANSWERED_OF_USER of them are for root alone. Each has at most two descriptors in flight, so that fewer than
 * 1,024 are: that is the usual limit (RLIMIT_NOFILE), from which on the kernel lets no unprivileged process of the helper's
 * user pass descriptors.
 */
#define ASYM_RTXD_MAX_CONNECTIONS 496
/** Connections that wait for asymd's answer, of all users but root, and of one user; further ones are closed at once. */
#define ASYM_RTXD_MAX_UNANSWERED         128
#define ASYM_RTXD_MAX_UNANSWERED_OF_USER 16
/**
 * A user with this many pages that its programs have not read is refused. The user may get a page for each unanswered
 * connection on top. A program reads its page within milliseconds, unless it is stopped.
 */
#define ASYM_RTXD_MAX_UNREAD_OF_USER 32
/**
 * If all users but root together have this many unread pages, each of them that has one is refused. So unread pages leave
 * room for the ASYM_RTXD_MAX_OF_USERS places and the unanswered connections of users whose programs read.
 */
#define ASYM_RTXD_MAX_UNREAD 96
/** Connections of one user: a burst, then a rate per second; root has four times as many. Further ones are closed at once. */
#define ASYM_RTXD_BURST   72.0
#define ASYM_RTXD_PER_SEC 4.0
/** A close that sleeps for this many milliseconds counts as hung, and its user is refused (rtx-closer.h). */
#define ASYM_RTXD_HUNG_MS 1000

enum asym_rtxd_order_kind {
    ASYM_RTXD_ORDER_LISTEN = 1, /**< one descriptor: a bound socket. Each helper gets this order once */
    ASYM_RTXD_ORDER_GRANT,      /**< two descriptors, memfd and eventfd: send them to the program of connection id */
    ASYM_RTXD_ORDER_HOLD,       /**< hold these descriptors until id is closed; asymd closes its own meanwhile */
    ASYM_RTXD_ORDER_CLOSE,      /**< close the connection id, if it exists, and the descriptors held for it */
    ASYM_RTXD_ORDER_PING,       /**< report ASYM_RTXD_REPORT_ALIVE with this id */
};

/** Bits of an order. */
enum {
    ASYM_RTXD_FILES_MAY_BE_PASSED = 1 << 0, /**< LISTEN: do not use SO_PASSRIGHTS; for tests */
};

struct asym_rtxd_order {
    uint32_t kind; /**< enum asym_rtxd_order_kind */
    uint32_t id;
    uint32_t flags;
    uint32_t page_size; /**< GRANT: bytes, for the handshake */
};

enum asym_rtxd_report_kind {
    ASYM_RTXD_REPORT_CAME = 1, /**< a program has connected: id, pid, uid, is_certain */
    ASYM_RTXD_REPORT_GONE,     /**< id has ended */
    ASYM_RTXD_REPORT_BREACH,   /**< id has sent something */
    ASYM_RTXD_REPORT_FOREIGN,  /**< the helper closed a connection: its process is not visible in this PID namespace */
    ASYM_RTXD_REPORT_HUNG,     /**< a close on behalf of uid hangs, or too many wait: the helper refuses the user */
    ASYM_RTXD_REPORT_ALIVE,    /**< answer to PING id: cpu_usec, turned_away */
    ASYM_RTXD_REPORT_FREED,    /**< the helper accepts uid again */
};

struct asym_rtxd_report {
    uint32_t kind; /**< enum asym_rtxd_report_kind */
    uint32_t id;
    int32_t pid;
    uint32_t uid;
    uint32_t is_certain;  /**< a GRANT reaches only the process that connected as pid (SO_PEERPIDFD) */
    uint32_t turned_away; /**< connections closed at once so far */
    uint64_t cpu_usec;    /**< CPU time of the helper so far, microseconds */
};

#endif
