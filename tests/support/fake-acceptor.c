/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/fake-acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macro.h"

enum { CONNECTIONS = 2048 };

/* Reports wait in a pipe, one packet each. */
static struct fake {
    struct asym_rtxd_link link;
    int reports[2];
    int start_error;
    bool runs, hangs, clogged, files_clogged, runnable;
    uint32_t last_id, ping;
    unsigned started, killed, given;
    struct fake_connection *connections[CONNECTIONS];
} fake;

static int fake_start(struct asym_rtxd_link *link, struct asym_error *err)
{
    (void)link;
    if (fake.start_error < 0)
        return asym_fail(err, fake.start_error, "made to fail");
    assert_false(fake.runs);
    assert_int_equal(pipe2(fake.reports, O_CLOEXEC | O_DIRECT | O_NONBLOCK), 0);
    fcntl(fake.reports[1], F_SETPIPE_SZ, 1 << 20);
    fake.runs = true;
    fake.hangs = fake.clogged = fake.runnable = false;
    fake.started++;
    return 0;
}

static int fake_fd(const struct asym_rtxd_link *link)
{
    (void)link;
    return fake.runs ? fake.reports[0] : -1;
}

static struct fake_connection *find(uint32_t id)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (fake.connections[i] && fake.connections[i]->id == id)
            return fake.connections[i];
    return NULL;
}

static int fake_order(struct asym_rtxd_link *link, const struct asym_rtxd_order *order, const int *fds, size_t n_fds)
{
    (void)link;
    struct fake_connection *c = find(order->id);
    if (!fake.runs || fake.reports[1] < 0)
        return -ENOTCONN;
    if (fake.clogged || (fake.files_clogged && n_fds > 0))
        return -EAGAIN;
    if (order->kind == ASYM_RTXD_ORDER_PING) {
        fake.ping = order->id;
        if (!fake.hangs)
            fake_acceptor_answer(fake.ping);
    } else if (order->kind == ASYM_RTXD_ORDER_GRANT) {
        assert_int_equal(n_fds, 2);
        assert_non_null(c);
        c->memfd = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        c->event = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
    } else if (order->kind == ASYM_RTXD_ORDER_HOLD) {
        fake.given += (unsigned)n_fds;
        if (c && !c->closed)
            c->held += (unsigned)n_fds;
    } else if (order->kind == ASYM_RTXD_ORDER_CLOSE) {
        assert_int_equal(n_fds, 0);
        if (c)
            c->closed = true;
    }
    return 0;
}

static ssize_t fake_report(struct asym_rtxd_link *link, struct asym_rtxd_report *ret)
{
    char packet[4096];
    (void)link;
    const ssize_t n = read(fake.reports[0], packet, sizeof packet);
    if (n > 0)
        memcpy(ret, packet, ASYM_MIN((size_t)n, sizeof *ret));
    return n > 0 ? n : n < 0 && errno == EAGAIN ? -EAGAIN : -ENOTCONN;
}

static bool fake_is_runnable(const struct asym_rtxd_link *link)
{
    (void)link;
    return fake.runnable;
}

static void fake_kill(struct asym_rtxd_link *link)
{
    (void)link;
    if (!fake.runs)
        return;
    asym_close_p(&fake.reports[0]);
    asym_close_p(&fake.reports[1]);
    fake.runs = false;
    fake.killed++;
}

static void fake_reap(struct asym_rtxd_link *link)
{
    (void)link;
}

struct asym_rtxd_link *fake_acceptor_new(void)
{
    fake = (struct fake){.link = {.start = fake_start,
                                  .fd = fake_fd,
                                  .order = fake_order,
                                  .report = fake_report,
                                  .is_runnable = fake_is_runnable,
                                  .kill = fake_kill,
                                  .reap = fake_reap,
                                  .close = fake_kill}};
    return &fake.link;
}

void fake_acceptor_fail(int error)
{
    fake.start_error = error;
}

void fake_acceptor_hang(bool runnable)
{
    fake.hangs = true;
    fake.runnable = runnable;
}

void fake_acceptor_clog(bool clogged)
{
    fake.clogged = clogged;
}

void fake_acceptor_clog_files(bool clogged)
{
    fake.files_clogged = clogged;
}

void fake_acceptor_end(void)
{
    asym_close_p(&fake.reports[1]);
    fake.reports[1] = -1;
}

unsigned fake_acceptor_started(void)
{
    return fake.started;
}

unsigned fake_acceptor_killed(void)
{
    return fake.killed;
}

unsigned fake_acceptor_given(void)
{
    return fake.given;
}

uint32_t fake_acceptor_ping(void)
{
    return fake.ping;
}

void fake_acceptor_report(const void *report, size_t size)
{
    assert_int_equal(write(fake.reports[1], report, size), size);
}

void fake_acceptor_answer(uint32_t ping)
{
    const struct asym_rtxd_report alive = {.kind = ASYM_RTXD_REPORT_ALIVE, .id = ping, .cpu_usec = 7};
    fake_acceptor_report(&alive, sizeof alive);
}

static struct fake_connection **slot_of(const struct fake_connection *c)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (fake.connections[i] == c)
            return &fake.connections[i];
    return NULL;
}

void fake_acceptor_come(struct fake_connection *ret, pid_t pid, uid_t uid, bool is_certain)
{
    struct fake_connection **slot = slot_of(NULL);
    assert_non_null(slot);
    *ret = (struct fake_connection){.id = ++fake.last_id, .memfd = -1, .event = -1};
    *slot = ret;
    const struct asym_rtxd_report came = {
        .kind = ASYM_RTXD_REPORT_CAME, .id = ret->id, .pid = pid, .uid = uid, .is_certain = is_certain};
    fake_acceptor_report(&came, sizeof came);
}

void fake_acceptor_go(const struct fake_connection *c)
{
    const struct asym_rtxd_report gone = {.kind = ASYM_RTXD_REPORT_GONE, .id = c->id};
    fake_acceptor_report(&gone, sizeof gone);
}

void fake_acceptor_breach(const struct fake_connection *c)
{
    const struct asym_rtxd_report breach = {.kind = ASYM_RTXD_REPORT_BREACH, .id = c->id};
    fake_acceptor_report(&breach, sizeof breach);
}

void fake_connection_done(struct fake_connection *c)
{
    struct fake_connection **slot = slot_of(c);
    asym_close_p(&c->memfd);
    asym_close_p(&c->event);
    c->memfd = c->event = -1;
    if (slot)
        *slot = NULL;
}
