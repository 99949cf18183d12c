/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target: the bytes choose true and false reports of the helper, the programs' writes to their pages and eventfds,
 * and asymd's calls: serve, housekeeping, ask. After the last program has ended, the server must keep nothing of them and
 * admit the next program. Each input starts with a new server, so that every failure is reproducible.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-fair-share.h"
#include "linux/rtx/rtx-page.h"
#include "linux/rtx/rtx-server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENTS = 8, FD_NUMBERS = 256, BEGUN = 1000000 };

struct client {
    uint32_t id;
    int memfd, event; /* -1: none */
};

struct input {
    const uint8_t *data;
    size_t size;
};

struct run {
    struct input in;
    struct client clients[CLIENTS];
    uint32_t last_id;
    asym_usec now;
};

static struct {
    char dir[64];
    struct asym_rtxd_server *server;
    struct asym_rtxd_link link;
    int reports[2]; /* -1: the helper does not run */
    bool clogged, deaf;
    struct run *run;
} w = {.reports = {-1, -1}};

#define MUST(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno));                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint8_t next(struct input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < FD_NUMBERS; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* ---- The helper. ---- */

static void close_end(int end)
{
    asym_close_p(&w.reports[end]);
    w.reports[end] = -1;
}

static int link_start(struct asym_rtxd_link *link, struct asym_error *err)
{
    (void)link;
    (void)err;
    w.clogged = w.deaf = false;
    return pipe2(w.reports, O_CLOEXEC | O_DIRECT | O_NONBLOCK) < 0 ? -errno : 0;
}

static int link_fd(const struct asym_rtxd_link *link)
{
    (void)link;
    return w.reports[0];
}

static void report(const void *bytes, size_t size)
{
    /* A full pipe loses the report; so does a helper that does not run. */
    if (w.reports[1] >= 0)
        (void)!write(w.reports[1], bytes, size);
}

static int link_order(struct asym_rtxd_link *link, const struct asym_rtxd_order *order, const int *fds, size_t n_fds)
{
    (void)link;
    if (w.reports[1] < 0 || w.clogged)
        return w.clogged ? -EAGAIN : -ENOTCONN;
    for (size_t i = 0; i < n_fds; i++)
        MUST(fcntl(fds[i], F_GETFD) >= 0);
    if (order->kind == ASYM_RTXD_ORDER_PING && !w.deaf) {
        const struct asym_rtxd_report alive = {.kind = ASYM_RTXD_REPORT_ALIVE, .id = order->id};
        report(&alive, sizeof alive);
    }
    if (order->kind != ASYM_RTXD_ORDER_GRANT)
        return 0;
    MUST(n_fds == 2);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct client *c = &w.run->clients[i];
        if (c->id != order->id || c->memfd >= 0)
            continue;
        c->memfd = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
        c->event = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
    }
    return 0;
}

static ssize_t link_report(struct asym_rtxd_link *link, struct asym_rtxd_report *ret)
{
    char packet[4096];
    (void)link;
    const ssize_t n = read(w.reports[0], packet, sizeof packet);
    if (n > 0)
        memcpy(ret, packet, ASYM_MIN((size_t)n, sizeof *ret));
    return n > 0 ? n : n < 0 && errno == EAGAIN ? -EAGAIN : -ENOTCONN;
}

static bool link_is_runnable(const struct asym_rtxd_link *link)
{
    (void)link;
    return false;
}

static void link_kill(struct asym_rtxd_link *link)
{
    (void)link;
    close_end(0);
    close_end(1);
}

static void link_reap(struct asym_rtxd_link *link)
{
    (void)link;
}

/* ---- What happens. ---- */

static void forget(struct client *c)
{
    asym_close_p(&c->memfd);
    asym_close_p(&c->event);
    *c = (struct client){.memfd = -1, .event = -1};
}

static void do_come(struct run *r, struct client *c)
{
    forget(c);
    c->id = ++r->last_id;
    const struct asym_rtxd_report came = {
        .kind = ASYM_RTXD_REPORT_CAME, .id = c->id, .pid = getpid(), .uid = next(&r->in) % 4U, .is_certain = 1};
    report(&came, sizeof came);
}

static void do_go(struct run *r, struct client *c)
{
    const struct asym_rtxd_report gone = {.kind = next(&r->in) % 4 ? ASYM_RTXD_REPORT_GONE : ASYM_RTXD_REPORT_BREACH,
                                          .id = c->id};
    report(&gone, sizeof gone);
}

/* Reports of a hostile helper. */
static void do_lie(struct run *r, struct client *c)
{
    struct asym_rtxd_report lie = {.kind = next(&r->in) % 8U,
                                   .id = next(&r->in) % 16U,
                                   .pid = next(&r->in) % 2 ? getpid() : (int32_t)next(&r->in) - 1,
                                   .uid = next(&r->in),
                                   .is_certain = next(&r->in) % 2U,
                                   .cpu_usec = next(&r->in)};
    char bytes[64] = {0};
    (void)c;
    memcpy(bytes, &lie, sizeof lie);
    report(bytes, next(&r->in) % 8 ? sizeof lie : next(&r->in) % sizeof bytes);
}

static void do_end(struct run *r, struct client *c)
{
    (void)c;
    const uint8_t how = next(&r->in) % 8;
    w.clogged |= how == 1;
    w.deaf |= how == 2;
    if (how == 3)
        close_end(1);
}

