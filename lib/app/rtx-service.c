/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/rtx-service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/settings-setup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "linux/rtx/rtx-server.h"
#include "linux/rtx/rtx-overlay.h"

/*
 * After serving programs asymd serves none for this long, however often programs wake it, and however soon an answer that was
 * deferred is due. There is one exception: if a sample that was due finds no report, asymd serves the next wakeup at once.
 */
#define REST ASYM_MSEC

struct asym_rtxd {
    struct asym_run *run;
    struct asym_rtxd_server *server;
    struct asym_source *source;
    sd_event_source *io, *timer;
    int (*run_cycle)(void *userdata);
    void *userdata;
    asym_usec spent;    /* CPU time of all reactions so far, microseconds */
    asym_usec not_ours; /* the part of the present reaction that others pay */
    size_t n_refused[ASYM_RTXD_N_REFUSALS];
};

/* Logs each reason once: the journal keeps every message, and a refused program decides how often it tries. */
static void on_refused(void *ctx, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    struct asym_rtxd *rtx = ctx;
    if (rtx->n_refused[refusal]++ == 0)
        asym_log_say(&rtx->run->log, LOG_NOTICE,
                     "asymd refuses the reports of process %d of user %u: %s (further refusals for this reason are not "
                     "logged)",
                     (int)pid, (unsigned)uid, asym_rtxd_refusal_text(refusal));
}

static void report_refused(const struct asym_rtxd *rtx)
{
    for (enum asym_rtxd_refusal i = 0; i < ASYM_RTXD_N_REFUSALS; i++)
        if (rtx->n_refused[i] > 1)
            asym_log_say(&rtx->run->log, LOG_INFO, "asymd refused the reports of programs %zu times: %s",
                         rtx->n_refused[i], asym_rtxd_refusal_text(i));
}

int asym_rtxd_new(struct asym_run *run, struct asym_source *inner, struct asym_rtxd **ret_rtx, struct asym_error *err)
{
    struct asym_rtxd *rtx = calloc(1, sizeof *rtx);
    if (!rtx)
        return asym_fail(err, -ENOMEM, "no memory");
    rtx->run = run;
    const struct asym_rtxd_server_config config = {
        .dir = run->settings->daemon.state_dir,
        .spin_notify = run->settings->rtx.spin_notify,
        .cpu_budget = run->settings->daemon.cpu_budget,
        .now = asym_clock_now(),
        .refused = on_refused,
        .ctx = rtx,
    };
    int r = asym_rtxd_server_open(&config, &rtx->server, err);
    if (r >= 0) {
        const struct asym_rtxd_overlay_config program_reports = {
            .inner = inner,
            .provider = asym_rtxd_server_provider(rtx->server),
            .now = asym_clock_now,
        };
        r = asym_rtxd_overlay_new(&program_reports, &rtx->source);
        if (r < 0)
            asym_fail(err, r, "no memory");
    }
    if (r < 0) {
        asym_rtxd_free(rtx);
        return r;
    }
    if (!asym_rtxd_server_is_for_all(rtx->server))
        asym_log_say(&run->log, LOG_INFO,
                     "programs of other users cannot report what their threads do: %s/rtx is no file system of its own",
                     config.dir);
    *ret_rtx = rtx;
    return 0;
}

void asym_rtxd_free(struct asym_rtxd *rtx)
{
    if (!rtx)
        return;
    report_refused(rtx);
    sd_event_source_unref(rtx->io);
    sd_event_source_unref(rtx->timer);
    if (rtx->source)
        rtx->source->close(rtx->source);
    asym_rtxd_server_close(rtx->server);
    free(rtx);
}

struct asym_source *asym_rtxd_source(struct asym_rtxd *rtx)
{
    return rtx->source;
}

void asym_rtxd_exclude(struct asym_rtxd *rtx, asym_usec cpu)
{
    rtx->not_ours += cpu;
}

asym_usec asym_rtxd_spent(const struct asym_rtxd *rtx)
{
    return rtx ? rtx->spent : 0;
}

size_t asym_rtxd_count(const struct asym_rtxd *rtx)
{
    return rtx ? asym_rtxd_server_count(rtx->server) : 0;
}

