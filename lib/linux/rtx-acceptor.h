/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The helper process that accepts and closes the connections of programs (linux/helper.h, role "rtx"; include/asym/rtx.h).
 *
 * asymd never receives from a program, and never drops the last reference to a file that a program holds, too. Both can
 * sleep for as long as the program wants: a message that waits in a socket may carry a file whose last close lingers (TCP) or
 * waits for another process (a pipe, FUSE), and the last close of an eventfd waits for each epoll instance that the program
 * has put it in. So this process holds
 * - the listening socket: asymd binds it, and gives its only reference away before listen(2) is called on it here. Until then
 *   no connection can wait in it;
 * - every connection;
 * - a second reference to every eventfd that was handed out. asymd has it hold one more (ASYM_RTX_ORDER_HOLD), which shows
 *   that this process is there, closes its own, and then has this process close both. Where asymd is killed this process ends
 *   after all of asymd's threads. What remains is that this process is killed between the first two of these steps.
 * Where a close may sleep it is left to a process of its own, which ends with it (rtx-closer.h).
 *
 * Where the kernel can (SO_PASSRIGHTS, Linux 6.16) passing descriptors fails at the sender.
 */
#ifndef ASYM_LINUX_RTX_ACCEPTOR_H
#define ASYM_LINUX_RTX_ACCEPTOR_H

#include <stdint.h>

/** Connections at a time, those without an answer of asymd included. */
#define ASYM_RTX_MAX_CONNECTIONS 384
/** Connections that wait for asymd's answer, of all users and of one; more are closed at once. */
#define ASYM_RTX_MAX_UNANSWERED         128
#define ASYM_RTX_MAX_UNANSWERED_OF_USER 16
/** A user is let in so often at once, and so often a second after that, root four times as often; more are closed at once. */
#define ASYM_RTX_BURST   72.0
#define ASYM_RTX_PER_SEC 4.0
/** Milliseconds after which a close counts as hung, and its user's connections are closed at once. */
#define ASYM_RTX_HUNG_MS 1000

enum asym_rtx_order_kind {
    ASYM_RTX_ORDER_LISTEN = 1, /**< one descriptor: a bound socket. The first order */
    ASYM_RTX_ORDER_GRANT,      /**< two descriptors, memfd and eventfd: hand them to the program of connection id */
    ASYM_RTX_ORDER_HOLD,       /**< hold these descriptors until id is closed: asymd closes its own meanwhile */
    ASYM_RTX_ORDER_CLOSE,      /**< the connection id, if there is one, and what is held for it */
    ASYM_RTX_ORDER_PING,       /**< report ASYM_RTX_REPORT_ALIVE with this id */
};

/** Bits of an order. */
enum {
    ASYM_RTX_FILES_MAY_BE_PASSED = 1 << 0, /**< LISTEN: as on a kernel without SO_PASSRIGHTS; for tests */
};

struct asym_rtx_order {
    uint32_t kind; /**< enum asym_rtx_order_kind */
    uint32_t id;
    uint32_t flags;
    uint32_t page_size; /**< GRANT: for the message to the program */
};

enum asym_rtx_report_kind {
    ASYM_RTX_REPORT_CAME = 1, /**< a program has connected: id, pid, uid, is_certain */
    ASYM_RTX_REPORT_GONE,     /**< id has ended */
    ASYM_RTX_REPORT_BREACH,   /**< id has sent something */
    ASYM_RTX_REPORT_FOREIGN,  /**< one was closed whose pid cannot be seen here */
    ASYM_RTX_REPORT_HUNG,     /**< a close on behalf of uid hangs */
    ASYM_RTX_REPORT_ALIVE,    /**< answer to PING id: cpu_usec, turned_away */
};

struct asym_rtx_report {
    uint32_t kind; /**< enum asym_rtx_report_kind */
    uint32_t id;
    int32_t pid;
    uint32_t uid;
    uint32_t is_certain;  /**< a GRANT reaches the program only where pid is its own still (SO_PEERPIDFD) */
    uint32_t turned_away; /**< connections that were closed at once so far */
    uint64_t cpu_usec;    /**< CPU time of this process so far */
};

/** The role's work. The exit status. */
int asym_rtx_acceptor_run(int orders, int reports);

#endif
