/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/phases-kernel.h"

#include <errno.h>

#ifndef ASYM_NO_BPF
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "linux/sys/realtime.h"
#include "phases.skel.h"

/* Processes that asym_phases_reconcile() walks over one by one. */
enum { FEW = 16 };

/* libbpf says why it fails to a function without a context. The thread that opens has its first words. */
static __thread char said[512];

static int keep_words(enum libbpf_print_level level, const char *format, va_list args)
{
    if (level == LIBBPF_WARN && said[0] == '\0') {
        vsnprintf(said, sizeof said, format, args);
        said[strcspn(said, "\n")] = '\0';
    }
    return 0;
}

static int refuse(struct asym_phases *p, int r, const char *step, struct asym_error *err)
{
    asym_phases_close(p);
    if (r == -EPERM)
        return asym_fail(err, r, "BPF programs need CAP_BPF and CAP_PERFMON");
    if (access("/sys/kernel/btf/vmlinux", F_OK) < 0)
        return asym_fail(err, -EOPNOTSUPP, "the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF)");
    return asym_fail(err, r, "the kernel does not %s the BPF programs (%s): %s", step, strerror(-r), said);
}

static int on_record(void *ctx, void *data, size_t size)
{
    struct asym_phases *p = ctx;
    const struct asym_phases_record *r = data;
    const struct asym_phases_event e = {
        .kind = r->tid ? ASYM_PHASES_SERIAL : ASYM_PHASES_PARALLEL,
        .app = r->app,
        .tid = (int32_t)r->tid,
        .changed_ns = r->changed_ns,
    };
    /* The one of asym_phases_doze() only makes the descriptor readable. */
    if (size >= sizeof *r && r->app != 0)
        p->fn(p->ctx, &e);
    return 0;
}

/* The iterators run when they are asked. */
static int load(struct asym_phases *p, const struct asym_phases_limits *limits)
{
    p->bpf = phases_bpf__open();
    if (!p->bpf)
        return -errno;
    bpf_program__set_autoattach(p->bpf->progs.iter_follow, false);
    bpf_program__set_autoattach(p->bpf->progs.iter_reconcile, false);
    const int r = phases_bpf__load(p->bpf);
    if (r < 0)
        return r;
    asym_phases_list_begin(p, &p->bpf->bss->shared);
    p->ring = ring_buffer__new(bpf_map__fd(p->bpf->maps.events), on_record, p, NULL);
    asym_phases_set(p, limits);
    return p->ring ? 0 : -ENOMEM;
}

