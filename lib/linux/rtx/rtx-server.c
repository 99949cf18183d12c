/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx/rtx-server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/rtx/rtx-server-internal.h"

const char *asym_rtxd_refusal_text(enum asym_rtxd_refusal refusal)
{
    static const char *const texts[] = {
        [ASYM_RTXD_REFUSED_FULL] = "its user, its process or asymd has no place left",
        [ASYM_RTXD_REFUSED_YIELDS] = "its user had the most places, and another user needed one",
        [ASYM_RTXD_REFUSED_BUSY] = "asymd is busy with other programs",
        [ASYM_RTXD_REFUSED_NO_FD] = "asymd has no descriptor, inotify watch or memory left for it",
        [ASYM_RTXD_REFUSED_FILE] =
            "its file is no regular one, is another user's, has another mode or two names, or is too long",
        [ASYM_RTXD_REFUSED_GARBAGE] = "its header is invalid",
        [ASYM_RTXD_REFUSED_VERSION] = "it uses a later version of the protocol",
        [ASYM_RTXD_REFUSED_OTHER] =
            "the process with this number belongs to another user, acts for one, or is not dumpable",
    };
    _Static_assert(ASYM_LENGTH(texts) == ASYM_RTXD_N_REFUSALS, "one each");
    return texts[refusal];
}

/* The count stays one below the limit: the next vain wakeup throttles the client again, unless it reports a phase before. */
static void throttle(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    asym_rtxd_hear(s, c, ASYM_RTXD_THROTTLED);
    c->n_vain_wakeups = ASYM_RTXD_MAX_VAIN_WAKEUPS - 1;
}

static void take_client_event(struct asym_rtxd_server *s, struct asym_rtxd_client *c, uint32_t events)
{
    if (events & (IN_CLOSE_WRITE | IN_IGNORED))
        asym_rtxd_end(s, c);
    else if (events & IN_MODIFY && ++c->n_wakeups >= ASYM_RTXD_MAX_WAKEUPS && c->hearing == ASYM_RTXD_HEARD)
        throttle(s, c);
}

/* Without a name it is an event of the directory itself. */
static void take_announcement(struct asym_rtxd_server *s, struct asym_rtxd_user *user, const char *name, asym_usec now)
{
    if (user->n_announced >= ASYM_RTXD_MAX_ANNOUNCED)
        return;
    if (++user->n_announced == ASYM_RTXD_MAX_ANNOUNCED)
        asym_rtxd_heed_user(s, user, false);
    if (name)
        asym_rtxd_admit(s, user, name, now);
}

static void take_event(struct asym_rtxd_server *s, const struct inotify_event *event, asym_usec now)
{
    if (event->mask & IN_Q_OVERFLOW) {
        /* Each program may have woken asymd by an event that was lost, by another's fault. Announcements are repeated. */
        for (size_t i = 0; i < s->n; i++)
            s->clients[i]->again_at = now;
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i]->watch == event->wd) {
            take_client_event(s, s->clients[i], event->mask);
            return;
        }
    for (size_t i = 0; i < s->n_users; i++)
        if (s->users[i].watch == event->wd) {
            take_announcement(s, &s->users[i], event->len > 0 ? event->name : NULL, now);
            return;
        }
}

void asym_rtxd_server_receive(struct asym_rtxd_server *s, asym_usec now)
{
    _Alignas(struct inotify_event) char text[4096];
    for (int k = 0; k < ASYM_RTXD_MAX_READS; k++) {
        const ssize_t n = read(s->inotify, text, sizeof text);
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const void *)(text + at);
            take_event(s, event, now);
            at += (ssize_t)(sizeof *event + event->len);
        }
        if (n <= (ssize_t)(sizeof text / 2))
            return;
    }
}

static size_t share_of_each(const struct asym_rtxd_server *s)
{
    return ASYM_RTXD_MAX_READ / ASYM_MAX(asym_rtxd_server_count(s), (size_t)1);
}

/*
 * sample_client() samples a deferred client again as soon as it has CPU time. A throttled client stays throttled: housekeeping
 * hears it again within a second, and asymd samples it then.
 */
static bool defer(struct asym_rtxd_server *s, struct asym_rtxd_client *c)
{
    if (c->hearing == ASYM_RTXD_THROTTLED)
        c->again_at = 0;
    else
        asym_rtxd_hear(s, c, ASYM_RTXD_DEFERRED);
    return false;
}

static bool is_due(const struct asym_rtxd_client *c, asym_usec now)
{
    return c->n_wakeups > 0 || c->hearing == ASYM_RTXD_DEFERRED || (c->again_at > 0 && now >= c->again_at);
}

/* Returns whether its phase has changed. Hear it before the read, so that no change between the two is missed. */
static bool read_phase(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most)
{
    if (c->hearing == ASYM_RTXD_DEFERRED)
        asym_rtxd_hear(s, c, ASYM_RTXD_HEARD);
    const ssize_t used = asym_rtxd_copy_page(s, c, most);
    return used >= 0 && asym_rtxd_phase(s->copy, &c->layout, (size_t)used) != c->page_state.phase;
}

/*
 * Sample a program that has woken asymd now, and once more after its notify_min: the library does not report changes within
 * that time.
 */
