/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-server.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-admit.h"
#include "linux/rtx/rtx-channel.h"
#include "linux/rtx/rtx-fair-share.h"
#include "linux/rtx/rtx-server-internal.h"

const char *asym_rtxd_refusal_text(enum asym_rtxd_refusal refusal)
{
    static const char *const texts[] = {
        [ASYM_RTXD_REFUSED_FULL] = "its user, its process or asymd has no place left",
        [ASYM_RTXD_REFUSED_YIELDS] = "its user had the most places, and another user needed one",
        [ASYM_RTXD_REFUSED_BUSY] = "asymd is busy with other connections",
        [ASYM_RTXD_REFUSED_NO_FD] = "asymd has no descriptor or memory left for it",
        [ASYM_RTXD_REFUSED_SILENT] = "it connected and wrote no header in time",
        [ASYM_RTXD_REFUSED_GARBAGE] = "it sent data, or its header is invalid",
        [ASYM_RTXD_REFUSED_VERSION] = "it uses a later version of the protocol",
        [ASYM_RTXD_REFUSED_NAMESPACE] = "it is in another PID namespace, where its threads have other IDs",
        [ASYM_RTXD_REFUSED_OTHER] = "the process that connected has ended, and another user's process has its PID",
        [ASYM_RTXD_REFUSED_HUNG] = "a descriptor that its user has passed takes too long to close",
        [ASYM_RTXD_REFUSED_NO_ACL] =
            "a close for its user hangs, and asymd cannot keep the user out by an ACL of the socket",
    };
    _Static_assert(ASYM_LENGTH(texts) == ASYM_RTXD_N_REFUSALS, "one each");
    return texts[refusal];
}

const char *asym_rtxd_refused_name(pid_t pid, uid_t uid, char ret[ASYM_RTXD_REFUSED_NAME])
{
    if (pid > 0)
        snprintf(ret, ASYM_RTXD_REFUSED_NAME, "process %d of user %u", (int)pid, (unsigned)uid);
    else
        snprintf(ret, ASYM_RTXD_REFUSED_NAME, "a program of user %u", (unsigned)uid);
    return ret;
}

static bool is_polled(enum asym_rtxd_client_polling polling)
{
    return polling == ASYM_RTXD_POLLED || polling == ASYM_RTXD_POLLED_AGAIN;
}

/*
 * asymd never reads the eventfd: its count belongs to the program. With EPOLLET every write wakes asymd all the same. If the
 * count is full, write(2) fails in the program. Asynchronous I/O of the program (IOCB_FLAG_RESFD) can add one more, and the
 * kernel reports such a count as EPOLLERR whatever the events are: EPOLLET lets it report that once, and not for ever.
 */
static void set_polling(struct asym_rtxd_server *s, struct asym_rtxd_client *c, enum asym_rtxd_client_polling polling)
{
    struct epoll_event event = {.events = (is_polled(polling) ? EPOLLIN : 0) | EPOLLET, .data.ptr = c};
    if (is_polled(c->polling) != is_polled(polling))
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->event, &event);
    c->polling = polling;
}

static void note_event(struct asym_rtxd_client *c)
{
    if (c->polling == ASYM_RTXD_POLLED)
        c->wakeup = ASYM_RTXD_WOKEN_BY_PROGRAM;
    else if (c->polling == ASYM_RTXD_POLLED_AGAIN)
        c->wakeup = ASYM_RTXD_WOKEN_BY_ASYMD;
}

/* The count stays one below the limit: the next vain wakeup throttles the client again, unless it reports a phase before. */
static void throttle(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    set_polling(s, c, ASYM_RTXD_THROTTLED);
    c->n_vain_wakeups = ASYM_RTXD_MAX_VAIN_WAKEUPS - 1;
}

static void note_vain_wakeup(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    if (c->wakeup == ASYM_RTXD_WOKEN_BY_PROGRAM && ++c->n_vain_wakeups >= ASYM_RTXD_MAX_VAIN_WAKEUPS)
        throttle(s, c);
}

static void end_wakeup(struct asym_rtxd_client *c)
{
    if (c->wakeup == ASYM_RTXD_WOKEN_BY_ASYMD && c->polling == ASYM_RTXD_POLLED_AGAIN)
        c->polling = ASYM_RTXD_POLLED;
    c->wakeup = ASYM_RTXD_NOT_WOKEN;
}