static void do_fill(struct run *r, struct client *c)
{
    const struct asym_rtx_header h = {.magic = ASYM_RTX_MAGIC,
                                      .version = ASYM_RTX_VERSION,
                                      .header_size = sizeof h,
                                      .slot_size = sizeof(struct asym_rtx_slot),
                                      .n_slots = 1 + next(&r->in) * 16U,
                                      .n_used = next(&r->in)};
    if (c->memfd >= 0)
        MUST(pwrite(c->memfd, &h, sizeof h, 0) == sizeof h && eventfd_write(c->event, 1) == 0);
}

static void do_write(struct run *r, struct client *c)
{
    const uint8_t how = next(&r->in), at = next(&r->in);
    const struct asym_rtx_slot slot = {.tid = how & 4 ? next(&r->in) : getpid(), .word = next(&r->in)};
    const uint8_t byte = next(&r->in);
    if (c->memfd < 0)
        return;
    if (how & 2)
        MUST(pwrite(c->memfd, &byte, 1, at) == 1);
    else
        MUST(pwrite(c->memfd, &slot, sizeof slot, 64 + at % 70 * (off_t)64) == sizeof slot);
}

static void do_wake(struct run *r, struct client *c)
{
    (void)r;
    if (c->event >= 0)
        (void)!eventfd_write(c->event, 1);
}

static void do_hole(struct run *r, struct client *c)
{
    (void)r;
    if (c->memfd >= 0)
        MUST(fallocate(c->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
}

static void do_serve(struct run *r, struct client *c)
{
    (void)c;
    asym_rtxd_server_serve(w.server, r->now);
}

static void do_housekeeping(struct run *r, struct client *c)
{
    (void)c;
    r->now += next(&r->in) * (asym_usec)10000;
    asym_rtxd_server_housekeeping(w.server, r->now);
}

static void do_ask(struct run *r, struct client *c)
{
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(w.server);
    const struct asym_rtxd_program_report *program_reports;
    (void)c;
    const size_t n = provider->ask(provider, r->now++, next(&r->in) & 3, &program_reports);
    MUST(n == asym_rtxd_server_count(w.server));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < program_reports[i].n; k++) {
            const struct asym_rtxd_thread_report *t = &program_reports[i].threads[k];
            MUST(t->tid > 0 && (k == 0 || t[-1].tid < t->tid) && !(t->spins && t->works));
        }
    }
}

static void do_charge(struct run *r, struct client *c)
{
    (void)c;
    asym_rtxd_server_charge(w.server, next(&r->in) * (asym_usec)160);
}

static void do_set(struct run *r, struct client *c)
{
    (void)c;
    asym_rtxd_server_set(w.server, 20, next(&r->in) / 2.56);
}

static void do_wait(struct run *r, struct client *c)
{
    (void)c;
    const asym_usec due = asym_rtxd_server_due(w.server);
    MUST(due <= r->now + 2 * ASYM_SEC);
    r->now = ASYM_MAX(r->now, due);
}

static void (*const steps[])(struct run *r, struct client *c) = {
    do_come, do_serve, do_fill, do_wake, do_write, do_ask,    do_housekeeping, do_go,   do_lie,
    do_end,  do_serve, do_hole, do_come, do_fill,  do_charge, do_set,          do_wait, do_serve};

static void open_server(void)
{
    struct asym_error err = {""};
    w.link = (struct asym_rtxd_link){.start = link_start,
                                     .fd = link_fd,
                                     .order = link_order,
                                     .report = link_report,
                                     .is_runnable = link_is_runnable,
                                     .kill = link_kill,
                                     .reap = link_reap,
                                     .close = link_kill};
    const struct asym_rtxd_server_config config = {.dir = w.dir, .link = &w.link, .spin_notify = 20, .now = BEGUN};
    MUST(asym_rtxd_server_open(&config, &w.server, &err) == 0);
}

static void leave(void)
{
    rmdir(w.dir);
}

static void begin(void)
{
    snprintf(w.dir, sizeof w.dir, "/tmp/asym-fuzz-XXXXXX");
    MUST(mkdtemp(w.dir));
    atexit(leave);
}

/* A working helper runs, and all other programs have ended: the server keeps nothing of them and admits a new program. */
static void end(struct run *r)
{
    static const uint8_t good[] = {0, 0};
    close_end(1);
    for (size_t i = 0; i < CLIENTS; i++)
        forget(&r->clients[i]);
    for (int i = 0; i < 200; i++) {
        r->now += ASYM_SEC;
        asym_rtxd_server_serve(w.server, r->now);
        asym_rtxd_server_housekeeping(w.server, r->now);
    }
    MUST(asym_rtxd_server_count(w.server) == 0 && w.reports[1] >= 0);
    asym_rtxd_server_set(w.server, 20, 100);
    r->in = (struct input){good, sizeof good};
    do_come(r, &r->clients[0]);
    do_serve(r, NULL);
    do_fill(r, &r->clients[0]);
    do_serve(r, NULL);
    MUST(asym_rtxd_server_count(w.server) == 1);
    forget(&r->clients[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run r = {.in = {data, size}, .now = BEGUN};
    if (!w.dir[0])
        begin();
    /* libFuzzer opens descriptors between two inputs. */
    const int fds = count_fds();
    w.run = &r;
    for (size_t i = 0; i < CLIENTS; i++)
        r.clients[i] = (struct client){.memfd = -1, .event = -1};
    open_server();
    while (r.in.size > 0) {
        const uint8_t byte = next(&r.in);
        steps[byte % ASYM_LENGTH(steps)](&r, &r.clients[byte / ASYM_LENGTH(steps) % CLIENTS]);
    }
    end(&r);
    asym_rtxd_server_close(w.server);
    MUST(count_fds() == fds);
    return 0;
}
