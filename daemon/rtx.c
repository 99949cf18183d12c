/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/rtx.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "daemon/paths.h"
#include "linux/procfs.h"
#include "linux/rtx-server.h"
#include "linux/told.h"

/*
 * After something was served nothing is for this long, whoever wakes us and however often, and however soon a program asks to
 * be looked at once more.
 */
#define REST ASYM_MSEC

struct asym_rtx {
    struct asym_run *run;
    struct asym_rtx_server *server;
    struct asym_source *source;
    sd_event_source *io, *timer;
    int (*turn)(void *userdata);
    void *userdata;
    asym_usec spent; /* CPU time of all reactions so far */
    size_t n_refused[ASYM_RTX_N_REFUSALS], n_lost;
    bool is_realtime, realtime_failed;
};

/* Each reason once, at whatever level: a journal keeps them all, and who is refused decides how often. */
static void on_refused(void *ctx, enum asym_rtx_refusal refusal, pid_t pid, uid_t uid)
{
    struct asym_rtx *rtx = ctx;
    if (rtx->n_refused[refusal]++ == 0)
        asym_log_say(&rtx->run->log, LOG_NOTICE,
                     "process %d of user %d that wants to say what its threads do is not heard: %s (said once)",
                     (int)pid, (int)uid, asym_rtx_refusal_text(refusal));
}

/* Once: a helper that is made to hang again and again is replaced as often. */
static void on_lost(void *ctx, const char *why)
{
    struct asym_rtx *rtx = ctx;
    if (rtx->n_lost++ == 0)
        asym_log_say(&rtx->run->log, LOG_WARNING,
                     "the helper process to which programs say what their threads do: %s; another one is started "
                     "(said once)",
                     why);
}

static void report_refused(const struct asym_rtx *rtx)
{
    for (enum asym_rtx_refusal i = 0; i < ASYM_RTX_N_REFUSALS; i++)
        if (rtx->n_refused[i] > 1)
            asym_log_say(&rtx->run->log, LOG_INFO, "programs were not heard %zu times: %s", rtx->n_refused[i],
                         asym_rtx_refusal_text(i));
    if (rtx->n_lost > 1)
        asym_log_say(&rtx->run->log, LOG_INFO, "the helper process for programs was replaced %zu times", rtx->n_lost);
    if (!rtx->server)
        return;
    const struct asym_rtx_helper_use use = asym_rtx_server_helper_use(rtx->server);
    if (use.turned_away > 0)
        asym_log_say(&rtx->run->log, LOG_INFO,
                     "%" PRIu64
                     " connections were closed at once, as their users connected too often; the helper process "
                     "used %.2f s of CPU time",
                     use.turned_away, (double)use.cpu / ASYM_SEC);
}

int asym_rtx_new(struct asym_run *run, struct asym_source *inner, struct asym_rtx **ret_rtx, struct asym_error *err)
{
    char helper[ASYM_PATH_SIZE];
    struct asym_rtx *rtx = calloc(1, sizeof *rtx);
    if (!rtx)
        return asym_fail(err, -ENOMEM, "no memory");
    rtx->run = run;
    const struct asym_rtx_server_config config = {
        .dir = run->settings->daemon.state_dir,
        .helper = asym_path(ASYM_PATH_HELPER, helper),
        .spin_notify = run->settings->rtx.spin_notify,
        .cpu_budget = run->settings->daemon.cpu_budget,
        .now = asym_run_now(),
        .refused = on_refused,
        .lost = on_lost,
        .ctx = rtx,
    };
    int r = asym_rtx_server_open(&config, &rtx->server, err);
    if (r >= 0) {
        const struct asym_told_config told = {
            .inner = inner,
            .again = asym_procfs_again,
            .teller = asym_rtx_server_teller(rtx->server),
            .now = asym_run_now,
        };
        r = asym_told_source_new(&told, &rtx->source);
        if (r < 0)
            asym_fail(err, r, "no memory");
    }
    if (r < 0) {
        asym_rtx_free(rtx);
        return r;
    }
    *ret_rtx = rtx;
    return 0;
}

void asym_rtx_free(struct asym_rtx *rtx)
{
    if (!rtx)
        return;
    report_refused(rtx);
    sd_event_source_unref(rtx->io);
    sd_event_source_unref(rtx->timer);
    if (rtx->source)
        rtx->source->close(rtx->source);
    asym_rtx_server_close(rtx->server);
    free(rtx);
}

struct asym_source *asym_rtx_source(struct asym_rtx *rtx)
{
    return rtx->source;
}

asym_usec asym_rtx_spent(const struct asym_rtx *rtx)
{
    return rtx ? rtx->spent : 0;
}

size_t asym_rtx_count(const struct asym_rtx *rtx)
{
    return rtx ? asym_rtx_server_count(rtx->server) : 0;
}

static asym_usec cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

