/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A daemon that only hands out pages, for tests of the client. A failure ends in an assertion. */
#ifndef ASYM_TESTS_SUPPORT_LISTENER_H
#define ASYM_TESTS_SUPPORT_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/rtx.h>

struct asym_listener {
    char dir[64], path[96];
    int fd;
};

/** A connection to a client, and the page that the client got. */
struct asym_handed {
    int fd, memfd, event;
    pid_t pid;           /* process id of the client, by SO_PEERCRED */
    unsigned long woken; /* wakeups that were read already */
    size_t size;
    const struct asym_rtx_header *page; /* mapped read-only */
};

/** Open the socket in a new directory, and set ASYM_RTX_SOCKET to it. */
void asym_listener_open(struct asym_listener *l, int backlog);
/** Close and remove the socket; the directory stays for asym_listener_reopen. */
void asym_listener_close(struct asym_listener *l);
void asym_listener_reopen(struct asym_listener *l, int backlog);
void asym_listener_done(struct asym_listener *l);

/** Wait at most so many seconds for a client, hand it a page, and wait until it has filled the page. */
bool asym_listener_take(struct asym_listener *l, double seconds, struct asym_handed *ret);
/** The two steps one by one, for a client that acts only when the test calls it. */
bool asym_listener_accept(struct asym_listener *l, double seconds, struct asym_handed *ret);
bool asym_handed_is_filled(struct asym_handed *h, double seconds);
void asym_handed_done(struct asym_handed *h);
/** Start a process that hands out pages to clients. It keeps the last 32 connections until it is killed. */
pid_t asym_listener_serve(struct asym_listener *l);

/** Returns the slot of a thread, or NULL. */
const struct asym_rtx_slot *asym_handed_slot(const struct asym_handed *h, pid_t tid);
/** Returns the number of slots in use. */
unsigned asym_handed_used(const struct asym_handed *h);
/** Returns the number of wakeups since the last call. */
unsigned long asym_handed_woken(struct asym_handed *h);

#endif
