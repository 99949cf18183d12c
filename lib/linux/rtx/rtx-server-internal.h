/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Declarations that the files of the RTX server share. */
#ifndef ASYM_LINUX_RTX_SERVER_INTERNAL_H
#define ASYM_LINUX_RTX_SERVER_INTERNAL_H

#include <stdint.h>

#include "linux/rtx/rtx-overlay.h"
#include "linux/rtx/rtx-page.h"
#include "linux/rtx/rtx-server-config.h"

/** The socket's ACL names at most this many users. */
#define ASYM_RTXD_MAX_BARRED 256

/** State of a connection, as asymd knows it. Each state excludes the others. */
enum asym_rtxd_client_state {
    ASYM_RTXD_CLIENT_WITHOUT_HEADER, /**< connected; its page has no valid header yet */
    ASYM_RTXD_CLIENT_VALID,          /**< its header is valid: asymd reads its slots */
    ASYM_RTXD_CLIENT_ENDED,          /**< the next asym_rtxd_sweep() frees it */
};

/** Result of the last asym_rtxd_server_serve() for the page of a client. */
enum asym_rtxd_client_sample {
    ASYM_RTXD_NOT_SAMPLED,   /**< it has not read the page */
    ASYM_RTXD_NO_REPORT,     /**< it has read the page: no serial phase has begun or ended, or the answer is deferred */
    ASYM_RTXD_PHASE_CHANGED, /**< it has read the page: a serial phase has begun or ended, and asymd answers */
};

/** State of a client's eventfd. Each state excludes the others. */
enum asym_rtxd_client_polling {
    ASYM_RTXD_POLLED,       /**< epoll reports it */
    ASYM_RTXD_POLLED_AGAIN, /**< epoll reports it again: EPOLL_CTL_MOD may cause the next wakeup, not the program */
    ASYM_RTXD_THROTTLED,    /**< it woke asymd in vain too often: not polled before the next housekeeping */
    ASYM_RTXD_DEFERRED,     /**< it has no CPU time for an answer: not polled until it has */
};

/** The last wakeup of asymd by the eventfd of a client, since the last sample of its page. */
enum asym_rtxd_wakeup {
    ASYM_RTXD_NOT_WOKEN,
    ASYM_RTXD_WOKEN_BY_ASYMD, /**< EPOLL_CTL_MOD has reported old writes: asymd polls the eventfd again */
    ASYM_RTXD_WOKEN_BY_PROGRAM,
};

struct asym_rtxd_client {
    uint32_t id; /* of the connection; a later connection has a higher one */
    int memfd, event;
    pid_t pid;
    uid_t uid;
    uint64_t start; /* start time of the process */
    asym_usec came, reported_at;
    asym_usec again_at; /* when asymd samples the page once more after a wakeup; 0: never */
    enum asym_rtxd_client_state state;
    enum asym_rtxd_client_sample sample;
    enum asym_rtxd_client_polling polling;
    enum asym_rtxd_wakeup wakeup;
    struct asym_rtxd_layout layout;
    size_t n_known; /* slots in use at the last read */
    struct asym_rtxd_page_state page_state;
    struct asym_rtxd_thread_report *said; /* its last answer */
    size_t n_said;
    asym_usec said_at;
    double saved;            /* CPU time left for answers, microseconds; below 0: overspent */
    double part;             /* share of the earned CPU time, 0 to 1 */
    unsigned n_vain_wakeups; /* consecutive wakeups without a change of phase */
    bool active;             /* it has reported a phase within ASYM_RTXD_ACTIVE: it holds and earns CPU time */
    bool unanswered;         /* no answer contains its latest change of phase yet */
    bool full_answer;        /* its last answer was to a question without ASYM_ASK_REFRESH */
};

struct asym_rtxd_server {
    struct asym_rtxd_provider provider;
    struct asym_rtxd_server_config config;
    struct asym_rtxd_link *link;
    char path[108]; /* as long as sun_path */
    int epoll;
    char *copy; /* buffer for a page: ASYM_RTXD_PAGE_SIZE bytes */
    /* Eventfds that no helper holds yet, see rtx-acceptor.h. id: its connection; 0: the connection of an earlier helper. */
    struct asym_rtxd_orphan {
        uint32_t id;
        int fd;
    } orphans[2 * ASYM_RTXD_MAX_CLIENTS];
    size_t n_orphans;
    /* Connections that the helper has no order to close yet: its channel was full. */
    uint32_t unclosed[ASYM_RTXD_MAX_CONNECTIONS];
    size_t n_unclosed;
    uint32_t ping;         /* id of the last PING */
    bool pinged;           /* the channel had room for it */
    bool broken;           /* the helper has ended, or has too many orders to catch up on */
    unsigned silent_calls; /* calls of housekeeping since a PING that the helper has not answered; 0: it has */
    asym_usec retry_at, retry_after;
    struct asym_rtxd_helper_use use, use_before; /* by the present helper, by the earlier ones */
    double reserve;                              /* microseconds of CPU time that no client holds; below 0: overspent */
    asym_usec settled;                           /* CPU time earned up to then has been divided */
    unsigned taken;                              /* connections since the last housekeeping ... */
    uid_t takers[ASYM_RTXD_MAX_TAKEN_USERS];     /* ... and their users */
    size_t n_takers;
    uid_t barred[ASYM_RTXD_MAX_BARRED]; /* users that the ACL of the present socket keeps out */
    size_t n_barred;
    unsigned ends;      /* reported since the last housekeeping although the reserve was overspent */
    bool gone_reported; /* the last serve returned true because of an ended program */
    bool gone;          /* a program ended in a serial phase; serve has not reported it yet */
    struct asym_rtxd_client *clients[ASYM_RTXD_MAX_CLIENTS]; /* in ascending order of pid */
    size_t n;
    /* The provider's answer. */
    struct asym_rtxd_program_report program_reports[ASYM_RTXD_MAX_CLIENTS];
};

/** Mark the client as ended: the next asym_rtxd_sweep() frees it. The end of a program ends its serial phase. */
static inline void asym_rtxd_end(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    s->gone |= c->page_state.phase != 0;
    c->state = ASYM_RTXD_CLIENT_ENDED;
}

#endif
