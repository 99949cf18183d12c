/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A daemon that does nothing but hand out pages: for tests of the client. Everything ends with an assertion on failure. */
#ifndef ASYM_TESTS_LISTENER_H
#define ASYM_TESTS_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/rtx.h>

struct asym_listener {
    char dir[64], path[96];
    int fd;
};

/** What a client was handed. */
struct asym_handed {
    int fd, memfd, event;
    pid_t pid;           /* who it is for the kernel */
    unsigned long woken; /* what was read already */
    size_t size;
    const struct asym_rtx_header *page; /* mapped read-only */
};

/** In a directory of its own; ASYM_RTX_SOCKET names it from now on. */
void asym_listener_open(struct asym_listener *l, int backlog);
/** Close and remove the socket; the directory stays for another. */
void asym_listener_close(struct asym_listener *l);
void asym_listener_reopen(struct asym_listener *l, int backlog);
void asym_listener_done(struct asym_listener *l);

/** Wait at most so many seconds for a client, and for it to fill the page that it is handed. */
bool asym_listener_take(struct asym_listener *l, double seconds, struct asym_handed *ret);
/** The two apart: for a client that does nothing by itself between. */
bool asym_listener_accept(struct asym_listener *l, double seconds, struct asym_handed *ret);
bool asym_handed_is_filled(struct asym_handed *h, double seconds);
void asym_handed_done(struct asym_handed *h);
/** A process that hands out pages as clients come, and keeps the last 32 connections until it is killed. */
pid_t asym_listener_serve(struct asym_listener *l);

/** The slot of a thread; NULL: it has none. */
const struct asym_rtx_slot *asym_handed_slot(const struct asym_handed *h, pid_t tid);
/** Slots in use. */
unsigned asym_handed_used(const struct asym_handed *h);
/** How often it was woken since the last call. */
unsigned long asym_handed_woken(struct asym_handed *h);

#endif
