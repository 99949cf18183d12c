/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/top-source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/macro.h"
#include "client/client.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/wording.h"
#include "linux/sys/thread.h"

#define FILL(field, text) snprintf(field, sizeof(field), "%s", text)

static void fill_state(struct asym_top_frame *frame, const struct asym_client_status *state)
{
    const asym_usec now = asym_clock_read(CLOCK_REALTIME);
    FILL(frame->policy, state->policy);
    asym_name_user_of_policy(state->policy_reason, frame->policy_reason, sizeof frame->policy_reason);
    FILL(frame->slow_cpus, state->slow_cpus);
    frame->paused = state->paused;
    frame->paused_for = state->paused_until > now ? state->paused_until - now : 0;
    frame->steered = state->threads_steered;
    frame->changes = state->changes_last_minute;
    frame->cpu_usage = state->cpu_usage;
    frame->memory = state->memory;
}

static int fill_cpu(struct asym_top_frame *frame, const struct asym_client_cpu *from)
{
    struct asym_top_cpu *to = asym_top_add_cpu(frame);
    if (!to)
        return -ENOMEM;
    *to = (struct asym_top_cpu){
        .cpu = from->cpu,
        .type = from->type,
        .smt_rank = from->smt_rank,
        .speed = from->speed,
        .fast = from->fast,
        .busy = from->busy,
        .threads = from->threads,
    };
    FILL(to->type_name, from->type_name);
    FILL(to->comm, from->comm);
    return 0;
}

/* The kernel gives a number to a later process, and a process can become another program: then the name is another one. */
static bool has_name(const struct asym_root *root, const struct asym_top_app *app)
{
    char path[64], comm[32];
    snprintf(path, sizeof path, "proc/%" PRIu32 "/comm", app->pid);
    const ssize_t n = asym_root_read(root, path, comm, sizeof comm);
    return n > 0 && comm[n - 1] == '\n' && (size_t)n - 1 == strlen(app->comm) &&
           memcmp(comm, app->comm, (size_t)n - 1) == 0;
}

/* A command line costs some system calls, so that of the frame before counts. */
static void fill_command(const struct asym_root *root, struct asym_top_app *app, const struct asym_top_app *earlier)
{
    char command[ASYM_COMMAND_SIZE];
    if (earlier)
        memcpy(app->command, earlier->command, sizeof app->command);
    else if (app->pid > 0 && has_name(root, app) && asym_command_of(root, app->pid, command) > 0)
        snprintf(app->command, sizeof app->command, "%.*s", (int)sizeof app->command - 1, command);
}

static void fill_user(struct asym_top_app *app, uint32_t uid, const struct asym_top_app *earlier)
{
    char user[ASYM_USER_SIZE];
    if (earlier)
        memcpy(app->user, earlier->user, sizeof app->user);
    else if (uid != UINT32_MAX)
        snprintf(app->user, sizeof app->user, "%.*s", (int)sizeof app->user - 1, asym_user_of(uid, user));
}

static int fill_app(struct asym_top_source *source, const struct asym_top_frame *before,
                    const struct asym_client_app *from)
{
    struct asym_top_app *to = asym_top_add_app(&source->filled);
    if (!to)
        return -ENOMEM;
    to->seen = asym_clock_now();
    to->running = from->running;
    to->pid = from->pid;
    to->runnable = from->runnable;
    to->fast_share = from->fast_share;
    to->threads = from->threads;
    to->steered = from->steered;
    to->moves = from->moves_per_minute;
    FILL(to->cgroup, from->cgroup);
    to->processes = from->processes;
    FILL(to->comm, asym_name_leader(from));
    FILL(to->class_name, from->class_name);
    FILL(to->reason, from->reason);
    const struct asym_top_app *earlier = asym_top_frame_find(before, to, source->filled.n_apps - 1);
    fill_command(&source->root, to, earlier);
    fill_user(to, from->uid, earlier);
    return 0;
}

/* A cgroup ends at once: no process stands for it. */
static bool has_ended(uint32_t pid)
{
    struct asym_thread_sched sched;
    return pid == 0 || asym_thread_get_sched((int32_t)pid, &sched) < 0;
}

