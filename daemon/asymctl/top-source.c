/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/top-internal.h"

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
#include "report/json.h"

#define FILL(field, text) snprintf(field, sizeof(field), "%s", text)

static void fill_state(struct asym_top_frame *frame, const json_t *state)
{
    const asym_usec now = asym_clock_read(CLOCK_REALTIME), end = (asym_usec)asym_json_get_int(state, "paused_until_us");
    FILL(frame->policy, asym_json_get_text(state, "policy"));
    asym_name_user_of_policy(asym_json_get_text(state, "policy_reason"), frame->policy_reason,
                             sizeof frame->policy_reason);
    FILL(frame->slow_cpus, asym_json_get_text(state, "slow_cpus"));
    frame->paused = asym_json_get_flag(state, "paused");
    frame->paused_for = end > now ? end - now : 0;
    frame->steered = (uint32_t)asym_json_get_int(state, "threads_steered");
    frame->changes = (uint32_t)asym_json_get_int(state, "changes_last_minute");
    frame->cpu_usage = asym_json_get_number(state, "cpu_usage");
    frame->memory = (uint64_t)asym_json_get_int(state, "memory_bytes");
}

static int fill_cpu(struct asym_top_frame *frame, const json_t *from)
{
    struct asym_top_cpu *to = asym_top_add_cpu(frame);
    if (!to)
        return -ENOMEM;
    *to = (struct asym_top_cpu){
        .cpu = (uint32_t)asym_json_get_int(from, "cpu"),
        .type = (uint32_t)asym_json_get_int(from, "type"),
        .smt_rank = (uint32_t)asym_json_get_int(from, "smt_rank"),
        .speed = asym_json_get_number(from, "speed"),
        .fast = asym_json_get_flag(from, "fast"),
        .busy = asym_json_get_number(from, "busy"),
        .threads = (uint32_t)asym_json_get_int(from, "threads"),
    };
    FILL(to->type_name, asym_json_get_text(from, "type_name"));
    FILL(to->comm, asym_json_get_text(from, "comm"));
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

static int fill_app(struct asym_top_source *source, const struct asym_top_frame *before, const json_t *from)
{
    struct asym_top_app *to = asym_top_add_app(&source->filled);
    if (!to)
        return -ENOMEM;
    to->seen = asym_clock_now();
    to->running = asym_json_get_number(from, "running");
    to->pid = (uint32_t)asym_json_get_int(from, "pid");
    to->runnable = asym_json_get_number(from, "runnable");
    to->fast_share = asym_json_get_number(from, "fast_share");
    to->threads = (uint32_t)asym_json_get_int(from, "threads");
    to->steered = (uint32_t)asym_json_get_int(from, "steered");
    to->moves = (uint32_t)asym_json_get_int(from, "moves_per_minute");
    FILL(to->cgroup, asym_json_get_text(from, "cgroup"));
    to->processes = (uint32_t)asym_json_get_int(from, "processes");
    FILL(to->comm, asym_name_leader(from));
    FILL(to->class_name, asym_json_get_text(from, "class_name"));
    FILL(to->reason, asym_json_get_text(from, "reason"));
    const struct asym_top_app *earlier = asym_top_frame_find(before, to, source->filled.n_apps - 1);
    fill_command(&source->root, to, earlier);
    fill_user(to, (uint32_t)asym_json_get_int(from, "uid"), earlier);
    return 0;
}

/* A cgroup ends at once: no process stands for it. */
static bool has_ended(uint32_t pid)
{
    struct asym_thread_sched sched;
    return pid == 0 || asym_thread_get_sched((int32_t)pid, &sched) < 0;
}

static int fill(struct asym_top_source *source, const struct asym_top_frame *before, const json_t *status)
{
    const json_t *cpus = json_object_get(status, "cpus"), *apps = json_object_get(status, "applications");
    struct asym_top_frame *frame = &source->filled;
    int r = 0;
    fill_state(frame, status);
    for (size_t i = 0; i < json_array_size(cpus) && r >= 0; i++)
        r = fill_cpu(frame, json_array_get(cpus, i));
    for (size_t i = 0; i < json_array_size(apps) && r >= 0; i++)
        r = fill_app(source, before, json_array_get(apps, i));
    return r < 0 ? r : asym_top_frame_keep(frame, before, asym_clock_now(), has_ended);
}

int asym_top_source_connect(struct asym_top_source *source, struct asym_error *err)
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
    ASYM_AUTO_JSON json_t *status = NULL;
    int r = asym_top_source_connect(source, err);
    if (r < 0)
        return r;
    r = asym_client_get_report(source->client, "status", 0, &status, err);
    if (r < 0)
        return fail(source, r);
    asym_top_frame_clear(filled);
    r = fill(source, frame, status);
    if (r < 0)
        return fail(source, asym_fail(err, r, "no memory"));
    const struct asym_top_frame before = *frame;
    *frame = *filled;
    *filled = before;
    return 0;
}

static int print_explanation(const json_t *why, char **ret_text)
{
    json_t *sentences = json_object_get(why, "sentences"), *evidence = json_object_get(why, "evidence"), *item;
    size_t size, i;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return -errno;
    json_array_foreach(sentences, i, item)
    {
        const char *sentence = json_string_value(item);
        char named[2048];
        fprintf(out, "%s\n", asym_name_user_of_rule(sentence ? sentence : "", named, sizeof named));
    }
    if (json_array_size(evidence) > 0)
        fputc('\n', out);
    json_array_foreach(evidence, i, item)
        fprintf(out, "%s: %s\n", asym_json_get_text(item, "name"), asym_json_get_text(item, "value"));
    if (fclose(out) != 0) {
        free(text);
        return -ENOMEM;
    }
    *ret_text = text;
    return 0;
}

int asym_top_source_why(struct asym_top_source *source, uint32_t pid, char **ret_text, struct asym_error *err)
{
    ASYM_AUTO_JSON json_t *report = NULL;
    int r = asym_top_source_connect(source, err);
    if (r >= 0)
        r = asym_client_get_report(source->client, "why", pid, &report, err);
    if (r < 0)
        return r;
    r = print_explanation(json_array_get(json_object_get(report, "explanations"), 0), ret_text);
    return r < 0 ? asym_fail(err, r, "no memory") : 0;
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
