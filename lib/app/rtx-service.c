/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/rtx-service.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/rtx/rtx-server.h"
#include "linux/rtx/rtx-overlay.h"

struct asym_rtx_service {
    struct asym_run *run;
    struct asym_rtxd_server *server;
    struct asym_source *source;
    struct asym_asker asker;
    size_t n_refused[ASYM_RTXD_N_REFUSALS];
};

/* Logs each reason once: the journal keeps every message, and a refused program decides how often it tries. */
static void on_refused(void *ctx, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    struct asym_rtx_service *rtx = ctx;
    if (rtx->n_refused[refusal]++ == 0)
        asym_log_say(&rtx->run->log, LOG_NOTICE,
                     "asymd refuses the reports of process %d of user %u: %s (further refusals for this reason are not "
                     "logged)",
                     (int)pid, (unsigned)uid, asym_rtxd_refusal_text(refusal));
}

int asym_rtx_service_new(struct asym_run *run, struct asym_source *inner, struct asym_rtx_service **ret_rtx,
                         struct asym_error *err)
{
    struct asym_rtx_service *rtx = calloc(1, sizeof *rtx);
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
        asym_rtx_service_free(rtx);
        return r;
    }
    if (!asym_rtxd_server_is_for_all(rtx->server))
        asym_log_say(&run->log, LOG_INFO,
                     "programs of other users cannot report what their threads do: %s/rtx is no file system of its own",
                     config.dir);
    *ret_rtx = rtx;
    return 0;
}

void asym_rtx_service_free(struct asym_rtx_service *rtx)
{
    if (!rtx)
        return;
    for (enum asym_rtxd_refusal i = 0; i < ASYM_RTXD_N_REFUSALS; i++)
        if (rtx->n_refused[i] > 1)
            asym_log_say(&rtx->run->log, LOG_INFO, "asymd refused the reports of programs %zu times: %s",
                         rtx->n_refused[i], asym_rtxd_refusal_text(i));
    asym_prompt_remove(&rtx->asker);
    if (rtx->source)
        rtx->source->close(rtx->source);
    asym_rtxd_server_close(rtx->server);
    free(rtx);
}

struct asym_source *asym_rtx_service_source(struct asym_rtx_service *rtx)
{
    return rtx->source;
}

size_t asym_rtx_service_count(const struct asym_rtx_service *rtx)
{
    return rtx ? asym_rtxd_server_count(rtx->server) : 0;
}

/* asymd has the priority only while a program reports. */
static void update_priority(struct asym_rtx_service *rtx)
{
    asym_prompt_want(&rtx->asker, rtx->run->settings->rtx.realtime && asym_rtxd_server_count(rtx->server) > 0);
}

static void receive(void *ctx)
{
    asym_rtxd_server_receive(((struct asym_rtx_service *)ctx)->server, asym_clock_now());
}

static bool serve(void *ctx)
{
    struct asym_rtx_service *rtx = ctx;
    const bool program_reports = asym_rtxd_server_serve(rtx->server, asym_clock_now());
    update_priority(rtx);
    return program_reports;
}

static void charge(void *ctx, asym_usec cost)
{
    asym_rtxd_server_charge(((struct asym_rtx_service *)ctx)->server, cost);
}

static asym_usec due(void *ctx)
{
    return asym_rtxd_server_due(((struct asym_rtx_service *)ctx)->server);
}

int asym_rtx_service_attach(struct asym_rtx_service *rtx, sd_event *event)
{
    rtx->asker = (struct asym_asker){.fd = asym_rtxd_server_fd(rtx->server),
                                     .receive = receive,
                                     .serve = serve,
                                     .charge = charge,
                                     .due = due,
                                     .ctx = rtx,
                                     .without = "asymd reacts later to what programs report"};
    return asym_prompt_add(&rtx->run->prompt, &rtx->asker, event);
}

void asym_rtx_service_housekeeping(struct asym_rtx_service *rtx, asym_usec now)
{
    asym_rtxd_server_set(rtx->server, rtx->run->settings->rtx.spin_notify, rtx->run->settings->daemon.cpu_budget);
    asym_rtxd_server_housekeeping(rtx->server, now);
    update_priority(rtx);
}