/* Unused entries take no memory: the kernel allocates pages of so large an array at the first write. */
static int reserve(struct asym_rtxd_client *c)
{
    c->page_state.readings = calloc(c->layout.n_slots, sizeof *c->page_state.readings);
    c->said = calloc(c->layout.n_slots, sizeof *c->said);
    return c->page_state.readings && c->said ? 0 : -ENOMEM;
}

/* The library writes the header before it wakes asymd. A wakeup without a header is in vain. */
static void read_header(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    int r = asym_rtxd_read_header(s, c);
    if (r == 0)
        r = reserve(c);
    if (r == 0)
        c->state = ASYM_RTXD_CLIENT_VALID;
    if (r == -ENOMEM)
        asym_rtxd_drop(s, c, ASYM_RTXD_REFUSED_NO_FD);
    else if (r < 0 && r != -EAGAIN)
        asym_rtxd_drop(s, c, r == -EPROTONOSUPPORT ? ASYM_RTXD_REFUSED_VERSION : ASYM_RTXD_REFUSED_GARBAGE);
    if (r == 0) {
        c->n_vain_wakeups = 0;
        return;
    }
    note_vain_wakeup(s, c);
    end_wakeup(c);
}

static struct asym_rtxd_client *find(const struct asym_rtxd_server *s, uint32_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i]->id == id)
            return s->clients[i];
    return NULL;
}

/* The helper handles untrusted connections, so asymd checks its reports. Returns whether the report is valid. */
static bool take_report(struct asym_rtxd_server *s, const struct asym_rtxd_report *r, asym_usec now)
{
    struct asym_rtxd_client *c = find(s, r->id);
    switch (r->kind) {
    case ASYM_RTXD_REPORT_CAME:
        if (c || r->id == 0 || r->pid <= 0)
            return false;
        asym_rtxd_admit(s, r, now);
        return true;
    case ASYM_RTXD_REPORT_GONE:
        if (c)
            asym_rtxd_end(s, c);
        return true;
    case ASYM_RTXD_REPORT_BREACH:
        if (c && c->state != ASYM_RTXD_CLIENT_ENDED)
            asym_rtxd_drop(s, c, ASYM_RTXD_REFUSED_GARBAGE);
        return true;
    case ASYM_RTXD_REPORT_FOREIGN:
        asym_rtxd_refuse(s, ASYM_RTXD_REFUSED_NAMESPACE, 0, r->uid);
        return true;
    case ASYM_RTXD_REPORT_HUNG:
        asym_rtxd_refuse(s, asym_rtxd_bar(s, r->uid) < 0 ? ASYM_RTXD_REFUSED_NO_ACL : ASYM_RTXD_REFUSED_HUNG, 0,
                         r->uid);
        return true;
    case ASYM_RTXD_REPORT_FREED:
        asym_rtxd_unbar(s, r->uid);
        return true;
    case ASYM_RTXD_REPORT_ALIVE:
        if (r->id == s->ping)
            s->silent_calls = 0;
        s->use = (struct asym_rtxd_helper_use){.cpu = r->cpu_usec, .turned_away = r->turned_away};
        return true;
    default:
        return false;
    }
}

void asym_rtxd_server_receive(struct asym_rtxd_server *s, asym_usec now)
{
    for (int i = 0; i < ASYM_RTXD_MAX_SERVED && s->link->fd(s->link) >= 0; i++) {
        struct asym_rtxd_report report = {0};
        const ssize_t n = s->link->report(s->link, &report);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            asym_rtxd_lose_helper(s, now, "it has ended");
            return;
        }
        if (n != (ssize_t)sizeof report || !take_report(s, &report, now)) {
            asym_rtxd_lose_helper(s, now, "it sent an invalid report");
            return;
        }
    }
}

static size_t share_of_each(const struct asym_rtxd_server *s)
{
    return ASYM_RTXD_MAX_READ / ASYM_MAX(asym_rtxd_server_count(s), (size_t)1);
}

/*
 * sample_client() samples a deferred client again as soon as it has CPU time. A throttled client stays throttled: housekeeping
 * polls it again within a second, and asymd samples it then if the count of its eventfd is above 0.
 */
