/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What the files of the server share. */
#ifndef ASYM_LINUX_RTX_SERVER_INTERNAL_H
#define ASYM_LINUX_RTX_SERVER_INTERNAL_H

#include <stdint.h>

#include "linux/rtx-page.h"
#include "linux/rtx-server.h"

struct asym_rtx_client {
    uint32_t id; /* of its connection, rising */
    int memfd, event;
    pid_t pid;
    uid_t uid;
    uint64_t start; /* of the process */
    asym_usec came, told_at;
    asym_usec again_at; /* when it is looked at once more, as it has woken us; 0: not */
    bool speaks;        /* its header was read, and is good */
    struct asym_rtx_layout layout;
    size_t n_known; /* slots that were in use when it was last read */
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
    struct asym_rtx_link *link;
    char path[108]; /* as long as sun_path */
    int epoll;
    char *copy; /* of a page: ASYM_RTX_PAGE_SIZE bytes */
    /* Eventfds that no helper has taken back yet, see rtx-acceptor.h. */
    int orphans[2 * ASYM_RTX_MAX_CLIENTS];
    size_t n_orphans;
    uint32_t ping;    /* the last question to the helper */
    bool broken;      /* it has not taken an order */
    unsigned unheard; /* calls of tend since it was asked what it has not answered; 0: it has */
    asym_usec retry_at, retry_after;
    struct asym_rtx_helper_use use, use_before; /* of this helper, of those before it */
    double pot;                                 /* microseconds of CPU time that no client has; below 0: overspent */
    asym_usec settled;                          /* what was earned until then is divided */
    unsigned taken;                             /* connections since the last tend ... */
    uid_t takers[ASYM_RTX_MAX_TAKEN_USERS];     /* ... and whose they were */
    size_t n_takers;
    unsigned ends;  /* that were told of since the last tend, though more was spent than there was */
    bool gone_told; /* the last call of serve said so because of one that went */
    bool gone;      /* a program ended in a serial phase, and that was not told of yet */
    struct asym_rtx_client *clients[ASYM_RTX_MAX_CLIENTS]; /* by pid, rising */
    size_t n;
    /* What ask hands out. */
    struct asym_told told[ASYM_RTX_MAX_CLIENTS];
};

/** rtx-server.c */

void asym_rtx_refuse(const struct asym_rtx_server *s, enum asym_rtx_refusal refusal, pid_t pid, uid_t uid);
/** To be taken out at the next sweep. */
void asym_rtx_end(struct asym_rtx_server *s, struct asym_rtx_client *c);
/** The same, as refused. */
void asym_rtx_drop(struct asym_rtx_server *s, struct asym_rtx_client *c, enum asym_rtx_refusal refusal);
/** Take out those that are over. */
void asym_rtx_sweep(struct asym_rtx_server *s);

/** rtx-channel.c: the helper. */

/** Start one and give it the socket; where that fails it is tried again later. 0; -errno with err. */
int asym_rtx_start_helper(struct asym_rtx_server *s, asym_usec now, struct asym_error *err);
/** End it, and with it all connections: their clients are over. */
void asym_rtx_lose_helper(struct asym_rtx_server *s, asym_usec now, const char *why);
/** Ask it whether it is there; have another one where there is none, and what it has to close closed. */
void asym_rtx_mind_helper(struct asym_rtx_server *s, asym_usec now);
/** Order. Whether it was taken; one that takes none is lost at the next asym_rtx_mind_helper(). */
bool asym_rtx_order(struct asym_rtx_server *s, const struct asym_rtx_order *order, const int *fds, size_t n_fds);
/** Close the connection, and give the eventfd away (-1: there is none). */
void asym_rtx_close_connection(struct asym_rtx_server *s, uint32_t id, int event);

/** rtx-admit.c: a program has connected. */

void asym_rtx_admit(struct asym_rtx_server *s, const struct asym_rtx_report *came, asym_usec now);

/** rtx-copy.c */

/** All pages are of this size: what the library may want and a page more for later ones. */
#define ASYM_RTX_PAGE_SIZE (ASYM_RTX_MAX_SLOTS * 64 + 65536)

/** Make the memory of a page. Its descriptor; -errno. */
int asym_rtx_make_memfd(void);
/** Read the header of a page, and what is in it from then on. 0; -EAGAIN: there is none yet; -EPROTO, -EPROTONOSUPPORT. */
int asym_rtx_read_header(struct asym_rtx_server *s, struct asym_rtx_client *c);
/** Copy what is in use of a page, at most most slots, to s->copy. How many slots that is. */
size_t asym_rtx_copy_page(struct asym_rtx_server *s, struct asym_rtx_client *c, size_t most);

/** rtx-allowance.c: what was earned until now is divided, and who has told of nothing of late is active no more. */
void asym_rtx_settle(struct asym_rtx_server *s, asym_usec now);
/** It has told of something: may it be answered now? From now on it is active. */
bool asym_rtx_may_answer(struct asym_rtx_server *s, struct asym_rtx_client *c, asym_usec now);
/** It has not spent more than it has; who is not active has nothing. */
bool asym_rtx_is_solvent(struct asym_rtx_server *s, struct asym_rtx_client *c);
/** It is active no more. */
void asym_rtx_retire(struct asym_rtx_server *s, struct asym_rtx_client *c);

#endif
