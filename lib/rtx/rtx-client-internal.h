/* SPDX-License-Identifier: MIT */
/** Declarations that the files of the library share. */
#ifndef ASYM_RTX_RTX_CLIENT_INTERNAL_H
#define ASYM_RTX_RTX_CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <asym/rtx.h>

#define ASYM_RTX_API           __attribute__((visibility("default")))

#define ASYM_RTX_SLOTS_DEFAULT 512
#define ASYM_RTX_SLOTS_MAX     4096
#define ASYM_RTX_SECOND        UINT64_C(1000000000)
#define ASYM_RTX_PATH          192

/** A descriptor of the library, with the identity of its file: programs also close descriptors that they did not open. */
struct asym_rtx_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/** State of the process. Written under the lock; fields that threads read without the lock are atomic. */
struct asym_rtx_process {
    pthread_mutex_t lock;
    struct asym_rtx_header *page; /* atomic; its address never changes. NULL: no page */
    size_t size;
    uint32_t n_slots;
    uint32_t n_used;         /* n_used of the header, copied to each new page; atomic */
    int32_t *owners;         /* tid of the owner of each slot, 0: none. The page has a copy; atomic */
    pid_t pid;               /* owner of the page: differs from getpid() after a fork that ran no handlers */
    bool left;               /* asym_rtx_leave() was called */
    struct asym_rtx_fd file; /* of the page. fd: atomic; -1: the page is memory that asymd does not read */
    char dir[ASYM_RTX_PATH]; /* ASYM_RTX_DIR */
    char home[64], name[64]; /* path in it of the user's directory; name of the file */
    uint64_t notify_min;     /* ns; the header has it in microseconds */
    uint32_t rung;           /* wakeups by this page; atomic */
    uint64_t notified;       /* time of the last wakeup of asymd; atomic */
    uint64_t join_at;        /* earliest time of the next file */
    uint64_t update_at;      /* time of the next check of the file; atomic */
};

extern struct asym_rtx_process asym_rtx_process;

/** Returns a monotonic time in ns, from the cheapest clock available. Its zero has no meaning. */
uint64_t asym_rtx_now(void);

/** rtx-client-page.c */

/** Allocate a page of n slots and fill in its header, with p->notify_min. 0; -ENOMEM. */
int asym_rtx_page_make(struct asym_rtx_process *p, uint32_t n_slots);
/**
 * Allocate the file, move the content of the page into it, with the owners of its slots, and map it in place of the page. The
 * header is complete on return. 0; -errno: the page is unchanged.
 */
int asym_rtx_page_move(struct asym_rtx_process *p, int file);
/** In the child after a fork: replace the parent's page by the child's memory. Only slot keep stays in use (NULL: none). */
void asym_rtx_page_part(struct asym_rtx_process *p, const struct asym_rtx_slot *keep);
/** Give a free slot to thread tid. NULL: no slot is free. */
struct asym_rtx_slot *asym_rtx_page_take(struct asym_rtx_process *p, int32_t tid);
void asym_rtx_page_give(struct asym_rtx_process *p, struct asym_rtx_slot *slot);

/** rtx-client-join.c. No call waits for another user's process. */

/** Make asymd stop reading the page, and remove the file. The page remains as memory. */
void asym_rtx_disconnect(struct asym_rtx_process *p);
/** In the child after a fork: forget the file, which is the parent's. */
void asym_rtx_forget(struct asym_rtx_process *p);
/** Announce the file again if it is still there; otherwise create one, at most once a second. The caller holds the lock. */
void asym_rtx_check(struct asym_rtx_process *p);
/** The same, unless another thread holds the lock. Due again in 1 s. */
void asym_rtx_update(struct asym_rtx_process *p, uint64_t now);
/** Wake asymd, unless the library has done so within notify_min. Returns whether it has now. */
bool asym_rtx_notify(struct asym_rtx_process *p, uint64_t now);

#endif
