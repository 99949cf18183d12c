/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The limits of the RTX server, its reasons to refuse a program, and its configuration. rtx-server.h explains them. */
#ifndef ASYM_LINUX_RTX_SERVER_CONFIG_H
#define ASYM_LINUX_RTX_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <asym/types.h>

/** Programs at a time. */
#define ASYM_RTXD_MAX_CLIENTS 256
/** Places of all users except root, of one user except root, and of one process. */
#define ASYM_RTXD_MAX_OF_USERS 240
#define ASYM_RTXD_MAX_OF_USER  64
#define ASYM_RTXD_MAX_OF_PID   4
/** Processes whose user asymd looks up between two calls of housekeeping, to let users in. */
#define ASYM_RTXD_MAX_MET 1024
/** After so many calls of housekeeping asymd looks up the users of all processes again. */
#define ASYM_RTXD_MEET_AGAIN 8
/** Slots read in one sample, divided evenly among the programs. */
#define ASYM_RTXD_MAX_READ 16384
/** Reads of the inotify queue in one call; one read has 85 announcements or 256 wakeups. */
#define ASYM_RTXD_MAX_READS 64
/**
 * Files that asymd considers between two calls of housekeeping: MAX_TAKEN_OF_USER of a user, and MAX_TAKEN in all, but the first
 * one of each user, and all of root. asymd refuses further ones without a check.
 */
#define ASYM_RTXD_MAX_TAKEN         64
#define ASYM_RTXD_MAX_TAKEN_OF_USER 8
/** After so many announcements between two calls of housekeeping, also of files that it has, asymd ignores those of the user. */
#define ASYM_RTXD_MAX_ANNOUNCED 512
/**
 * After this many consecutive wakeups without a change of phase, or this many between two samples, asymd ignores the wakeups of
 * the program until the next housekeeping.
 */
#define ASYM_RTXD_MAX_VAIN_WAKEUPS 16
#define ASYM_RTXD_MAX_WAKEUPS      1024
/** Ends of programs in serial phases that serve reports between two calls of housekeeping with the reserve overspent. */
#define ASYM_RTXD_MAX_ENDS 8
/** Share of the CPU budget for answers between samples, 0 to 1. */
#define ASYM_RTXD_SHARE 0.5
/** Maximum that one client, or the reserve, saves of it, in microseconds of CPU time. */
#define ASYM_RTXD_SAVED_MAX 20000.0
/** A client that has reported a phase within this time earns a part of it. Microseconds. */
#define ASYM_RTXD_ACTIVE ASYM_SEC

/** Reason why asymd refused or dropped a program. */
enum asym_rtxd_refusal {
    ASYM_RTXD_REFUSED_FULL,   /**< no place is left for this program, user or process */
    ASYM_RTXD_REFUSED_YIELDS, /**< its user had the most places, and another user needed one */
    ASYM_RTXD_REFUSED_BUSY,   /**< too many announcements since the last housekeeping */
    ASYM_RTXD_REFUSED_NO_FD,  /**< asymd has no descriptor, watch or memory left */
    ASYM_RTXD_REFUSED_FILE, /**< the file is no regular one, has another owner or mode or more names, or is a client's */
    ASYM_RTXD_REFUSED_GARBAGE, /**< its header is invalid */
    ASYM_RTXD_REFUSED_VERSION, /**< its page has a later version */
    ASYM_RTXD_REFUSED_OTHER, /**< the process with this number belongs to another user, acts for one, or is not dumpable */
    ASYM_RTXD_N_REFUSALS
};

struct asym_rtxd_server;

struct asym_rtxd_server_config {
    const char *dir;       /**< the directory "rtx" is in it; borrowed for the call */
    asym_usec spin_notify; /**< microseconds, see asym_rtxd_read() */
    double cpu_budget;     /**< CPU budget of asymd, percent of one CPU; ASYM_RTXD_SHARE of it goes to answers */
    asym_usec now;         /**< time of the call */
    /** Called for each program that asymd refuses or drops; may be NULL. */
    void (*refused)(void *ctx, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid);
    void *ctx;
};

#endif
