/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "linux/helper.h"

struct helper_link {
    struct asym_rtx_link link;
    struct asym_helper helper;
    char program[];
};

static struct helper_link *of(const struct asym_rtx_link *link)
{
    return (struct helper_link *)(uintptr_t)link;
}

static int link_start(struct asym_rtx_link *link, struct asym_error *err)
{
    return asym_helper_start(&of(link)->helper, err);
}

static int link_fd(const struct asym_rtx_link *link)
{
    return of(link)->helper.reports;
}

static int link_order(struct asym_rtx_link *link, const struct asym_rtx_order *order, const int *fds, size_t n_fds)
{
    return asym_helper_order(&of(link)->helper, order, sizeof *order, fds, n_fds);
}

static ssize_t link_report(struct asym_rtx_link *link, struct asym_rtx_report *ret)
{
    char packet[ASYM_HELPER_PACKET];
    const ssize_t n = asym_helper_report(&of(link)->helper, packet, sizeof packet);
    if (n > 0)
        memcpy(ret, packet, ASYM_MIN((size_t)n, sizeof *ret));
    return n;
}

static void link_kill(struct asym_rtx_link *link)
{
    asym_helper_kill(&of(link)->helper);
}

static void link_reap(struct asym_rtx_link *link)
{
    asym_helper_reap(&of(link)->helper);
}

static void link_close(struct asym_rtx_link *link)
{
    link_kill(link);
    free(of(link));
}

struct asym_rtx_link *asym_rtx_link_new(const char *program)
{
    const size_t size = strlen(program) + 1;
    struct helper_link *l = calloc(1, sizeof *l + size);
    if (!l)
        return NULL;
    memcpy(l->program, program, size);
    l->link = (struct asym_rtx_link){.start = link_start,
                                     .fd = link_fd,
                                     .order = link_order,
                                     .report = link_report,
                                     .kill = link_kill,
                                     .reap = link_reap,
                                     .close = link_close};
    l->helper = (struct asym_helper)ASYM_HELPER_INIT(l->program, "rtx");
    return &l->link;
}
