/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/rtx.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/prompt.h"
#include "linux/procfs.h"
#include "linux/rtx-server.h"
#include "linux/told.h"

/*
 * After something was served nothing is for this long, whoever wakes us and however often; then the pages are read once more,
 * as a program does not tell of what comes within this time of what it has told before (notify_min).
 */
#define REST ASYM_MSEC

/* The same where the CPU budget is spent. */
#define REST_WHEN_SPENT (10 * ASYM_MSEC)

struct asym_rtx {
    struct asym_run *run;
    struct asym_rtx_server *server;
    struct asym_source *source;
    sd_event_source *io, *timer;
    int (*turn)(void *userdata);
    void *userdata;
    struct asym_prompt prompt;
    bool said[ASYM_RTX_N_REFUSALS]; /* each once */
    bool is_realtime, realtime_failed;
};

static void on_refused(void *ctx, enum asym_rtx_refusal refusal, pid_t pid)
{
    struct asym_rtx *rtx = ctx;
    asym_log_say(&rtx->run->log, rtx->said[refusal] ? LOG_DEBUG : LOG_NOTICE,
                 "process %d that wants to say what its threads do is not heard: %s%s", (int)pid,
                 asym_rtx_refusal_text(refusal), rtx->said[refusal] ? "" : " (said once)");
    rtx->said[refusal] = true;
}

int asym_rtx_new(struct asym_run *run, struct asym_source *inner, struct asym_rtx **ret_rtx, struct asym_error *err)
{
    struct asym_rtx *rtx = calloc(1, sizeof *rtx);
    if (!rtx)
        return asym_fail(err, -ENOMEM, "no memory");
    rtx->run = run;
    const struct asym_rtx_server_config config = {
        .dir = run->settings->daemon.state_dir,
        .spin_notify = run->settings->rtx.spin_notify,
        .refused = on_refused,
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
    asym_prompt_init(&rtx->prompt, asym_run_now());
    *ret_rtx = rtx;
    return 0;
}

void asym_rtx_free(struct asym_rtx *rtx)
{
    if (!rtx)
        return;
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

/* If what was planned for is no longer so: take a turn. Returns how long to rest; 0: nothing was to be done; -errno. */
static int64_t react(struct asym_rtx *rtx, asym_usec now)
{
    if (!asym_told_source_is_behind(rtx->source))
        return 0;
    if (!asym_prompt_may(&rtx->prompt, rtx->run->settings->daemon.cpu_budget, now))
        return (int64_t)REST_WHEN_SPENT;
    const asym_usec before = cpu_time();
    asym_told_source_hurry(rtx->source);
    int r = rtx->turn(rtx->userdata);
    asym_prompt_spend(&rtx->prompt, cpu_time() - before);
    return r < 0 ? r : (int64_t)REST;
}

static int rest(struct asym_rtx *rtx, asym_usec until)
{
    int r = sd_event_source_set_enabled(rtx->io, SD_EVENT_OFF);
    if (r >= 0)
        r = sd_event_source_set_time(rtx->timer, until);
    return r < 0 ? r : sd_event_source_set_enabled(rtx->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *io, int fd, uint32_t events, void *userdata)
{
    struct asym_rtx *rtx = userdata;
    (void)io;
    (void)fd;
    (void)events;
    const asym_usec now = asym_run_now();
    asym_rtx_server_serve(rtx->server, now);
    mind_priority(rtx);
    const int64_t pause = react(rtx, now);
    return pause < 0 ? (int)pause : rest(rtx, now + (pause > 0 ? (asym_usec)pause : REST));
}

static int on_rested(sd_event_source *timer, uint64_t usec, void *userdata)
{
    struct asym_rtx *rtx = userdata;
    (void)timer;
    (void)usec;
    const asym_usec now = asym_run_now();
    asym_rtx_server_serve(rtx->server, now);
    mind_priority(rtx);
    const int64_t pause = react(rtx, now);
    if (pause != 0)
        return pause < 0 ? (int)pause : rest(rtx, now + (asym_usec)pause);
    return sd_event_source_set_enabled(rtx->io, SD_EVENT_ON);
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
    asym_rtx_server_set_spin_notify(rtx->server, rtx->run->settings->rtx.spin_notify);
    asym_rtx_server_tend(rtx->server, now);
    mind_priority(rtx);
}
