/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/rtx-server-internal.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/macro.h"

const char *asym_rtx_refusal_text(enum asym_rtx_refusal refusal)
{
    static const char *const texts[] = {
        [ASYM_RTX_REFUSED_FULL] = "too many programs speak already",
        [ASYM_RTX_REFUSED_YIELDS] = "its user had the most places, and another user had too few",
        [ASYM_RTX_REFUSED_BUSY] = "there were too many connections of late",
        [ASYM_RTX_REFUSED_NO_FD] = "no descriptor or memory is left for it",
        [ASYM_RTX_REFUSED_SILENT] = "it has connected and written no header",
        [ASYM_RTX_REFUSED_GARBAGE] = "it has sent something, or its header makes no sense",
        [ASYM_RTX_REFUSED_VERSION] = "it speaks a later version of the protocol",
        [ASYM_RTX_REFUSED_NAMESPACE] = "it is in a PID namespace of its own, and calls its threads by other numbers",
        [ASYM_RTX_REFUSED_OTHER] = "the process that has connected has ended, and another user's has its number",
        [ASYM_RTX_REFUSED_HUNG] = "to close what its user has passed takes too long",
    };
    _Static_assert(ASYM_LENGTH(texts) == ASYM_RTX_N_REFUSALS, "one each");
    return texts[refusal];
}

void asym_rtx_refuse(const struct asym_rtx_server *s, enum asym_rtx_refusal refusal, pid_t pid, uid_t uid)
{
    if (s->config.refused)
        s->config.refused(s->config.ctx, refusal, pid, uid);
}

/* The program has the eventfd, too: what is given away here would go on waking. */
static void free_client(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->event, NULL);
    asym_rtx_close_connection(s, c->id, c->event);
    asym_rtx_retire(s, c);
    close(c->memfd);
    free(c->memory.readings);
    free(c->said);
    free(c);
}

void asym_rtx_sweep(struct asym_rtx_server *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->clients[i]->over)
            free_client(s, s->clients[i]);
        else
            s->clients[kept++] = s->clients[i];
    }
    s->n = kept;
}

/* A program that goes in a serial phase has ended it. */
void asym_rtx_end(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    s->gone |= c->memory.phase != 0;
    c->over = true;
}

void asym_rtx_drop(struct asym_rtx_server *s, struct asym_rtx_client *c, enum asym_rtx_refusal refusal)
{
    asym_rtx_refuse(s, refusal, c->pid, c->uid);
    asym_rtx_end(s, c);
}

/*
 * The eventfd is never read: its count is the program's. Watched for edges it wakes at every write all the same, and when it
 * is full its writer finds that out.
 */
static void set_watched(struct asym_rtx_server *s, struct asym_rtx_client *c, bool watched)
{
    struct epoll_event event = {.events = watched ? EPOLLIN | EPOLLET : 0, .data.ptr = c};
    if (c->watched != watched)
        epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->event, &event);
    c->watched = watched;
}

static void watch(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    if (c->watched || c->muted || c->put_off)
        return;
    set_watched(s, c, true);
    /* As it is never read, it wakes now for what was written long ago. */
    c->excused = true;
}

static void unwatch(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    set_watched(s, c, false);
}

/* One that was muted is so again after one more in vain, as long as it has told of nothing. */
static void mute(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    unwatch(s, c);
    c->muted = true;
    c->in_vain = ASYM_RTX_MAX_IN_VAIN - 1;
}

/* Being watched again wakes once, for which the program can do nothing. */
static void note_vain_wakeup(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    if (c->woke && !c->excused && ++c->in_vain >= ASYM_RTX_MAX_IN_VAIN)
        mute(s, c);
}

/* What is not used is not there: the kernel gives memory of this size when it is written to. */
static int reserve(struct asym_rtx_client *c)
{
    c->memory.readings = calloc(c->layout.n_slots, sizeof *c->memory.readings);
    c->said = calloc(c->layout.n_slots, sizeof *c->said);
    return c->memory.readings && c->said ? 0 : -ENOMEM;
}

/* The library writes the header before it wakes asymd: a program that wakes without one does so in vain. */
static void read_header(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    int r = asym_rtx_read_header(s, c);
    if (r == 0)
        r = reserve(c);
    c->speaks = r == 0;
    if (r == -ENOMEM)
        asym_rtx_drop(s, c, ASYM_RTX_REFUSED_NO_FD);
    else if (r < 0 && r != -EAGAIN)
        asym_rtx_drop(s, c, r == -EPROTONOSUPPORT ? ASYM_RTX_REFUSED_VERSION : ASYM_RTX_REFUSED_GARBAGE);
    if (r == 0) {
        c->in_vain = 0;
        return;
    }
    note_vain_wakeup(s, c);
    c->excused = c->woke = false;
}