static bool sample_client(struct asym_rtxd_server *s, struct asym_rtxd_client *c, size_t most, asym_usec now)
{
    c->sample = ASYM_RTXD_NOT_SAMPLED;
    if (c->ended || !is_due(c, now))
        return false;
    if (!asym_rtxd_has_cpu_time(s, c))
        return defer(s, c);
    c->sample = ASYM_RTXD_NO_REPORT;
    const bool changed = read_phase(s, c, most);
    if (c->ended)
        return false;
    if (changed && !asym_rtxd_may_answer(s, c, now))
        return defer(s, c);
    if (changed) {
        c->sample = ASYM_RTXD_PHASE_CHANGED;
        c->unanswered = true;
        c->n_vain_wakeups = 0;
    } else if (c->n_wakeups > 0 && ++c->n_vain_wakeups >= ASYM_RTXD_MAX_VAIN_WAKEUPS)
        throttle(s, c);
    c->again_at = c->n_wakeups > 0 ? now + c->layout.notify_min : 0;
    c->n_wakeups = 0;
    return changed;
}

bool asym_rtxd_server_serve(struct asym_rtxd_server *s, asym_usec now)
{
    bool program_reports = false;
    asym_rtxd_settle(s, now);
    const size_t most = share_of_each(s);
    for (size_t i = 0; i < s->n; i++)
        program_reports |= sample_client(s, s->clients[i], most, now);
    /* Before the test of the reserve: a freed client leaves its CPU time or its debt there. */
    asym_rtxd_sweep(s);
    s->gone_reported = s->gone && (s->reserve >= 0 || s->ends++ < ASYM_RTXD_MAX_ENDS);
    s->gone = false;
    return program_reports || s->gone_reported;
}

/* A child that has not called exec may keep the file open after the end of the process. */
static void keep_client(struct asym_rtxd_server *s, struct asym_rtxd_client *c, asym_usec now)
{
    if (!asym_rtxd_is_of_user(c) || (kill(c->pid, 0) < 0 && errno == ESRCH))
        asym_rtxd_end(s, c);
    if (c->hearing != ASYM_RTXD_THROTTLED)
        return;
    asym_rtxd_hear(s, c, ASYM_RTXD_HEARD);
    c->n_wakeups = 0;
    c->again_at = now;
}

static void keep_users(struct asym_rtxd_server *s)
{
    for (size_t i = 0; i < s->n_users; i++) {
        if (s->users[i].n_announced >= ASYM_RTXD_MAX_ANNOUNCED)
            asym_rtxd_heed_user(s, &s->users[i], true);
        s->users[i].n_announced = s->users[i].taken = 0;
    }
    /* A process may change its user. */
    if (++s->n_rounds % ASYM_RTXD_MEET_AGAIN == 0)
        memset(s->met, 0, sizeof s->met);
    s->n_met = 0;
}

void asym_rtxd_server_housekeeping(struct asym_rtxd_server *s, asym_usec now)
{
    asym_rtxd_server_receive(s, now);
    for (size_t i = 0; i < s->n; i++)
        keep_client(s, s->clients[i], now);
    asym_rtxd_sweep(s);
    keep_users(s);
    asym_rtxd_settle(s, now);
    s->taken = s->ends = 0;
}

size_t asym_rtxd_server_count(const struct asym_rtxd_server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += !s->clients[i]->ended;
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
    const ssize_t used = asym_rtxd_copy_page(s, c, most);
    if (used < 0) {
        clear_changed(c);
        return;
    }
    c->n_said = asym_rtxd_read(s->copy, &c->layout, (size_t)used, now, s->config.spin_notify, how, &c->page_state,
                               c->said);
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
        if (!c->ended && (!(how & ASYM_ASK_REFRESH) || c->unanswered))
            read_page(s, c, most, now, how);
        else if (c->full_answer)
            clear_changed(c);
        if (c->ended)
            continue;
        c->full_answer = !(how & ASYM_ASK_REFRESH);
        c->unanswered &= !(how & ASYM_ASK_FINAL);
        s->program_reports[n++] = (struct asym_rtxd_program_report){
            .pid = c->pid, .start = c->start, .at = c->said_at, .threads = c->said, .n = c->n_said};
    }
    *ret_reports = s->program_reports;
    return n;
}

int asym_rtxd_server_open(const struct asym_rtxd_server_config *config, struct asym_rtxd_server **ret,
                          struct asym_error *err)
{
    struct asym_rtxd_server *s = calloc(1, sizeof *s);
    if (!s)
        return asym_fail(err, -ENOMEM, "no memory for the RTX server");
    s->provider = (struct asym_rtxd_provider){.ask = ask, .meet = asym_rtxd_meet};
    s->config = *config;
    s->dir = s->inotify = s->slot = s->entry = -1;
    s->reserve = ASYM_RTXD_SAVED_MAX;
    s->settled = config->now;
    s->copy = malloc(ASYM_RTXD_PAGE_SIZE);
    int r = s->copy ? asym_rtxd_directory_open(s, config->dir, err)
                    : asym_fail(err, -ENOMEM, "no memory for the RTX server");
    if (r < 0) {
        asym_rtxd_server_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

void asym_rtxd_server_close(struct asym_rtxd_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        asym_rtxd_end(s, s->clients[i]);
    asym_rtxd_sweep(s);
    asym_rtxd_directory_close(s);
    free(s->copy);
    free(s);
}

bool asym_rtxd_server_is_for_all(const struct asym_rtxd_server *s)
{
    return s->for_all;
}

int asym_rtxd_server_fd(const struct asym_rtxd_server *s)
{
    return s->inotify;
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
