/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * asymd's side of include/asym/rtx.h: it finds the pages of programs, reads them, and provides their reports.
 *
 * asymd trusts no program, and receives nothing from one. No call waits for a client. The number of clients, the slots of one
 * sample and the work of one call are bounded. asymd drops a client that breaks the protocol. rtx-overlay.h bounds the effect of a
 * page on the machine.
 *
 * A user can hold the lock of any file and directory that the user can look up. So each user has a directory, in which no other
 * user can look up a name, and asymd takes the lock of a directory only as long as its name is secret (rtx-directory.c). It lists
 * nothing, and removes and changes no file. attack.rtx holds these locks.
 *
 * The last close of a file frees its memory. So asymd keeps no file open, and opens none with more memory than a page.
 *
 * A page counts only as long as its owner is the user of its process: asymd looks at each reading. A user may name another process
 * of the same user, and gains nothing.
 *
 * asymd never maps a page: the program may cut the file, and touching a hole when no memory is left raises SIGBUS. asymd reads it
 * with pread(2), which returns zeroes for a hole, into its own memory, so that checked values cannot change afterwards. On a tmpfs
 * pread takes no lock of the inode, and page locks are held for no longer than a copy. Before Linux 6.4 the swap device can make it
 * wait, for a part of the page that was swapped out, and a program can cause that (MADV_PAGEOUT). A read of a word that a thread is
 * writing may mix bytes of the old and the new word. State and marks are in one byte. asymd takes a mixed count for a change or, if
 * it equals that of the last sample, for none. A slot that changes its owner may be read with the word of one thread and the tid of
 * the other. Either error lasts for one sample.
 *
 * Places. There are ASYM_RTXD_MAX_CLIENTS; users other than root have at most ASYM_RTXD_MAX_OF_USERS of them together and
 * ASYM_RTXD_MAX_OF_USER each, and a process ASYM_RTXD_MAX_OF_PID. When no place is free, the user other than root with the most
 * places loses its latest one to a user that has at least two fewer, or to root. So a user without a place gets one unless
 * ASYM_RTXD_MAX_OF_USERS other users have one each, and root always gets one unless root holds all places.
 */
#ifndef ASYM_LINUX_RTX_SERVER_H
#define ASYM_LINUX_RTX_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/types.h>

#include "linux/rtx/rtx-overlay.h"

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

/** Returns the reason in words, for the log. A static string. */
const char *asym_rtxd_refusal_text(enum asym_rtxd_refusal refusal);

/**
 * Open the directory "rtx" in config->dir. If it is a file system of its own, all users may report, otherwise asymd's own user
 * alone. 0; -errno with err.
 */
int asym_rtxd_server_open(const struct asym_rtxd_server_config *config, struct asym_rtxd_server **ret,
                          struct asym_error *err);

/** Remove the directory of asymd's own user. s may be NULL. */
void asym_rtxd_server_close(struct asym_rtxd_server *s);

/** Returns whether the programs of all users may report. */
bool asym_rtxd_server_is_for_all(const struct asym_rtxd_server *s);

/** Returns a borrowed descriptor that is readable when serve has work. */
int asym_rtxd_server_fd(const struct asym_rtxd_server *s);

/**
 * Take the events of the files: new and ended programs, and wakeups. What comes is bounded by number, and no program pays for it:
 * the answers to a user's programs must not wait for the announcements of another user. So a caller that charges for answers
 * measures from the end of this call on.
 */
void asym_rtxd_server_receive(struct asym_rtxd_server *s, asym_usec now);

/**
 * Serve the programs, after a call of asym_rtxd_server_receive. It samples a page only if its program has woken asymd since the
 * last call, and once more when the page's notify_min has passed after that. Returns whether, in a program that asymd may answer
 * now, a serial phase has begun or ended since the last answer with ASYM_ASK_FINAL. The end of a program in a serial phase counts,
 * see ASYM_RTXD_MAX_ENDS. The CPU time for answers is divided evenly among the users whose programs report phases, and among the
 * processes of each user. asymd defers a program that has spent its part.
 */
bool asym_rtxd_server_serve(struct asym_rtxd_server *s, asym_usec now);

/**
 * Charge the CPU time of the last serve and of the answer to it. The clients that reported a change pay in equal parts. If no
 * client did, the clients pay that serve sampled in vain.
 */
void asym_rtxd_server_charge(struct asym_rtxd_server *s, asym_usec cpu);

/**
 * Returns when serve must be called without a wakeup, for a deferred client or a second sample; 0: never. The time may be 1 us
 * after the last call, if a page asks for that: the caller limits the rate of its calls.
 */
asym_usec asym_rtxd_server_due(const struct asym_rtxd_server *s);

/** Call this about once a second. It drops clients whose process has ended, and hears throttled clients and users again. */
void asym_rtxd_server_housekeeping(struct asym_rtxd_server *s, asym_usec now);

/** Change these two values, see struct asym_rtxd_server_config. */
void asym_rtxd_server_set(struct asym_rtxd_server *s, asym_usec spin_notify, double cpu_budget);

/** Returns the number of clients whose page has a valid header. */
size_t asym_rtxd_server_count(const struct asym_rtxd_server *s);

/** Returns the provider of the reports; borrowed. */
struct asym_rtxd_provider *asym_rtxd_server_provider(struct asym_rtxd_server *s);

#endif
