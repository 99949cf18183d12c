/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A daemon that only finds pages, for tests of the client. A failure ends in an assertion. */
#ifndef ASYM_TESTS_SUPPORT_LISTENER_H
#define ASYM_TESTS_SUPPORT_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/rtx.h>

struct asym_listener {
    char dir[64], path[96], user[160]; /* of the test, of all users, of this user */
    int events;
    char known[16][64]; /* the last files that were taken */
    size_t n_known;
};

/** The page of a client. */
struct asym_handed {
    int file;
    pid_t pid;      /* process of the client, by the name of the file */
    uint32_t woken; /* wakeups that were read already */
    size_t size;
    const struct asym_rtx_header *page; /* mapped read-only */
};

/** Make the directories, and set ASYM_RTX_DIR to them. */
void asym_listener_open(struct asym_listener *l);
/** Remove the directories of pages, with the pages; the rest stays for asym_listener_reopen. */
void asym_listener_close(struct asym_listener *l);
void asym_listener_reopen(struct asym_listener *l);
void asym_listener_done(struct asym_listener *l);
/** Run the program in a process of its own, with l open. The process must end by itself, with status 0. */
void asym_listener_run(struct asym_listener *l, void (*program)(void));

/** Wait at most so many seconds until a client announces a file, which no earlier call has taken. */
bool asym_listener_take(struct asym_listener *l, double seconds, struct asym_handed *ret);
void asym_handed_done(struct asym_handed *h);

/** Returns the slot of a thread, or NULL. */
const struct asym_rtx_slot *asym_handed_slot(const struct asym_handed *h, pid_t tid);
/** Returns the number of slots in use. */
unsigned asym_handed_used(const struct asym_handed *h);
/** Returns the number of wakeups since the last call. */
unsigned long asym_handed_woken(struct asym_handed *h);

#endif
