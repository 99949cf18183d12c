/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/macro.h"
#include "linux/sys/helper-process.h"
#include "linux/sys/thread.h"

struct helper_link {
    struct asym_rtxd_link link;
    struct asym_helper helper;
    bool has_made_subreaper; /* this process was none before */
    char program[];
};

static struct helper_link *of(const struct asym_rtxd_link *link)
{
    return (struct helper_link *)(uintptr_t)link;
}

/* A closer that sleeps outlives its helper. The kernel makes it a child of asymd, which counts it (linux/sys/helper-process.h). */
static int become_subreaper(struct helper_link *l)
{
    int is_one = 0;
    if (prctl(PR_GET_CHILD_SUBREAPER, &is_one) < 0)
        return -errno;
    if (is_one)
        return 0;
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return -errno;
    l->has_made_subreaper = true;
    return 0;
}

static int link_start(struct asym_rtxd_link *link, struct asym_error *err)
{
    const int r = become_subreaper(of(link));
    if (r < 0)
        return asym_fail(err, r, "PR_SET_CHILD_SUBREAPER: %s", strerror(-r));
    return asym_helper_start(&of(link)->helper, err);
}

static int link_fd(const struct asym_rtxd_link *link)
{
    return of(link)->helper.reports;
}

static int link_order(struct asym_rtxd_link *link, const struct asym_rtxd_order *order, const int *fds, size_t n_fds)
{
    return asym_helper_order(&of(link)->helper, order, sizeof *order, fds, n_fds);
}

static ssize_t link_report(struct asym_rtxd_link *link, struct asym_rtxd_report *ret)
{
    char packet[ASYM_HELPER_PACKET];
    const ssize_t n = asym_helper_report(&of(link)->helper, packet, sizeof packet);
    if (n > 0)
        memcpy(ret, packet, ASYM_MIN((size_t)n, sizeof *ret));
    return n;
}

/* This reads the stat of asymd's own child, which no other process can block. */
static bool link_is_runnable(const struct asym_rtxd_link *link)
{
    struct asym_stat stat;
    const pid_t pid = of(link)->helper.pid;
    return pid > 1 && asym_thread_get_stat(pid, pid, &stat) == 0 && stat.state == 'R';
}

static void link_kill(struct asym_rtxd_link *link)
{
    asym_helper_kill(&of(link)->helper);
}

static void link_reap(struct asym_rtxd_link *link)
{
    asym_helper_reap(&of(link)->helper);
}

/* The link counts no more closers. Those that are left, and later orphans, are reaped by init, as before the link. */
static void link_close(struct asym_rtxd_link *link)
{
    link_kill(link);
    if (of(link)->has_made_subreaper)
        prctl(PR_SET_CHILD_SUBREAPER, 0);
    free(of(link));
}

struct asym_rtxd_link *asym_rtxd_link_new(const char *program)
{
    const size_t size = strlen(program) + 1;
    struct helper_link *l = calloc(1, sizeof *l + size);
    if (!l)
        return NULL;
    memcpy(l->program, program, size);
    l->link = (struct asym_rtxd_link){.start = link_start,
                                      .fd = link_fd,
                                      .order = link_order,
                                      .report = link_report,
                                      .is_runnable = link_is_runnable,
                                      .kill = link_kill,
                                      .reap = link_reap,
                                      .close = link_close};
    l->helper = (struct asym_helper)ASYM_HELPER_INIT(l->program, "rtx");
    return &l->link;
}