/* asymd has the priority only while a program reports. */
static void update_priority(struct asym_rtxd *rtx)
{
    const bool wants = rtx->run->settings->rtx.realtime && asym_rtxd_server_count(rtx->server) > 0;
    const int r = asym_prompt_want(&rtx->run->prompt, ASYM_PROMPT_RTX, wants);
    if (r < 0)
        asym_log_say(&rtx->run->log, LOG_NOTICE,
                     "no real-time priority (%s): asymd answers programs that report their threads later when all CPUs "
                     "are busy",
                     strerror(-r));
}

/* Serves the programs, and runs a cycle if a report makes the plan invalid. Returns 1: it ran; 0: it did not; -errno. */
static int react(struct asym_rtxd *rtx)
{
    const asym_usec begun = asym_clock_thread_cpu();
    rtx->not_ours = 0;
    asym_rtxd_server_receive(rtx->server, asym_clock_now());
    const asym_usec before = asym_clock_thread_cpu();
    const bool program_reports = asym_rtxd_server_serve(rtx->server, asym_clock_now());
    int r = 0;
    update_priority(rtx);
    if (program_reports)
        r = rtx->run_cycle(rtx->userdata);
    /* A program that wakes asymd without a report is charged too. */
    const asym_usec now = asym_clock_thread_cpu() - rtx->not_ours;
    asym_rtxd_server_charge(rtx->server, now - before);
    rtx->spent += now - begun;
    return r < 0 ? r : program_reports;
}

static int wake_at(struct asym_rtxd *rtx, asym_usec when)
{
    int r = sd_event_source_set_time(rtx->timer, when);
    return r < 0 ? r : sd_event_source_set_enabled(rtx->timer, SD_EVENT_ONESHOT);
}

/* The pause starts after the reaction: a long reaction must not shorten it. */
static int rest(struct asym_rtxd *rtx)
{
    int r = sd_event_source_set_enabled(rtx->io, SD_EVENT_OFF);
    return r < 0 ? r : wake_at(rtx, asym_clock_now() + REST);
}

/* Re-arms the timer for clients whose answers were deferred. */
static int rested(struct asym_rtxd *rtx)
{
    const asym_usec due = asym_rtxd_server_due(rtx->server), soonest = asym_clock_now() + REST;
    int r = due > 0 ? wake_at(rtx, ASYM_MAX(due, soonest)) : 0;
    return r < 0 ? r : sd_event_source_set_enabled(rtx->io, SD_EVENT_ON);
}

static int on_io(sd_event_source *io, int fd, uint32_t events, void *userdata)
{
    struct asym_rtxd *rtx = userdata;
    int r = react(rtx);
    return r < 0 ? r : rest(rtx);
}

static int on_rested(sd_event_source *timer, uint64_t usec, void *userdata)
{
    struct asym_rtxd *rtx = userdata;
    const asym_usec due = asym_rtxd_server_due(rtx->server);
    /* Without a client that is due, there is no client to charge for the CPU time. */
    int r = due > 0 && due <= asym_clock_now() ? react(rtx) : 0;
    if (r != 0)
        return r < 0 ? r : rest(rtx);
    return rested(rtx);
}

int asym_rtxd_attach(struct asym_rtxd *rtx, sd_event *event, int (*run_cycle)(void *userdata), void *userdata)
{
    rtx->run_cycle = run_cycle;
    rtx->userdata = userdata;
    int r = sd_event_add_io(event, &rtx->io, asym_rtxd_server_fd(rtx->server), EPOLLIN, on_io, rtx);
    if (r >= 0)
        r = sd_event_add_time(event, &rtx->timer, CLOCK_MONOTONIC, 0, 1, on_rested, rtx);
    /* The timer has an accuracy of 1 us: systemd may delay the other timers of the service, but not this one. */
    if (r >= 0)
        r = sd_event_source_set_enabled(rtx->timer, SD_EVENT_OFF);
    if (r >= 0)
        r = asym_prompt_add(&rtx->run->prompt, rtx->io);
    if (r >= 0)
        r = asym_prompt_add(&rtx->run->prompt, rtx->timer);
    return r < 0 ? r : 0;
}

void asym_rtxd_housekeeping(struct asym_rtxd *rtx, asym_usec now)
{
    asym_rtxd_server_set(rtx->server, rtx->run->settings->rtx.spin_notify, rtx->run->settings->daemon.cpu_budget);
    asym_rtxd_server_housekeeping(rtx->server, now);
    update_priority(rtx);
}
