/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-end.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "linux/rtx/rtx-channel.h"
#include "linux/rtx/rtx-fair-share.h"
#include "linux/rtx/rtx-server-internal.h"

void asym_rtxd_refuse(const struct asym_rtxd_server *s, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    if (s->config.refused)
        s->config.refused(s->config.ctx, refusal, pid, uid);
}

void asym_rtxd_drop(struct asym_rtxd_server *s, struct asym_rtxd_client *c, enum asym_rtxd_refusal refusal)
{
    asym_rtxd_refuse(s, refusal, c->pid, c->uid);
    asym_rtxd_end(s, c);
}

/* The program and the helper still hold the eventfd: without EPOLL_CTL_DEL it would go on waking asymd. */
static void free_client(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->event, NULL);
    asym_rtxd_close_connection(s, c->id, c->event);
    asym_rtxd_retire(s, c);
    close(c->memfd);
    free(c->page_state.readings);
    free(c->said);
    free(c);
}

void asym_rtxd_sweep(struct asym_rtxd_server *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->clients[i]->state == ASYM_RTXD_CLIENT_ENDED)
            free_client(s, s->clients[i]);
        else
            s->clients[kept++] = s->clients[i];
    }
    s->n = kept;
}
