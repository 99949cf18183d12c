/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The limits of the RTX server, its reasons to refuse a program, and its configuration. rtx-server.h explains them. */
#ifndef ASYM_LINUX_RTX_SERVER_CONFIG_H
#define ASYM_LINUX_RTX_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <asym/types.h>

#include "linux/rtx/rtx-link.h"

/** Programs at a time, including those that have not filled their page yet. */
#define ASYM_RTXD_MAX_CLIENTS 256
/** Places of all users except root, of one user except root, and of one process. */
#define ASYM_RTXD_MAX_OF_USERS 240
#define ASYM_RTXD_MAX_OF_USER  64
#define ASYM_RTXD_MAX_OF_PID   4
/** Slots read in one sample, divided evenly among the programs. */
#define ASYM_RTXD_MAX_READ 16384
/** Events and reports that one call serves at most. */
#define ASYM_RTXD_MAX_SERVED 64
/**
 * Connections that asymd considers between two calls of housekeeping: the first MAX_TAKEN of any user, then the first one of
 * each user, for MAX_TAKEN_USERS users. asymd refuses further ones without a check.
 */
#define ASYM_RTXD_MAX_TAKEN       64
#define ASYM_RTXD_MAX_TAKEN_USERS 512
/** After this many consecutive wakeups without a change of phase, asymd ignores the eventfd until the next housekeeping. */
#define ASYM_RTXD_MAX_VAIN_WAKEUPS 16
/** Ends of programs in serial phases that serve reports between two calls of housekeeping with the reserve overspent. */
#define ASYM_RTXD_MAX_ENDS 8
/** Share of the CPU budget for answers between samples, 0 to 1. */
#define ASYM_RTXD_SHARE 0.5
/** Maximum that one client, or the reserve, saves of it, in microseconds of CPU time. */
#define ASYM_RTXD_SAVED_MAX 20000.0
/** A client that has reported a phase within this time earns a part of it. Microseconds. */
#define ASYM_RTXD_ACTIVE ASYM_SEC
/** Time for a program to fill its page; it may check for the page only once a second. Microseconds. */
#define ASYM_RTXD_FILL_WITHIN (3 * ASYM_SEC)
/**
 * asymd kills the helper after this many consecutive calls of housekeeping without an answer to a ping. A helper that is runnable
 * may only wait for a CPU: it has more calls.
 */
#define ASYM_RTXD_MAX_SILENT          3
#define ASYM_RTXD_MAX_SILENT_RUNNABLE 10
/** Delay before asymd starts another helper. The delay doubles while helpers end early. Microseconds. */
#define ASYM_RTXD_RETRY_MIN ASYM_SEC
#define ASYM_RTXD_RETRY_MAX (60 * ASYM_SEC)

/** Reason why asymd refused or dropped a client. */
enum asym_rtxd_refusal {
    ASYM_RTXD_REFUSED_FULL,      /**< no place is left for this program, user or process */
    ASYM_RTXD_REFUSED_YIELDS,    /**< its user had the most places, and another user needed one */
    ASYM_RTXD_REFUSED_BUSY,      /**< too many connections since the last housekeeping, or too many orders wait */
    ASYM_RTXD_REFUSED_NO_FD,     /**< asymd has no descriptor or memory left */
    ASYM_RTXD_REFUSED_SILENT,    /**< it got a page and wrote no header within ASYM_RTXD_FILL_WITHIN */
    ASYM_RTXD_REFUSED_GARBAGE,   /**< it sent data, or wrote an invalid header */
    ASYM_RTXD_REFUSED_VERSION,   /**< its page has a later version */
    ASYM_RTXD_REFUSED_NAMESPACE, /**< it is in another PID namespace: its thread IDs differ */
    ASYM_RTXD_REFUSED_OTHER,     /**< the process that has this pid now belongs to another user */
    ASYM_RTXD_REFUSED_HUNG,      /**< a close of descriptors that its user has passed hangs */
    ASYM_RTXD_REFUSED_NO_ACL,    /**< the same, and the ACL of the socket cannot be changed: see rtx-fair-share.c */
    ASYM_RTXD_N_REFUSALS
};

struct asym_rtxd_server;

struct asym_rtxd_server_config {
    const char *dir;             /**< directory of the socket "rtx"; borrowed for the call */
    const char *helper;          /**< path of the helper program; borrowed for the call */
    struct asym_rtxd_link *link; /**< replaces the helper in tests; the server takes ownership. NULL: run helper */
    bool files_may_be_passed;    /**< do not use SO_PASSRIGHTS, as on a kernel before 6.16; for tests */
    asym_usec spin_notify;       /**< microseconds, see asym_rtxd_read() */
    double cpu_budget;           /**< CPU budget of asymd, percent of one CPU; ASYM_RTXD_SHARE of it goes to answers */
    asym_usec now;               /**< time of the call */
    /** Called for each client or user that asymd refuses or drops; may be NULL. pid 0: asymd knows only the user. */
    void (*refused)(void *ctx, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid);
    /** Called when the helper is lost: asymd receives no reports until another helper runs. May be NULL. */
    void (*lost)(void *ctx, const char *why);
    void *ctx;
};

/** Work of the helpers so far. */
struct asym_rtxd_helper_use {
    asym_usec cpu;        /**< CPU time of all helpers at the last answer, microseconds */
    uint64_t turned_away; /**< connections that a helper closed at once: too many in all or of one user */
};

#endif
