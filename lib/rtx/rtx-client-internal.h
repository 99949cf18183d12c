/* SPDX-License-Identifier: MIT */
/** Declarations that the files of the library share. */
#ifndef ASYM_RTX_RTX_CLIENT_INTERNAL_H
#define ASYM_RTX_RTX_CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <asym/rtx.h>

#define ASYM_RTX_API           __attribute__((visibility("default")))

#define ASYM_RTX_SLOTS_DEFAULT 512
#define ASYM_RTX_SLOTS_MAX     4096
#define ASYM_RTX_SECOND        UINT64_C(1000000000)
#define ASYM_RTX_MSEC          UINT64_C(1000000)
#define ASYM_RTX_JOIN_WAIT_MS  10

/** A descriptor of the library, with the identity of its file: programs also close descriptors that they did not open. */
struct asym_rtx_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/** State of the connection to asymd. */
enum asym_rtx_connection {
    ASYM_RTX_APART,   /**< no connection */
    ASYM_RTX_WAITING, /**< connected; asymd has not answered yet */
    ASYM_RTX_JOINED,  /**< the page is the memfd that asymd has handed out */
};

/** State of the process. Written under the lock; fields that threads read without the lock are atomic. */
struct asym_rtx_process {
    pthread_mutex_t lock;
    struct asym_rtx_header *page; /* atomic; its address never changes. NULL: no page */
    size_t size;
    uint32_t n_slots;
    uint32_t n_used;                 /* n_used of the header, copied to each new page; atomic */
    int32_t *owners;                 /* tid of the owner of each slot, 0: none. The page has a copy; atomic */
    pid_t pid;                       /* owner of the page: differs from getpid() after a fork that ran no handlers */
    bool left;                       /* asym_rtx_leave() was called */
    enum asym_rtx_connection state;  /* atomic */
    struct asym_rtx_fd memfd, event; /* event.fd: atomic; -1: asymd has not handed out a page yet */
    struct asym_rtx_fd socket;
    char path[108];      /* as long as sun_path */
    uint64_t notify_min; /* ns; the header has it in microseconds */
    uint64_t notified;   /* time of the last wakeup of asymd; atomic */
    uint64_t join_at;    /* earliest time of the next connect(2) */
    uint64_t update_at;  /* time of the next check of the connection; atomic */
};

extern struct asym_rtx_process asym_rtx_process;

/** Returns a monotonic time in ns, from the cheapest clock available. Its zero has no meaning. */
uint64_t asym_rtx_now(void);

/** rtx-client-page.c */

/** Allocate a page of n slots and fill in its header, with p->notify_min. 0; -ENOMEM. */
int asym_rtx_page_make(struct asym_rtx_process *p, uint32_t n_slots);
/**
 * Move the content of the page, with the owners of its slots, into the memfd that asymd has handed out. The header is complete
 * on return. 0; -errno: the page is unchanged.
 */
int asym_rtx_page_move(struct asym_rtx_process *p, int memfd);
/** In the child after a fork: replace the parent's page by the child's memory. Only slot keep stays in use (NULL: none). */
void asym_rtx_page_part(struct asym_rtx_process *p, const struct asym_rtx_slot *keep);
/** Give a free slot to thread tid. NULL: no slot is free. */
struct asym_rtx_slot *asym_rtx_page_take(struct asym_rtx_process *p, int32_t tid);
void asym_rtx_page_give(struct asym_rtx_process *p, struct asym_rtx_slot *slot);

/** rtx-client-join.c. No call blocks, except asym_rtx_sample_after() for at most wait_ms. */

struct asym_rtx_fd asym_rtx_fd_own(int fd);
/** Close the descriptor if it still belongs to the library. */
void asym_rtx_fd_close(struct asym_rtx_fd *f);
/** End the connection. The page remains as memory that asymd does not read. */
void asym_rtx_disconnect(struct asym_rtx_process *p);
/**
 * Check the connection: does the program still have its descriptors, is asymd alive, has it answered? Without a connection,
 * connect and wait at most wait_ms for the answer. The caller holds the lock.
 */
void asym_rtx_sample_after(struct asym_rtx_process *p, int wait_ms);
/** The same without a wait, unless another thread holds the lock. Due again in 1 s, or in 1 ms while an answer is due. */
void asym_rtx_update(struct asym_rtx_process *p, uint64_t now);
/** Wake asymd, unless the library has done so within notify_min. Returns whether it has now. */
bool asym_rtx_notify(struct asym_rtx_process *p, uint64_t now);

#endif
