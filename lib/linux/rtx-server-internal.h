/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the files of the server share. */
#ifndef ASYM_LINUX_RTX_SERVER_INTERNAL_H
#define ASYM_LINUX_RTX_SERVER_INTERNAL_H

#include <stdint.h>

#include "linux/rtx-page.h"
#include "linux/rtx-prompt.h"
#include "linux/rtx-server.h"

struct asym_rtx_client {
    int fd, event;
    pid_t pid;
    uid_t uid;
    uint64_t start; /* of the process */
    asym_usec came, woke_at;
    const void *page; /* NULL: not handed over yet */
    size_t size;
    struct asym_rtx_layout layout;
    struct asym_rtx_memory memory;
    struct asym_told_thread *said; /* its last answer */
    size_t n_said;
    struct asym_prompt prompt;
    double part;      /* of what answers may take */
    unsigned in_vain; /* how often in a row it has woken us for nothing */
    bool woke, woke_before;
    bool asked;   /* was looked at in the last call of serve */
    bool told;    /* ... and a phase had begun or ended */
    bool fresh;   /* told of something that is in no answer yet */
    bool watched; /* its eventfd */
    bool muted;   /* it is not watched until the next tend */
    bool put_off; /* it is not watched until it may be answered again */
    bool over;    /* to be taken out */
};

/**
 * What a connection has sent: the one message there is to send, with a page and an eventfd, which the client then has.
 * 0; -EAGAIN: nothing; -ENOTCONN: it has ended; -errno: not what was to be sent, or no memory for it.
 */
int asym_rtx_take_page(struct asym_rtx_client *c);

#endif