static struct asym_rtx_client *find(const struct asym_rtx_server *s, uint32_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i]->id == id)
            return s->clients[i];
    return NULL;
}

/* The helper meets strangers, and is believed as little as need be. Whether the report makes sense. */
static bool take_report(struct asym_rtx_server *s, const struct asym_rtx_report *r, asym_usec now)
{
    struct asym_rtx_client *c = find(s, r->id);
    switch (r->kind) {
    case ASYM_RTX_REPORT_CAME:
        if (c || r->id == 0 || r->pid <= 0)
            return false;
        asym_rtx_admit(s, r, now);
        return true;
    case ASYM_RTX_REPORT_GONE:
        if (c)
            asym_rtx_end(s, c);
        return true;
    case ASYM_RTX_REPORT_BREACH:
        if (c && !c->over)
            asym_rtx_drop(s, c, ASYM_RTX_REFUSED_GARBAGE);
        return true;
    case ASYM_RTX_REPORT_FOREIGN:
        asym_rtx_refuse(s, ASYM_RTX_REFUSED_NAMESPACE, 0, r->uid);
        return true;
    case ASYM_RTX_REPORT_HUNG:
        asym_rtx_refuse(s, ASYM_RTX_REFUSED_HUNG, 0, r->uid);
        return true;
    case ASYM_RTX_REPORT_ALIVE:
        if (r->id == s->ping)
            s->unheard = 0;
        s->use = (struct asym_rtx_helper_use){.cpu = r->cpu_usec, .turned_away = r->turned_away};
        return true;
    default:
        return false;
    }
}

void asym_rtx_server_hear(struct asym_rtx_server *s, asym_usec now)
{
    for (int i = 0; i < ASYM_RTX_MAX_SERVED && s->link->fd(s->link) >= 0; i++) {
        struct asym_rtx_report report = {0};
        const ssize_t n = s->link->report(s->link, &report);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            asym_rtx_lose_helper(s, now, "it has ended");
            return;
        }
        if (n != (ssize_t)sizeof report || !take_report(s, &report, now)) {
            asym_rtx_lose_helper(s, now, "it reports what makes no sense");
            return;
        }
    }
}

static size_t share_of_each(const struct asym_rtx_server *s)
{
    return ASYM_RTX_MAX_READ / ASYM_MAX(asym_rtx_server_count(s), (size_t)1);
}

/* It is heard again when it may be answered. */
static bool put_off(struct asym_rtx_server *s, struct asym_rtx_client *c)
{
    unwatch(s, c);
    c->put_off = true;
    c->told = false;
    return false;
}

static bool is_again(const struct asym_rtx_client *c, asym_usec now)
{
    return c->again_at > 0 && now >= c->again_at;
}

/*
 * A program that has woken us is looked at now, and once more when its notify_min is over: of what comes within that it does
 * not tell.
 */
static bool look_at(struct asym_rtx_server *s, struct asym_rtx_client *c, size_t most, asym_usec now)
{
    c->told = c->looked = false;
    if (c->over)
        return false;
    if (c->woke && !c->speaks)
        read_header(s, c);
    if (!c->speaks || (!c->woke && !is_again(c, now) && !c->put_off))
        return false;
    /* Being watched again wakes once: were that put off, too, there would be no end to it. */
    if ((c->put_off || !c->excused) && !asym_rtx_is_solvent(s, c))
        return put_off(s, c);
    c->looked = true;
    c->told = asym_rtx_phase(s->copy, &c->layout, asym_rtx_copy_page(s, c, most)) != c->memory.phase;
    if (c->told && !asym_rtx_may_answer(s, c, now))
        return put_off(s, c);
    c->put_off = false;
    c->fresh |= c->told;
    if (c->told)
        c->in_vain = 0;
    else
        note_vain_wakeup(s, c);
    c->excused &= !c->woke;
    c->again_at = c->woke ? now + c->layout.notify_min : 0;
    c->woke = false;
    watch(s, c);
    return c->told;
}

bool asym_rtx_server_serve(struct asym_rtx_server *s, asym_usec now)
{
    struct epoll_event events[ASYM_RTX_MAX_SERVED];
    bool told = false;
    asym_rtx_settle(s, now);
    int n = epoll_wait(s->epoll, events, ASYM_LENGTH(events), 0);
    for (int i = 0; i < n; i++) {
        struct asym_rtx_client *c = events[i].data.ptr;
        if (c)
            c->woke = true;
    }
    /* Reports may free clients, which the events above point to. */
    asym_rtx_server_hear(s, now);
    const size_t most = share_of_each(s);
    for (size_t i = 0; i < s->n; i++)
        told |= look_at(s, s->clients[i], most, now);
    /* With what it leaves behind. */
    asym_rtx_sweep(s);
    s->gone_told = s->gone && (s->pot >= 0 || s->ends++ < ASYM_RTX_MAX_ENDS);
    s->gone = false;
    return told || s->gone_told;
}

