/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The daemon's end of include/asym/rtx.h: gives pages to programs, and tells what they say.
 *
 * Nobody on the other side is trusted. Connections are accepted and closed by a helper process (rtx-acceptor.h); asymd makes
 * the memory and the eventfd, and what it gets back is numbers: who has connected, and what stands on a page. Nothing here
 * waits for a client or for the helper; the number of clients, what is read of them in one look and what is done for them in
 * one call are bounded; a client that breaks the protocol is dropped. What a page may do to the machine is bounded by told.h.
 *
 * The memory is never mapped: a program may punch holes in it, and to touch a hole where there is no memory left is a SIGBUS.
 * It is read with pread(2), for which a hole is zeroes, into memory of asymd's own, so that what was checked does not change
 * afterwards. Nothing that a program can hold makes pread on a memfd sleep: it takes no lock of the inode, and page locks are
 * held for no longer than a copy. A word that is being written may come mixed, byte by byte, out of the old one and the new
 * one. State and marks are in one byte. A mixed count is taken for a change, or, where it happens to be that of the last look,
 * for none; a slot that changes hands may come with the word of the one thread and the number of the other. Either is so for
 * one look.
 *
 * The eventfd is one open file for asymd and the program. asymd never reads or writes it, so that its flags and its count are
 * the program's own affair. It is put into asymd's epoll instance before the program has it, and only its events are changed
 * after that: adding a file that is in other epoll instances takes locks that are held for long. It is not asymd that drops
 * the last reference, see rtx-acceptor.h.
 *
 * Places. There are ASYM_RTX_MAX_CLIENTS; users other than root have at most ASYM_RTX_MAX_OF_USERS of them together and
 * ASYM_RTX_MAX_OF_USER each, and a process ASYM_RTX_MAX_OF_PID. Where none is free, the user other than root that has the most
 * loses its latest one to a user that has at least two fewer, or to root. So a user without a place gets one unless
 * ASYM_RTX_MAX_OF_USERS other users have one each, and root always gets one, as long as it has not taken all.
 */
#ifndef ASYM_LINUX_RTX_SERVER_H
#define ASYM_LINUX_RTX_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/error.h>
#include <asym/types.h>

#include "linux/rtx-link.h"
#include "linux/told.h"

/** Programs at a time; those that have not filled their page yet count. */
#define ASYM_RTX_MAX_CLIENTS 256
/** Of all users but root, of one user but root, and of one process. */
#define ASYM_RTX_MAX_OF_USERS 240
#define ASYM_RTX_MAX_OF_USER  64
#define ASYM_RTX_MAX_OF_PID   4
/** Slots read in one look, divided evenly among the programs. */
#define ASYM_RTX_MAX_READ 16384
/** Events and reports served in one call. */
#define ASYM_RTX_MAX_SERVED 64
/**
 * Connections that are considered between two calls of tend: so many whosever they are, and then the first of each user, for
 * so many users. More are refused unseen.
 */
#define ASYM_RTX_MAX_TAKEN       64
#define ASYM_RTX_MAX_TAKEN_USERS 512
/** Who has woken us so many times in a row with no phase begun or ended does so no more until the next tend. */
#define ASYM_RTX_MAX_IN_VAIN 16
/** Ends of programs in serial phases that are told of between two calls of tend, though more was spent than there was. */
#define ASYM_RTX_MAX_ENDS 8
/** The share of the CPU budget that goes to answers between looks. */
#define ASYM_RTX_SHARE 0.5
/** What may be saved up of it, by one client or by nobody, in microseconds of CPU time. */
#define ASYM_RTX_SAVED_MAX 20000.0
/** Who has told of a phase within this time is given a part of it. */
#define ASYM_RTX_ACTIVE ASYM_SEC
/** How long a program may take to fill its page. It may look for the page once a second only. */
#define ASYM_RTX_FILL_WITHIN (3 * ASYM_SEC)
/** Calls of tend in a row that the helper may leave unanswered before it is killed. */
#define ASYM_RTX_MAX_UNHEARD 3
/** Another helper is started after this time, and after twice that each time that it does not live for long. */
#define ASYM_RTX_RETRY_MIN ASYM_SEC
#define ASYM_RTX_RETRY_MAX (60 * ASYM_SEC)