/* Only while somebody speaks; children, if there ever were any, do not inherit it. */
static void mind_priority(struct asym_rtx *rtx)
{
    const bool want = rtx->run->settings->rtx.realtime && asym_rtx_server_count(rtx->server) > 0;
    const struct sched_param param = {.sched_priority = want ? 1 : 0};
    if (want == rtx->is_realtime || (want && rtx->realtime_failed))
        return;
    if (sched_setscheduler(0, (want ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &param) == 0) {
        rtx->is_realtime = want;
        return;
    }
    rtx->realtime_failed = true;
    asym_log_say(&rtx->run->log, LOG_NOTICE,
                 "no real-time priority (%s): programs that say what they do are answered later when all CPUs are busy",
                 strerror(errno));
}

static int set_priority(int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    return sched_setscheduler(0, (priority > 0 ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &param) < 0 ? -errno
                                                                                                              : 0;
}

void asym_rtx_look_begins(struct asym_rtx *rtx)
{
    if (rtx && rtx->is_realtime)
        set_priority(0);
}

/* Where it cannot be raised again, the next time that programs are heard tries once more. */
void asym_rtx_look_ends(struct asym_rtx *rtx)
{
    if (rtx && rtx->is_realtime)
        rtx->is_realtime = set_priority(1) == 0;
}

/* Serve what has come, and take a turn if what was planned for is no longer so. 1: it was; 0: nothing was to be done; -errno. */
static int react(struct asym_rtx *rtx)
{
    const asym_usec begun = cpu_time();
    asym_rtx_server_hear(rtx->server, asym_run_now());
    const asym_usec before = cpu_time();
    const bool told = asym_rtx_server_serve(rtx->server, asym_run_now());
    int r = 0;
    mind_priority(rtx);
    if (told) {
        asym_told_source_hurry(rtx->source);
        r = rtx->turn(rtx->userdata);
    }
    /* Whoever wakes us for nothing spends, too. */
    const asym_usec now = cpu_time();
    asym_rtx_server_charge(rtx->server, now - before);
    rtx->spent += now - begun;
    return r < 0 ? r : told;
}

static int wake_at(struct asym_rtx *rtx, asym_usec when)
{
    int r = sd_event_source_set_time(rtx->timer, when);
    return r < 0 ? r : sd_event_source_set_enabled(rtx->timer, SD_EVENT_ONESHOT);
}

/* From the end of what was done: however long that took, as long a time is left to others. */
static int rest(struct asym_rtx *rtx)
{
    int r = sd_event_source_set_enabled(rtx->io, SD_EVENT_OFF);
    return r < 0 ? r : wake_at(rtx, asym_run_now() + REST);
}

/* Whoever was put off, or is to be looked at once more, is not forgotten, though nobody else comes. */
static int rested(struct asym_rtx *rtx)
{
    const asym_usec due = asym_rtx_server_due(rtx->server), soonest = asym_run_now() + REST;
    int r = due > 0 ? wake_at(rtx, ASYM_MAX(due, soonest)) : 0;
    return r < 0 ? r : sd_event_source_set_enabled(rtx->io, SD_EVENT_ON);
}

static int on_io(sd_event_source *io, int fd, uint32_t events, void *userdata)
{
    struct asym_rtx *rtx = userdata;
    (void)io;
    (void)fd;
    (void)events;
    int r = react(rtx);
    return r < 0 ? r : rest(rtx);
}

static int on_rested(sd_event_source *timer, uint64_t usec, void *userdata)
{
    struct asym_rtx *rtx = userdata;
    (void)timer;
    (void)usec;
    const asym_usec due = asym_rtx_server_due(rtx->server);
    /* Serving nobody would be nobody's to pay. */
    int r = due > 0 && due <= asym_run_now() ? react(rtx) : 0;
    if (r != 0)
        return r < 0 ? r : rest(rtx);
    return rested(rtx);
}

int asym_rtx_attach(struct asym_rtx *rtx, sd_event *event, int (*turn)(void *userdata), void *userdata)
{
    rtx->turn = turn;
    rtx->userdata = userdata;
    int r = sd_event_add_io(event, &rtx->io, asym_rtx_server_fd(rtx->server), EPOLLIN, on_io, rtx);
    if (r >= 0)
        r = sd_event_add_time(event, &rtx->timer, CLOCK_MONOTONIC, 0, 1, on_rested, rtx);
    /* Sleepers of the service are woken when it suits; this one when it is due. */
    if (r >= 0)
        r = sd_event_source_set_enabled(rtx->timer, SD_EVENT_OFF);
    return r < 0 ? r : 0;
}

void asym_rtx_tend(struct asym_rtx *rtx, asym_usec now)
{
    asym_rtx_server_set(rtx->server, rtx->run->settings->rtx.spin_notify, rtx->run->settings->daemon.cpu_budget);
    asym_rtx_server_tend(rtx->server, now);
    mind_priority(rtx);
}