void asym_rtx_server_tend(struct asym_rtx_server *s, asym_usec now)
{
    asym_rtx_server_hear(s, now);
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!c->speaks && !c->over && now - c->came >= ASYM_RTX_FILL_WITHIN)
            asym_rtx_drop(s, c, ASYM_RTX_REFUSED_SILENT);
        c->muted = false;
        watch(s, c);
    }
    asym_rtx_sweep(s);
    asym_rtx_mind_helper(s, now);
    asym_rtx_settle(s, now);
    s->taken = s->ends = 0;
    s->n_takers = 0;
}

size_t asym_rtx_server_count(const struct asym_rtx_server *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->clients[i]->speaks;
    return n;
}

/* What has been in a whole snapshot is no news in the ones made of it. */
static void make_old(struct asym_rtx_client *c)
{
    for (size_t i = 0; i < c->n_said; i++)
        c->said[i].news = false;
}

static void read_page(struct asym_rtx_server *s, struct asym_rtx_client *c, size_t most, asym_usec now, unsigned how)
{
    const size_t used = asym_rtx_copy_page(s, c, most);
    c->n_said = asym_rtx_read(s->copy, &c->layout, used, now, s->config.spin_notify, how, &c->memory, c->said);
    c->said_at = now;
}

static size_t ask(struct asym_teller *teller, asym_usec now, unsigned how, const struct asym_told **ret_told)
{
    struct asym_rtx_server *s = (struct asym_rtx_server *)(void *)teller;
    const size_t most = share_of_each(s);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct asym_rtx_client *c = s->clients[i];
        if (!c->speaks)
            continue;
        if (!(how & ASYM_ASK_HURRIED) || c->fresh)
            read_page(s, c, most, now, how);
        else if (c->whole)
            make_old(c);
        c->whole = !(how & ASYM_ASK_HURRIED);
        c->fresh &= !(how & ASYM_ASK_FINAL);
        s->told[n++] = (struct asym_told){
            .pid = c->pid, .start = c->start, .at = c->said_at, .threads = c->said, .n = c->n_said};
    }
    *ret_told = s->told;
    return n;
}

/* Where there is no helper now there may be one later: that is said, and asymd goes on. */
static int set_up(struct asym_rtx_server *s, const struct asym_rtx_server_config *config, struct asym_error *err)
{
    struct asym_error why = {""};
    const int n = snprintf(s->path, sizeof s->path, "%s/rtx", config->dir);
    if (n < 0 || (size_t)n >= sizeof s->path) {
        s->path[0] = '\0';
        return asym_fail(err, -ENAMETOOLONG, "%s/rtx: %s", config->dir, strerror(ENAMETOOLONG));
    }
    s->copy = malloc(ASYM_RTX_PAGE_SIZE);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!s->copy || s->epoll < 0 || !s->link)
        return asym_fail(err, -ENOMEM, "no memory to listen to programs");
    if (asym_rtx_start_helper(s, config->now, &why) < 0 && config->lost)
        config->lost(config->ctx, why.text);
    return 0;
}

int asym_rtx_server_open(const struct asym_rtx_server_config *config, struct asym_rtx_server **ret,
                         struct asym_error *err)
{
    struct asym_rtx_server *s = calloc(1, sizeof *s);
    if (!s)
        return asym_fail(err, -ENOMEM, "no memory to listen to programs");
    s->teller.ask = ask;
    s->config = *config;
    s->epoll = -1;
    s->pot = ASYM_RTX_SAVED_MAX;
    s->settled = config->now;
    s->link = config->link ? config->link : asym_rtx_link_new(config->helper);
    int r = set_up(s, config, err);
    if (r < 0) {
        asym_rtx_server_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

/*
 * What the helper has not taken back is left open, for the end of this process: of a file that a program holds, too, asymd
 * does not drop the last reference.
 */
void asym_rtx_server_close(struct asym_rtx_server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        free_client(s, s->clients[i]);
    if (s->link)
        s->link->close(s->link);
    unlink(s->path);
    asym_close_p(&s->epoll);
    free(s->copy);
    free(s);
}

int asym_rtx_server_fd(const struct asym_rtx_server *s)
{
    return s->epoll;
}

void asym_rtx_server_set(struct asym_rtx_server *s, asym_usec spin_notify, double cpu_budget)
{
    s->config.spin_notify = spin_notify;
    s->config.cpu_budget = cpu_budget;
}

struct asym_teller *asym_rtx_server_teller(struct asym_rtx_server *s)
{
    return &s->teller;
}
