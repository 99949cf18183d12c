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

/* The kernel gives a number to a later process, and a process can become another program: then the name is another one. */
static bool has_name(const struct asym_root *root, uint32_t pid, const char *name)
{
    char path[64], comm[32];
    snprintf(path, sizeof path, "proc/%" PRIu32 "/comm", pid);
    const ssize_t n = asym_root_read(root, path, comm, sizeof comm);
    return n > 0 && comm[n - 1] == '\n' && (size_t)n - 1 == strlen(name) && memcmp(comm, name, (size_t)n - 1) == 0;
}

/* A command line and the name of a user cost some system calls, so those of the frame before count. Returns 0; -ENOMEM. */
static int fill_app(const struct asym_root *root, const json_t *before, json_t *app, size_t hint)
{
    const json_t *earlier = asym_top_frame_find(before, app, hint);
    const uint32_t pid = (uint32_t)asym_json_get_int(app, "pid"), uid = (uint32_t)asym_json_get_int(app, "uid");
    char command[ASYM_COMMAND_SIZE] = "", user[ASYM_USER_SIZE] = "";
    if (!earlier && pid > 0 && has_name(root, pid, asym_json_get_text(app, "comm")))
        asym_command_of(root, pid, command);
    if (!earlier && uid != UINT32_MAX)
        asym_user_of(uid, user);
    ASYM_AUTO_JSON json_t *more = json_pack(
        "{s:o, s:o, s:I}", "command", asym_json_text(earlier ? asym_json_get_text(earlier, "command") : command),
        "user", asym_json_text(earlier ? asym_json_get_text(earlier, "user") : user), "seen_us",
        (json_int_t)asym_clock_now());
    return more && json_object_update(app, more) == 0 ? 0 : -ENOMEM;
}

/* A cgroup ends at once: no process stands for it. */
static bool has_ended(uint32_t pid)
{
    struct asym_thread_sched sched;
    return pid == 0 || asym_thread_get_sched((int32_t)pid, &sched) < 0;
}

static int fill(struct asym_top_source *source, const json_t *before, json_t *frame)
{
    const int64_t now = (int64_t)asym_clock_read(CLOCK_REALTIME), end = asym_json_get_int(frame, "paused_until_us");
    char reason[1024];
    json_t *app;
    size_t i;
    int r = 0;
    asym_name_user_of_policy(asym_json_get_text(frame, "policy_reason"), reason, sizeof reason);
    json_object_set_new(frame, "policy_reason", asym_json_text(reason));
    json_object_set_new(frame, "paused_for_us", json_integer(end > now ? end - now : 0));
    json_array_foreach(asym_top_apps(frame), i, app) r = r < 0 ? r : fill_app(&source->root, before, app, i);
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

int asym_top_source_read(struct asym_top_source *source, json_t **frame, struct asym_error *err)
{
    ASYM_AUTO_JSON json_t *filled = NULL;
    int r = asym_top_source_connect(source, err);
    if (r < 0)
        return r;
    r = asym_client_get_report(source->client, "status", 0, &filled, err);
    if (r < 0)
        return fail(source, r);
    r = fill(source, *frame, filled);
    if (r < 0)
        return fail(source, asym_fail(err, r, "no memory"));
    json_decref(*frame);
    *frame = ASYM_TAKE(filled);
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

void asym_top_source_disconnect(struct asym_top_source *source)
{
    asym_client_close(ASYM_TAKE(source->client));
}

void asym_top_source_done(struct asym_top_source *source)
{
    asym_client_close(source->client);
    asym_root_done(&source->root);
}