/** Why a client was turned away or dropped. */
enum asym_rtx_refusal {
    ASYM_RTX_REFUSED_FULL,      /**< too many programs, of one user, or of one process */
    ASYM_RTX_REFUSED_YIELDS,    /**< its user had the most places, and another one had too few */
    ASYM_RTX_REFUSED_BUSY,      /**< too many connections of late */
    ASYM_RTX_REFUSED_NO_FD,     /**< no descriptor or memory is left here */
    ASYM_RTX_REFUSED_SILENT,    /**< got a page and wrote no header in time */
    ASYM_RTX_REFUSED_GARBAGE,   /**< sent something, or wrote a header that makes no sense */
    ASYM_RTX_REFUSED_VERSION,   /**< of a later version */
    ASYM_RTX_REFUSED_NAMESPACE, /**< in a PID namespace of its own: it calls its threads by other numbers */
    ASYM_RTX_REFUSED_OTHER,     /**< the process of that number is another user's by now */
    ASYM_RTX_REFUSED_HUNG,      /**< closing what its user has passed hangs */
    ASYM_RTX_N_REFUSALS
};

/** In words, for a person. A static string. */
const char *asym_rtx_refusal_text(enum asym_rtx_refusal refusal);

struct asym_rtx_server;

struct asym_rtx_server_config {
    const char *dir;            /**< the socket is "rtx" in it */
    const char *helper;         /**< program of the helper; borrowed for the call */
    struct asym_rtx_link *link; /**< in its place, for tests; owned by the server from then on. NULL: helper */
    bool files_may_be_passed;   /**< as on a kernel before 6.16; for tests */
    asym_usec spin_notify;
    double cpu_budget; /**< of asymd, percent of one CPU; ASYM_RTX_SHARE of it goes to answers */
    asym_usec now;     /**< when it opens */
    /** Called for each client turned away or dropped; NULL: nobody asks. pid 0, uid -1: not known. */
    void (*refused)(void *ctx, enum asym_rtx_refusal refusal, pid_t pid, uid_t uid);
    /** Called when there is no helper any more: no program is heard until there is one again. NULL: nobody asks. */
    void (*lost)(void *ctx, const char *why);
    void *ctx;
};

/** Listen. Where the helper cannot be started it is tried again later. 0; -errno with err. */
int asym_rtx_server_open(const struct asym_rtx_server_config *config, struct asym_rtx_server **ret,
                         struct asym_error *err);

/** Removes the socket and ends the helper. NULL is accepted. */
void asym_rtx_server_close(struct asym_rtx_server *s);

/** Readable when there is something to serve. Borrowed. */
int asym_rtx_server_fd(const struct asym_rtx_server *s);

/**
 * Take what the helper reports: connections and ends. serve does that, too; a caller that measures what answers cost calls
 * this first, as connections are bounded by their number and no answer pays for them.
 */
void asym_rtx_server_hear(struct asym_rtx_server *s, asym_usec now);

/**
 * Serve what has come: connections, headers, ends. Of the pages only those are looked at whose programs have woken us since
 * the last call, and once more when the notify_min of the page is over since then. Returns whether a serial phase has begun
 * or ended in one that may be answered, since it was last asked to the end; the end of a
 * program counts, see ASYM_RTX_MAX_ENDS. What answers may take is divided evenly among
 * the users whose programs tell of phases, and among the processes of each: one that does so all the time is put off when
 * it has spent its part.
 */
bool asym_rtx_server_serve(struct asym_rtx_server *s, asym_usec now);

/**
 * The last call of serve, and the answer to what it told, took so much CPU time. Who told pays, evenly; where nobody did, who
 * was looked at in vain.
 */
void asym_rtx_server_charge(struct asym_rtx_server *s, asym_usec cpu);

/**
 * When serve is to be called, though nobody wakes us, for one that was put off or is to be looked at once more; 0: there is
 * none. It may be 1 us after the last call, as a page has it: how often it is called at most is the caller's to say.
 */
asym_usec asym_rtx_server_due(const struct asym_rtx_server *s);

/**
 * To be called about every second: drops those that write no header, hears again who was not for a while, asks the helper
 * whether it is there, and starts another one where it is not.
 */
void asym_rtx_server_tend(struct asym_rtx_server *s, asym_usec now);

/** As in the configuration. */
void asym_rtx_server_set(struct asym_rtx_server *s, asym_usec spin_notify, double cpu_budget);

/** Programs that speak. */
size_t asym_rtx_server_count(const struct asym_rtx_server *s);

/** What the helper has done so far. */
struct asym_rtx_helper_use {
    asym_usec cpu;        /**< CPU time, as of the last answer, of all helpers so far */
    uint64_t turned_away; /**< connections closed at once: too many of one user */
};

struct asym_rtx_helper_use asym_rtx_server_helper_use(const struct asym_rtx_server *s);

/** Borrowed. */
struct asym_teller *asym_rtx_server_teller(struct asym_rtx_server *s);

#endif