/* Run an iterator to its end. Its programs print nothing, so one read is all. */
static int run(const struct bpf_link *link)
{
    char none;
    ssize_t n;
    const int fd = bpf_iter_create(bpf_link__fd(link));
    if (fd < 0)
        return -errno;
    do
        n = read(fd, &none, sizeof none);
    while (n < 0 && (errno == EINTR || errno == EAGAIN));
    const int r = n < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* One system call for all threads of the machine: 2.4 ms at 5,000. */
static int run_for_all(const struct asym_phases *p)
{
    asym_realtime_give_up();
    return run(p->everything);
}

/* The first walk finds the PID namespace of asymd. */
static int attach(struct asym_phases *p)
{
    const int r = phases_bpf__attach(p->bpf);
    if (r < 0)
        return r;
    p->everything = bpf_program__attach_iter(p->bpf->progs.iter_reconcile, NULL);
    return p->everything ? run_for_all(p) : -errno;
}

int asym_phases_open(const struct asym_phases_limits *limits, struct asym_phases **ret, struct asym_error *err)
{
    struct asym_phases *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    said[0] = '\0';
    libbpf_set_print(keep_words);
    int r = load(p, limits);
    if (r < 0)
        return refuse(p, r, "load", err);
    r = attach(p);
    if (r < 0)
        return refuse(p, r, "attach", err);
    *ret = p;
    return 0;
}

void asym_phases_close(struct asym_phases *p)
{
    if (!p)
        return;
    bpf_link__destroy(p->everything);
    ring_buffer__free(p->ring);
    phases_bpf__destroy(p->bpf);
    free(p);
}

void asym_phases_set(struct asym_phases *p, const struct asym_phases_limits *limits)
{
    p->shared->gap_ns = limits->gap * 1000;
    p->shared->settle_ns = limits->settle * 1000;
    p->shared->quiet_ends = limits->quiet_ends;
    p->shared->pair_ns = limits->rate ? UINT64_C(2000000000) / limits->rate : 0;
}

/* The same for the threads of one process. */
static int run_for(const struct bpf_program *iterator, int32_t tgid)
{
    union bpf_iter_link_info info = {.task = {.pid = (uint32_t)tgid}};
    struct bpf_iter_attach_opts opts;
    /* libbpf wants zeroes between the members, too. */
    memset(&opts, 0, sizeof opts);
    opts.sz = sizeof opts;
    opts.link_info = &info;
    opts.link_info_len = sizeof info;
    struct bpf_link *link = bpf_program__attach_iter(iterator, &opts);
    if (!link)
        return -errno;
    const int r = run(link);
    bpf_link__destroy(link);
    return r;
}

static int give_order(struct asym_phases *p, int32_t tgid, uint32_t app)
{
    p->shared->tgid = (uint32_t)tgid;
    p->shared->app = app;
    p->shared->n_met = p->shared->n_failed = 0;
    p->shared->apps[app].holey = 1;
    asym_realtime_give_up(); /* 2 us for each thread of the process, in one system call */
    return run_for(p->bpf->progs.iter_follow, tgid);
}

int asym_phases_follow(struct asym_phases *p, int32_t tgid, uint32_t app)
{
    if (tgid <= 0 || app == 0 || app > ASYM_PHASES_APPS)
        return -EINVAL;
    const int r = give_order(p, tgid, app);
    if (r < 0)
        return r;
    if (p->shared->n_failed > 0) {
        asym_phases_unfollow(p, tgid);
        return -ENOSPC;
    }
    p->is_new |= p->shared->n_met > 0;
    return p->shared->n_met > 0 ? 0 : -ESRCH;
}

int asym_phases_unfollow(struct asym_phases *p, int32_t tgid)
{
    return tgid > 0 ? give_order(p, tgid, 0) : 0;
}

int asym_phases_fd(const struct asym_phases *p)
{
    return bpf_map__fd(p->bpf->maps.events); /* that of libbpf is an epoll of one: a second one in each wait */
}

void asym_phases_take(struct asym_phases *p, void (*fn)(void *ctx, const struct asym_phases_event *e), void *ctx)
{
    p->fn = fn;
    p->ctx = ctx;
    ring_buffer__consume(p->ring);
    const uint64_t n_lost = __atomic_load_n(&p->shared->n_lost, __ATOMIC_RELAXED);
    if (n_lost == p->n_lost)
        return;
    p->n_lost = n_lost;
    fn(ctx, &(struct asym_phases_event){.kind = ASYM_PHASES_LOST});
}

bool asym_phases_dozes(const struct asym_phases *p)
{
    return __atomic_load_n(&p->shared->watch, __ATOMIC_SEQ_CST) == ASYM_PHASES_RINGS;
}

/* Returns whether shared->settings is up to date for the listed threads. */
static bool compare_settings(const struct asym_phases *p)
{
    struct bpf_test_run_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.sz = sizeof opts;
    return bpf_prog_test_run_opts(bpf_program__fd(p->bpf->progs.run_settings), &opts) == 0;
}

size_t asym_phases_list(struct asym_phases *p, const struct asym_phases_thread **ret_threads,
                        const uint32_t **ret_slots)
{
    uint64_t now = 0;
    const uint32_t n = asym_phases_list_find(p->shared);
    const bool has_settings = n > 0 && compare_settings(p);
    asym_clock_ns(CLOCK_MONOTONIC, &now);
    asym_phases_list_read(p, now, has_settings, ret_threads, ret_slots);
    return n;
}

uint32_t asym_phases_threads(const struct asym_phases *p, uint32_t app)
{
    const uint32_t *n = app ? &p->shared->apps[app % ASYM_PHASES_APP_RECORDS].n_threads : &p->shared->n_threads;
    return __atomic_load_n(n, __ATOMIC_RELAXED);
}

void asym_phases_hold(struct asym_phases *p, uint32_t app, asym_usec until)
{
    __atomic_store_n(&p->shared->apps[app % ASYM_PHASES_APP_RECORDS].paid, until * 1000 + ASYM_PHASES_CREDIT,
                     __ATOMIC_RELAXED);
}

bool asym_phases_misses(const struct asym_phases *p, uint32_t app)
{
    return p->shared->apps[app % ASYM_PHASES_APP_RECORDS].holey != 0;
}

/* Returns whether an application has holes. Threads may be missing, too, if the process made some while following began. */
static bool has_holes(const struct asym_phases *p)
{
    bool has = p->is_new;
    for (uint32_t app = 1; app <= ASYM_PHASES_APPS; app++)
        has |= p->shared->apps[app].holey != 0;
    return has;
}

static void reconcile_all(struct asym_phases *p)
{
    struct asym_phases_shared *s = p->shared;
    for (uint32_t app = 1; app <= ASYM_PHASES_APPS; app++)
        s->apps[app].missed = 0;
    if (run_for_all(p) < 0)
        return;
    for (uint32_t app = 1; app <= ASYM_PHASES_APPS; app++)
        s->apps[app].holey = s->apps[app].missed;
    p->is_new = false;
}

/* A walk over all threads of the machine costs more than one over a few processes. */
static void reconcile_old(struct asym_phases *p, uint64_t now)
{
    struct asym_phases_shared *s = p->shared;
    uint32_t last = 0;
    for (uint32_t slot = 0, n = 0; (slot = asym_phases_list_old(s, slot, now)) != 0;) {
        if (s->slots[slot].tgid == last)
            continue;
        last = s->slots[slot].tgid;
        if (++n > FEW) {
            run_for_all(p);
            return;
        }
        run_for(p->bpf->progs.iter_reconcile, (int32_t)last);
    }
}

void asym_phases_reconcile(struct asym_phases *p)
{
    struct asym_phases_shared *s = p->shared;
    uint64_t now = 0;
    uint32_t slot = 0;
    asym_clock_ns(CLOCK_MONOTONIC, &now);
    s->round++;
    if (has_holes(p))
        reconcile_all(p);
    else
        reconcile_old(p, now);
    /* No walk meets a thread that is gone. The next one frees its slot. */
    do
        slot = asym_phases_list_old(s, slot, now);
    while (slot && s->slots[slot].round == s->round);
    s->stale = slot;
}

struct asym_phases_maps asym_phases_maps_of(const struct asym_phases *p)
{
    return (struct asym_phases_maps){bpf_map__fd(p->bpf->maps.tags), bpf_map__fd(p->bpf->maps.bss), p->shared};
}

#else /* ASYM_NO_BPF */

int asym_phases_open(const struct asym_phases_limits *limits __attribute__((unused)),
                     struct asym_phases **ret __attribute__((unused)), struct asym_error *err)
{
    return asym_fail(err, -EOPNOTSUPP,
                     "this asymd was built without BPF programs (clang, bpftool or libbpf was missing)");
}
#endif
