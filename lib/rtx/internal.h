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

/** A descriptor of ours, and how to tell that it still is: programs close what they did not open. */
struct asym_rtx_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/** Of the process. Written under the lock; what the calls of threads read without it is atomic. */
struct asym_rtx_process {
    pthread_mutex_t lock;
    struct asym_rtx_header *page; /* atomic; never moves once it is there. NULL: none */
    size_t size;
    pid_t pid;                       /* whose page it is: a fork without a handler shows here */
    bool published;                  /* the page is the memfd; else it is memory of our own */
    bool left;                       /* asym_rtx_leave() was called */
    struct asym_rtx_fd memfd, event; /* event.fd: atomic */
    struct asym_rtx_fd socket;       /* fd atomic; -1: not joined */
    char path[108];                  /* as long as sun_path */
    uint64_t notify_min;             /* ns; the page says it in its header */
    uint64_t notified;               /* when last; atomic */
    uint64_t mind_at;                /* when to look after the connection next; atomic */
};

extern struct asym_rtx_process asym_rtx_process;

/** A clock in ns, as cheap as there is one; steady, of no particular beginning. */
uint64_t asym_rtx_now(void);

/** page.c */

/** Memory for a page of n slots, with its header filled in, notify_min as it is in p. 0; -ENOMEM. */
int asym_rtx_page_make(struct asym_rtx_process *p, uint32_t n_slots);
/** Make the page a sealed memfd that can be handed over, where it is not one yet. 0; -errno: it stays what it was. */
int asym_rtx_page_publish(struct asym_rtx_process *p);
/** Right after a fork: memory of the child's own in the parent's page's place, with no slot used but keep (NULL: none). */
void asym_rtx_page_part(struct asym_rtx_process *p, const struct asym_rtx_slot *keep);
/** A free slot, now of thread tid; NULL: none. */
struct asym_rtx_slot *asym_rtx_page_take(struct asym_rtx_process *p, int32_t tid);
void asym_rtx_page_give(struct asym_rtx_slot *slot);

/** join.c: none of these blocks. */

struct asym_rtx_fd asym_rtx_fd_own(int fd);
/** Close it if it is still ours. */
void asym_rtx_fd_close(struct asym_rtx_fd *f);
/** Look after the connection: is it still ours, is there still somebody; if not, offer the page again. Lock held. */
void asym_rtx_look_after(struct asym_rtx_process *p);
/** The same where nobody else is at it, and not again for a second. */
void asym_rtx_mind(struct asym_rtx_process *p, uint64_t now);
/** Wake the daemon, unless it was woken within notify_min. Whether it was now. */
bool asym_rtx_notify(struct asym_rtx_process *p, uint64_t now);

#endif
