/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The daemon's end of include/asym/rtx.h: takes pages from programs, and tells what they say.
 *
 * Nobody on the other side is trusted. Nothing here blocks or waits for a client; the number of clients, what is read of
 * them in one look and what is done for them in one call are bounded; a client that breaks the protocol is dropped. What a
 * page may do to the machine is bounded by told.h.
 */
#ifndef ASYM_LINUX_RTX_SERVER_H
#define ASYM_LINUX_RTX_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/error.h>
#include <asym/types.h>

#include "linux/told.h"

/** Programs at a time; connections that have not handed over anything yet count. */
#define ASYM_RTX_MAX_CLIENTS 256
/** Of one user other than root, and of one process. */
#define ASYM_RTX_MAX_OF_USER 64
#define ASYM_RTX_MAX_OF_PID  4
/** Slots read in one look, divided evenly among the programs. */
#define ASYM_RTX_MAX_READ 16384
/** Events served in one call. */
#define ASYM_RTX_MAX_SERVED 64
/** Connections taken between two calls of tend; who comes then waits for the next. */
#define ASYM_RTX_MAX_TAKEN 64
/** Who has woken us so many times in a row with no phase begun or ended does so no more until the next tend. */
#define ASYM_RTX_MAX_IN_VAIN 16
/** The share of the CPU budget that goes to answers between looks. */
#define ASYM_RTX_SHARE 0.5
/** What may be saved up of it, by one client or by nobody, in microseconds of CPU time. */
#define ASYM_RTX_SAVED_MAX 20000.0
/** Who has told of a phase within this time is given a part of it. */
#define ASYM_RTX_ACTIVE ASYM_SEC
/** How long a connection may take to hand over its page. */
#define ASYM_RTX_HELLO_WITHIN ASYM_SEC

/** Why a client was turned away or dropped. */
enum asym_rtx_refusal {
    ASYM_RTX_REFUSED_FULL,      /**< too many programs, of one user, or of one process */
    ASYM_RTX_REFUSED_NO_FD,     /**< no descriptor or memory is left here */
    ASYM_RTX_REFUSED_SILENT,    /**< connected, and handed nothing over in time */
    ASYM_RTX_REFUSED_GARBAGE,   /**< not the message, page or descriptors that the protocol has */
    ASYM_RTX_REFUSED_VERSION,   /**< of a later version */
    ASYM_RTX_REFUSED_NAMESPACE, /**< in a PID namespace of its own: it calls its threads by other numbers */
    ASYM_RTX_N_REFUSALS
};

/** In words, for a person. A static string. */
const char *asym_rtx_refusal_text(enum asym_rtx_refusal refusal);

struct asym_rtx_server;

struct asym_rtx_server_config {
    const char *dir; /**< the socket is "rtx" in it */
    asym_usec spin_notify;
    double cpu_budget; /**< of asymd, percent of one CPU; ASYM_RTX_SHARE of it goes to answers */
    asym_usec now;     /**< when it opens */
    /** Called for each client turned away or dropped; NULL: nobody asks. pid 0: not known. */
    void (*refused)(void *ctx, enum asym_rtx_refusal refusal, pid_t pid);
    void *ctx;
};

/** Listen. 0; -errno with err. */
int asym_rtx_server_open(const struct asym_rtx_server_config *config, struct asym_rtx_server **ret,
                         struct asym_error *err);

/** Removes the socket. NULL is accepted. */
void asym_rtx_server_close(struct asym_rtx_server *s);

/** Readable when there is something to serve. Borrowed. */
int asym_rtx_server_fd(const struct asym_rtx_server *s);

/**
 * Serve what has come: connections, pages, ends. Of the pages only those are looked at whose programs have woken us since
 * the last call, and once more when the notify_min of the page is over since then. Returns whether a serial phase has begun
 * or ended in one that may be answered, since it was last asked to the end. What answers may take is divided evenly among
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

/** To be called about every second: drops those that hand over nothing, and hears again who was not for a while. */
void asym_rtx_server_tend(struct asym_rtx_server *s, asym_usec now);

/** As in the configuration. */
void asym_rtx_server_set(struct asym_rtx_server *s, asym_usec spin_notify, double cpu_budget);

/** Programs that speak. */
size_t asym_rtx_server_count(const struct asym_rtx_server *s);

/** Borrowed. */
struct asym_teller *asym_rtx_server_teller(struct asym_rtx_server *s);

#endif
