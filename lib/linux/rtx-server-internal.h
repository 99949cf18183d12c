/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the files of the server share. */
#ifndef ASYM_LINUX_RTX_SERVER_INTERNAL_H
#define ASYM_LINUX_RTX_SERVER_INTERNAL_H

#include <stdint.h>

#include "linux/rtx-page.h"
#include "linux/rtx-server.h"

struct asym_rtx_client {
    int fd, event;
    pid_t pid;
    uid_t uid;
    uint64_t start; /* of the process */
    asym_usec came, told_at;
    asym_usec again_at; /* when it is looked at once more, as it has woken us; 0: not */
    const void *page;   /* NULL: not handed over yet */
    size_t size;
    struct asym_rtx_layout layout;
    struct asym_rtx_memory memory;
    struct asym_told_thread *said; /* its last answer */
    size_t n_said;
    asym_usec said_at;
    double saved;     /* of what answers may take, microseconds of CPU time; below 0: overspent */
    double part;      /* of what is earned */
    unsigned in_vain; /* how often in a row it has woken us for nothing */
    bool woke;
    bool looked;  /* at its page, in the last call of serve */
    bool told;    /* ... and a phase had begun or ended */
    bool active;  /* has told of one of late: has something saved, and earns */
    bool fresh;   /* told of something that is in no answer yet */
    bool whole;   /* its last answer was to no hurried question */
    bool watched; /* its eventfd */
    bool excused; /* the next time that it wakes us may be our own doing */
    bool muted;   /* it is not watched until the next tend */
    bool put_off; /* it is not watched until it may be answered */
    bool over;    /* to be taken out */
};

struct asym_rtx_server {
    struct asym_teller teller;
    struct asym_rtx_server_config config;
    char path[108]; /* as long as sun_path */
    int fd, epoll;
    double pot;        /* microseconds of CPU time that nobody has; below 0: overspent */
    asym_usec settled; /* what was earned until then is divided */
    unsigned taken;    /* connections since the last tend */
    bool gone;         /* somebody went in a serial phase, in the last call of serve */
    bool deaf;         /* for want of descriptors, or after too many connections: listens again later */
    struct asym_rtx_client *clients[ASYM_RTX_MAX_CLIENTS]; /* by pid, rising */
    size_t n;
    /* What ask hands out. */
    struct asym_told told[ASYM_RTX_MAX_CLIENTS];
};

/**
 * What a connection has sent: the one message there is to send, with a page and an eventfd, which the client then has.
 * 0; -EAGAIN: nothing; -ENOTCONN: it has ended; -errno: not what was to be sent, or no memory for it.
 */
int asym_rtx_take_page(struct asym_rtx_client *c);

/** rtx-allowance.c: what was earned until now is divided, and who has told of nothing of late is active no more. */
void asym_rtx_settle(struct asym_rtx_server *s, asym_usec now);
/** It has told of something: may it be answered now? From now on it is active. */
bool asym_rtx_may_answer(struct asym_rtx_server *s, struct asym_rtx_client *c, asym_usec now);
/** It has not spent more than it has; who is not active has nothing. */
bool asym_rtx_is_solvent(struct asym_rtx_server *s, struct asym_rtx_client *c);
/** It is active no more. */
void asym_rtx_retire(struct asym_rtx_server *s, struct asym_rtx_client *c);

#endif