static bool defer(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    if (c->polling == ASYM_RTXD_THROTTLED)
        c->again_at = 0;
    else
        set_polling(s, c, ASYM_RTXD_DEFERRED);
    return false;
}

static void note_change(struct asym_rtxd_client *c)
{
    c->sample = ASYM_RTXD_PHASE_CHANGED;
    c->unanswered = true;
    c->n_vain_wakeups = 0;
}

static bool is_due(const struct asym_rtxd_client *c, asym_usec now)
{
    return c->wakeup != ASYM_RTXD_NOT_WOKEN || c->polling == ASYM_RTXD_DEFERRED ||
           (c->again_at > 0 && now >= c->again_at);
}

/*
 * Sample a program that has woken asymd now, and once more after its notify_min: the library does not report changes within
 * that time.
 */
static bool sample_client(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most, asym_usec now)
{
    c->sample = ASYM_RTXD_NOT_SAMPLED;
    if (c->wakeup != ASYM_RTXD_NOT_WOKEN && c->state == ASYM_RTXD_CLIENT_WITHOUT_HEADER)
        read_header(s, c);
    if (c->state != ASYM_RTXD_CLIENT_VALID || !is_due(c, now))
        return false;
    /* To defer the client at the wakeup that polling again has caused would repeat without end. */
    if (c->polling != ASYM_RTXD_POLLED_AGAIN && !asym_rtxd_has_cpu_time(s, c))
        return defer(s, c);
    c->sample = ASYM_RTXD_NO_REPORT;
    const bool changed = asym_rtxd_phase(s->copy, &c->layout, asym_rtxd_copy_page(s, c, most)) != c->page_state.phase;
    if (changed && !asym_rtxd_may_answer(s, c, now))
        return defer(s, c);
    if (changed)
        note_change(c);
    else
        note_vain_wakeup(s, c);
    c->again_at = c->wakeup != ASYM_RTXD_NOT_WOKEN ? now + c->layout.notify_min : 0;
    end_wakeup(c);
    if (c->polling == ASYM_RTXD_DEFERRED)
        set_polling(s, c, ASYM_RTXD_POLLED_AGAIN);
    return changed;
}

bool asym_rtxd_server_serve(struct asym_rtxd_server *s, asym_usec now)
{
    struct epoll_event events[ASYM_RTXD_MAX_SERVED];
    bool program_reports = false;
    asym_rtxd_settle(s, now);
    int n = epoll_wait(s->epoll, events, ASYM_LENGTH(events), 0);
    for (int i = 0; i < n; i++) {
        struct asym_rtxd_client *c = events[i].data.ptr;
        if (c)
            note_event(c);
    }
    /* Only now: reports may free clients that the events above point to. */
    asym_rtxd_server_receive(s, now);
    const size_t most = share_of_each(s);
    for (size_t i = 0; i < s->n; i++)
        program_reports |= sample_client(s, s->clients[i], most, now);
    /* Before the test of the reserve: a freed client leaves its CPU time or its debt there. */
    asym_rtxd_sweep(s);
    s->gone_reported = s->gone && (s->reserve >= 0 || s->ends++ < ASYM_RTXD_MAX_ENDS);
    s->gone = false;
    return program_reports || s->gone_reported;
}

void asym_rtxd_server_housekeeping(struct asym_rtxd_server *s, asym_usec now)
{
    asym_rtxd_server_receive(s, now);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtxd_client *c = s->clients[i];
        if (c->state == ASYM_RTXD_CLIENT_WITHOUT_HEADER && now - c->came >= ASYM_RTXD_FILL_WITHIN)
            asym_rtxd_drop(s, c, ASYM_RTXD_REFUSED_SILENT);
        if (c->polling == ASYM_RTXD_THROTTLED)
            set_polling(s, c, ASYM_RTXD_POLLED_AGAIN);
    }
    asym_rtxd_sweep(s);
    /* The orders of this sweep may show that the helper has ended. */
    asym_rtxd_check_helper(s, now);
    asym_rtxd_sweep(s);
    asym_rtxd_update_helper(s, now);
    asym_rtxd_settle(s, now);
    s->taken = s->ends = 0;
    s->n_takers = 0;
}