static int fill(struct asym_top_source *source, const struct asym_top_frame *before,
                const struct asym_client_status *status)
{
    struct asym_top_frame *frame = &source->filled;
    int r = 0;
    fill_state(frame, status);
    for (size_t i = 0; i < status->n_cpus && r >= 0; i++)
        r = fill_cpu(frame, &status->cpus[i]);
    for (size_t i = 0; i < status->n_apps && r >= 0; i++)
        r = fill_app(source, before, &status->apps[i]);
    return r < 0 ? r : asym_top_frame_keep(frame, before, asym_clock_now(), has_ended);
}

static int connect_once(struct asym_top_source *source, struct asym_error *err)
{
    return source->client ? 0 : asym_client_open(&source->client, err);
}

/* An error can leave the connection unusable. The next call makes a new one. */
static int fail(struct asym_top_source *source, int r)
{
    asym_client_close(ASYM_TAKE(source->client));
    return r;
}

int asym_top_source_read(struct asym_top_source *source, struct asym_top_frame *frame, struct asym_error *err)
{
    struct asym_top_frame *filled = &source->filled;
    struct asym_client_status status;
    int r = connect_once(source, err);
    if (r < 0)
        return r;
    r = asym_client_get_status(source->client, &status, err);
    if (r < 0)
        return fail(source, r);
    asym_top_frame_clear(filled);
    r = fill(source, frame, &status);
    asym_client_status_done(&status);
    if (r < 0)
        return fail(source, asym_fail(err, r, "no memory"));
    const struct asym_top_frame before = *frame;
    *frame = *filled;
    *filled = before;
    return 0;
}

static int print_explanation(const struct asym_client_explanation *e, char **ret_text)
{
    size_t size;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return -errno;
    for (size_t i = 0; i < e->n_sentences; i++) {
        char named[2048];
        fprintf(out, "%s\n", asym_name_user_of_rule(e->sentences[i], named, sizeof named));
    }
    if (e->n_evidence > 0)
        fputc('\n', out);
    for (size_t i = 0; i < e->n_evidence; i++)
        fprintf(out, "%s: %s\n", e->evidence[i].name, e->evidence[i].value);
    if (fclose(out) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret_text = text;
    return 0;
}

int asym_top_source_why(struct asym_top_source *source, uint32_t pid, char **ret_text, struct asym_error *err)
{
    struct asym_client_explanation explanation;
    int r = connect_once(source, err);
    if (r >= 0)
        r = asym_client_explain(source->client, pid, &explanation, err);
    if (r < 0)
        return r;
    r = print_explanation(&explanation, ret_text);
    asym_client_explanation_done(&explanation);
    return r < 0 ? asym_fail(err, r, "no memory") : 0;
}

/* polkit's question would wait behind the screen of top. The verbs ask it on the terminal. */
static int say_refused(int r, struct asym_error *err)
{
    return r == -EACCES
               ? asym_fail(err, r, "Not permitted here: sudo asymctl top, or an asymctl verb in another terminal.")
               : r;
}

int asym_top_source_pause(struct asym_top_source *source, bool pause, struct asym_error *err)
{
    const int r = connect_once(source, err);
    if (r < 0)
        return r;
    return say_refused(pause ? asym_client_pause(source->client, 0, err) : asym_client_resume(source->client, err),
                       err);
}

int asym_top_source_policy(struct asym_top_source *source, const char *name, struct asym_error *err)
{
    const int r = connect_once(source, err);
    return r < 0 ? r : say_refused(asym_client_set_policy(source->client, name, false, err), err);
}

int asym_top_source_order(struct asym_top_source *source, enum asym_top_action action, uint32_t pid,
                          struct asym_error *err)
{
    static const char *const actions[] = {[ASYM_TOP_SET_FAST] = "fast",
                                          [ASYM_TOP_SET_SLOW] = "slow",
                                          [ASYM_TOP_SET_IGNORE] = "ignore",
                                          [ASYM_TOP_SET_AUTO] = "auto"};
    const int r = connect_once(source, err);
    return r < 0 ? r : say_refused(asym_client_set_program(source->client, pid, actions[action], err), err);
}

void asym_top_source_rest(struct asym_top_source *source)
{
    asym_client_close(ASYM_TAKE(source->client));
}

void asym_top_source_done(struct asym_top_source *source)
{
    asym_client_close(source->client);
    asym_top_frame_done(&source->filled);
    asym_root_done(&source->root);
}
