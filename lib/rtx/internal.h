/* SPDX-License-Identifier: MIT */
/** What the files of the library share. */
#ifndef ASYM_RTX_INTERNAL_H
#define ASYM_RTX_INTERNAL_H

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

/** A descriptor of ours, and how to tell that it still is: programs close what they did not open. */
struct asym_rtx_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/** Of the connection to asymd. */
enum asym_rtx_connection {
    ASYM_RTX_APART,   /**< there is none */
    ASYM_RTX_WAITING, /**< for its answer */
    ASYM_RTX_JOINED,  /**< the page is the one that asymd has handed out */
};

/** Of the process. Written under the lock; what the calls of threads read without it is atomic. */
struct asym_rtx_process {
    pthread_mutex_t lock;
    struct asym_rtx_header *page; /* atomic; never moves once it is there. NULL: none */
    size_t size;
    uint32_t n_slots;
    uint32_t n_used;                 /* of the page's header, which another page gets from here; atomic */
    int32_t *owners;                 /* by slot: the thread that has it, 0: none. The page only repeats it; atomic */
    pid_t pid;                       /* whose page it is: a fork without a handler shows here */
    bool left;                       /* asym_rtx_leave() was called */
    enum asym_rtx_connection state;  /* atomic */
    struct asym_rtx_fd memfd, event; /* of the page; event.fd: atomic; -1: there was no page of asymd's yet */
    struct asym_rtx_fd socket;
    char path[108];      /* as long as sun_path */
    uint64_t notify_min; /* ns; the page says it in its header */
    uint64_t notified;   /* when last; atomic */
    uint64_t join_at;    /* not to connect again before that */
    uint64_t mind_at;    /* when to look after the connection next; atomic */
};

extern struct asym_rtx_process asym_rtx_process;

/** A clock in ns, as cheap as there is one; steady, of no particular beginning. */
uint64_t asym_rtx_now(void);

/** page.c */

/** Memory for a page of n slots, with its header filled in, notify_min as it is in p. 0; -ENOMEM. */
int asym_rtx_page_make(struct asym_rtx_process *p, uint32_t n_slots);
/**
 * Put the page into this memfd, which asymd has handed out: what stands there, and whose its slots are. The header is whole
 * when this returns. 0; -errno: the page stays where it was.
 */
int asym_rtx_page_move(struct asym_rtx_process *p, int memfd);
/** Right after a fork: memory of the child's own in the parent's page's place, with no slot used but keep (NULL: none). */
void asym_rtx_page_part(struct asym_rtx_process *p, const struct asym_rtx_slot *keep);
/** A free slot, now of thread tid; NULL: none. */
struct asym_rtx_slot *asym_rtx_page_take(struct asym_rtx_process *p, int32_t tid);
void asym_rtx_page_give(struct asym_rtx_process *p, struct asym_rtx_slot *slot);

/** join.c: none of these blocks, but look_after where it may wait. */

struct asym_rtx_fd asym_rtx_fd_own(int fd);
/** Close it if it is still ours. */
void asym_rtx_fd_close(struct asym_rtx_fd *f);
/** There is no connection any more. The page stays, as memory that nobody reads. */
void asym_rtx_part_ways(struct asym_rtx_process *p);
/**
 * Look after the connection: is it still ours, is asymd still there, has it answered; if there is none, connect. Where it has
 * just connected it waits for the answer for at most wait_ms. Lock held.
 */
void asym_rtx_look_after(struct asym_rtx_process *p, int wait_ms);
/** The same without waiting, where no other thread is at it, and not again for a second, or a millisecond while it waits. */
void asym_rtx_mind(struct asym_rtx_process *p, uint64_t now);
/** Wake the daemon, unless it was woken within notify_min. Whether it was now. */
bool asym_rtx_notify(struct asym_rtx_process *p, uint64_t now);

#endif