size_t asym_rtxd_server_count(const struct asym_rtxd_server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->clients[i]->state == ASYM_RTXD_CLIENT_VALID;
    return n;
}

/* A change that a full snapshot has contained is not new in the snapshots that refresh it. */
static void clear_changed(struct asym_rtxd_client *c)
{
    for (size_t i = 0; i < c->n_said; i++)
        c->said[i].changed = false;
}

static void read_page(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most, asym_usec now, unsigned how)
{
    const size_t used = asym_rtxd_copy_page(s, c, most);
    c->n_said = asym_rtxd_read(s->copy, &c->layout, used, now, s->config.spin_notify, how, &c->page_state, c->said);
    c->said_at = now;
}

static size_t ask(struct asym_rtxd_provider *provider, asym_usec now, unsigned how,
                  const struct asym_rtxd_program_report **ret_reports)
{
    struct asym_rtxd_server *s = (struct asym_rtxd_server *)(void *)provider;
    const size_t most = share_of_each(s);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtxd_client *c = s->clients[i];
        if (c->state != ASYM_RTXD_CLIENT_VALID)
            continue;
        if (!(how & ASYM_ASK_REFRESH) || c->unanswered)
            read_page(s, c, most, now, how);
        else if (c->full_answer)
            clear_changed(c);
        c->full_answer = !(how & ASYM_ASK_REFRESH);
        c->unanswered &= !(how & ASYM_ASK_FINAL);
        s->program_reports[n++] = (struct asym_rtxd_program_report){
            .pid = c->pid, .start = c->start, .at = c->said_at, .threads = c->said, .n = c->n_said};
    }
    *ret_reports = s->program_reports;
    return n;
}

/* A helper that does not start now may start later: report it and go on. */
static int set_up(struct asym_rtxd_server *s, const struct asym_rtxd_server_config *config, struct asym_error *err)
{
    struct asym_error why = {""};
    const int n = snprintf(s->path, sizeof s->path, "%s/rtx", config->dir);
    if (n < 0 || (size_t)n >= sizeof s->path) {
        s->path[0] = '\0';
        return asym_fail(err, -ENAMETOOLONG, "%s/rtx: %s", config->dir, strerror(ENAMETOOLONG));
    }
    s->copy = malloc(ASYM_RTXD_PAGE_SIZE);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!s->copy || s->epoll < 0 || !s->link)
        return asym_fail(err, -ENOMEM, "no memory for the RTX server");
    if (asym_rtxd_start_helper(s, config->now, &why) < 0 && config->lost)
        config->lost(config->ctx, why.text);
    return 0;
}

int asym_rtxd_server_open(const struct asym_rtxd_server_config *config, struct asym_rtxd_server **ret,
                          struct asym_error *err)
{
    struct asym_rtxd_server *s = calloc(1, sizeof *s);
    if (!s)
        return asym_fail(err, -ENOMEM, "no memory for the RTX server");
    s->provider.ask = ask;
    s->config = *config;
    s->epoll = -1;
    s->reserve = ASYM_RTXD_SAVED_MAX;
    s->settled = config->now;
    s->link = config->link ? config->link : asym_rtxd_link_new(config->helper);
    int r = set_up(s, config, err);
    if (r < 0) {
        asym_rtxd_server_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

/*
 * Eventfds that no helper holds stay open until this process ends: asymd must not drop the last reference to a file that a
 * program also holds.
 */
void asym_rtxd_server_close(struct asym_rtxd_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        asym_rtxd_end(s, s->clients[i]);
    asym_rtxd_sweep(s);
    if (s->link)
        s->link->close(s->link);
    unlink(s->path);
    asym_close_p(&s->epoll);
    free(s->copy);
    free(s);
}

int asym_rtxd_server_fd(const struct asym_rtxd_server *s)
{
    return s->epoll;
}

void asym_rtxd_server_set(struct asym_rtxd_server *s, asym_usec spin_notify, double cpu_budget)
{
    s->config.spin_notify = spin_notify;
    s->config.cpu_budget = cpu_budget;
}

struct asym_rtxd_provider *asym_rtxd_server_provider(struct asym_rtxd_server *s)
{
    return &s->provider;
}
