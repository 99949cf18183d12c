/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl top: what runs where, live. */
#include <asym/policy.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/command-line.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/macro.h"
#include "client/client.h"
#include "daemon/asymctl/long-verb.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/top-internal.h"
#include "daemon/asymctl/wording.h"
#include "linux/sys/root.h"
#include "linux/sys/thread.h"
#include "report/json.h"

/* The most keys between two checks for signals, so that a stream of keys cannot keep top from its end. */
#define MOST_KEYS 64

struct arguments {
    asym_usec interval;
    bool once;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--once", BOOL, NULL, once, .help = "print one frame as text"),
    ASYM_ARG("--interval", DURATION, "TIME", interval, .def = "1s", .min = 100e3, .max = 3600e6,
             .help = "the time between two frames, such as 500ms; 1 s by default"),
    {.option = {.key = NULL}},
};

struct top {
    struct asym_client *client; /* NULL: not connected */
    struct asym_root root;      /* whose proc has the command lines */
    json_t *frame;              /* NULL: none yet */
    struct asym_top_view view;
    struct asym_top_order order;
    struct asym_top_page page;
    char *why;
    asym_usec interval;
    sigset_t waiting; /* the signals that stay blocked while top waits */
};

static void top_done(struct top *top)
{
    asym_client_close(top->client);
    asym_root_done(&top->root);
    json_decref(top->frame);
    asym_top_order_done(&top->order);
    asym_top_page_done(&top->page);
    free(top->why);
}

static int fail(int r, const struct asym_error *err)
{
    return *err->text ? asym_verb_call_failed(r, err) : asym_verb_fail(asym_exit_status(r), "%s", strerror(-r));
}

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

static int fill(const struct top *top, json_t *frame)
{
    const int64_t now = (int64_t)asym_clock_read(CLOCK_REALTIME), end = asym_json_get_int(frame, "paused_until_us");
    char reason[1024];
    json_t *app;
    size_t i;
    int r = 0;
    asym_name_user_of_policy(asym_json_get_text(frame, "policy_reason"), reason, sizeof reason);
    json_object_set_new(frame, "policy_reason", asym_json_text(reason));
    json_object_set_new(frame, "paused_for_us", json_integer(end > now ? end - now : 0));
    json_array_foreach(asym_top_apps(frame), i, app) r = r < 0 ? r : fill_app(&top->root, top->frame, app, i);
    return r < 0 ? r : asym_top_frame_keep(frame, top->frame, asym_clock_now(), has_ended);
}

static int connect_to_asymd(struct top *top, struct asym_error *err)
{
    return top->client ? 0 : asym_client_open(&top->client, err);
}

/* Reads a frame. A program that asymd does not list any more stays for a time. After an error the frame before stays. */
static int read_frame(struct top *top, struct asym_error *err)
{
    ASYM_AUTO_JSON json_t *filled = NULL;
    int r = connect_to_asymd(top, err);
    if (r >= 0)
        r = asym_client_get_report(top->client, "status", 0, &filled, err);
    if (r >= 0 && (r = fill(top, filled)) < 0)
        asym_fail(err, r, "no memory");
    if (r < 0) {
        /* An error can leave the connection unusable. The next call makes a new one. */
        asym_client_close(ASYM_TAKE(top->client));
        return r;
    }
    json_decref(top->frame);
    top->frame = ASYM_TAKE(filled);
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
    if (asym_close_text(out, &text) < 0) {
        free(text);
        return -ENOMEM;
    }
    *ret_text = text;
    return 0;
}

static int lay_out(struct top *top)
{
    const int r = asym_top_order_make(&top->order, top->frame, &top->view);
    if (r < 0)
        return r;
    asym_top_follow(&top->view, top->frame, &top->order);
    return asym_top_layout(top->frame, &top->view, &top->order, &top->page);
}

static int draw(struct top *top)
{
    asym_top_screen_size(&top->view.columns, &top->view.rows);
    const int r = lay_out(top);
    if (r < 0)
        return r;
    asym_interruption_unblock(asym_top_screen_unblock);
    asym_top_screen_draw(&top->page);
    asym_interruption_block_again();
    return 0;
}

static void set_message(struct top *top, const char *text)
{
    snprintf(top->view.message, sizeof top->view.message, "%.159s", text);
}

static void ask_why(struct top *top)
{
    ASYM_AUTO_JSON json_t *report = NULL;
    struct asym_error err = {""};
    char *text = NULL;
    int r = connect_to_asymd(top, &err);
    if (r >= 0)
        r = asym_client_get_report(top->client, "why", top->view.pid, &report, &err);
    if (r >= 0 && print_explanation(json_array_get(json_object_get(report, "explanations"), 0), &text) < 0)
        r = asym_fail(&err, -ENOMEM, "no memory");
    if (r < 0) {
        set_message(top, err.text);
        return;
    }
    free(top->why);
    top->why = text;
    top->view.why = text;
    top->view.mode = ASYM_TOP_WHY;
    top->view.first = 0;
}

/* polkit's question would wait behind the screen of top. The verbs let it ask. */
#define NOT_PERMITTED "Not permitted here: sudo asymctl top, or an asymctl verb in another terminal."

/* The rules for a process. */
static const struct {
    const char *name, *done;
} rules[] = {[ASYM_TOP_SET_FAST] = {"fast", "is on fast CPUs until it ends (a: auto)"},
             [ASYM_TOP_SET_SLOW] = {"slow", "is on slow CPUs until it ends (a: auto)"},
             [ASYM_TOP_SET_IGNORE] = {"ignore", "is left alone until it ends (a: auto)"},
             [ASYM_TOP_SET_AUTO] = {"auto", "follows the rules of the configuration again"}};

/* Returns whether asymd has carried it out, and else shows why not. */
static bool give_order(struct top *top, enum asym_top_action action)
{
    struct asym_error err = {""};
    const uint64_t until_resumed = 0;
    int r = connect_to_asymd(top, &err);
    struct asym_client *client = top->client;
    if (r >= 0 && action == ASYM_TOP_PAUSE)
        r = asym_json_get_flag(top->frame, "paused") ? asym_client_change(client, &err, "Resume", NULL)
                                                     : asym_client_change(client, &err, "Pause", "t", until_resumed);
    else if (r >= 0 && action == ASYM_TOP_SET_POLICY)
        r = asym_client_change(client, &err, "SetPolicy", "sb", top->view.policy, 0);
    else if (r >= 0)
        r = asym_client_change(client, &err, "SetProgram", "us", top->view.asked_pid, rules[action].name);
    if (r < 0)
        set_message(top, r == -EACCES ? NOT_PERMITTED : err.text);
    return r >= 0;
}

static void order(struct top *top, enum asym_top_action action)
{
    char text[100];
    if (!give_order(top, action))
        return;
    if (action == ASYM_TOP_PAUSE) {
        const bool is_paused = !asym_json_get_flag(top->frame, "paused");
        json_object_set_new(top->frame, "paused", json_boolean(is_paused));
        json_object_set_new(top->frame, "paused_for_us", json_integer(0));
        set_message(top, is_paused ? "asymd is paused." : "asymd steers again.");
        return;
    }
    if (action == ASYM_TOP_SET_POLICY)
        snprintf(text, sizeof text, "The policy is %.48s now.", top->view.policy);
    else
        snprintf(text, sizeof text, "Process %" PRIu32 " %s.", top->view.asked_pid, rules[action].done);
    set_message(top, text);
}

/* Returns false when the user quits. */
static bool act(struct top *top, enum asym_top_action action)
{
    if (action == ASYM_TOP_ASK_WHY)
        ask_why(top);
    else if (action != ASYM_TOP_DRAW && action != ASYM_TOP_QUIT)
        order(top, action);
    return action != ASYM_TOP_QUIT;
}

/* ncurses draws anew while it reads a key, if the size has changed: that write can block, too. */
static uint32_t next_key(void)
{
    asym_interruption_unblock(asym_top_screen_unblock);
    const uint32_t key = asym_top_screen_key();
    asym_interruption_block_again();
    return key;
}

/* Returns false when the user quits. */
static bool take_keys(struct top *top)
{
    uint32_t key;
    for (unsigned n = 0; n < MOST_KEYS && (key = next_key()) != ASYM_TOP_KEY_NONE; n++) {
        if (!act(top, asym_top_key(&top->view, top->frame, &top->order, key)))
            return false;
        /* The next key acts on what this one has changed: a filter, an order. */
        if (lay_out(top) < 0)
            return false;
    }
    return true;
}

/* Waits for keys and changes of the size until that time. Returns 1; 0: the user quits, or the terminal ends; -errno. */
static int interact(struct top *top, asym_usec until)
{
    for (asym_usec now = asym_clock_now(); now < until && !asym_interrupted; now = asym_clock_now()) {
        if (!asym_top_screen_wait(until - now, &top->waiting))
            return 0;
        if (asym_clock_now() >= until)
            break;
        if (!take_keys(top))
            return 0;
        const int r = draw(top);
        if (r < 0)
            return r;
    }
    return 1;
}

/*
 * Reads a frame and draws it. The frame before stays on the screen if asymd does not answer. While the terminal takes no output,
 * top holds no connection, on which signals would wait in asymd.
 */
static int show_frame(struct top *top)
{
    struct asym_error err = {""};
    if (!asym_top_screen_takes_output()) {
        asym_client_close(ASYM_TAKE(top->client));
        return draw(top);
    }
    const int r = read_frame(top, &err);
    snprintf(top->view.alert, sizeof top->view.alert, "%.159s", r < 0 ? err.text : "");
    return draw(top);
}

static int show_frames(struct top *top)
{
    int r = draw(top);
    /* The cost of the first frame has that of the start of the program in it. */
    asym_usec spent = asym_clock_process_cpu(), cost = spent;
    while (r >= 0 && !asym_interrupted) {
        const asym_usec wait = asym_top_pace(top->interval, cost);
        top->view.every = wait > top->interval ? wait : 0;
        r = interact(top, asym_clock_now() + wait);
        if (r <= 0)
            return r;
        r = show_frame(top);
        const asym_usec now = asym_clock_process_cpu();
        cost = now - spent;
        spent = now;
    }
    return r;
}

static int show(struct top *top)
{
    struct asym_error err = {""};
    asym_interruption_block(true, &top->waiting);
    if (asym_top_screen_open(&err) < 0)
        return asym_verb_fail(ASYM_EXIT_USAGE, "%s", err.text);
    const int r = show_frames(top);
    asym_interruption_unblock(asym_top_screen_unblock);
    asym_top_screen_close();
    asym_interruption_block_again();
    return r < 0 ? fail(r, &err) : ASYM_EXIT_DONE;
}

static int print_once(struct top *top)
{
    top->view.columns = (unsigned)asym_terminal_of(stdout).columns;
    const int r = lay_out(top);
    return asym_verb_reported(r < 0 ? r : asym_top_print(&top->page, stdout));
}

/* The most names of policies that the prompt offers. */
#define MOST_POLICIES 64

static int run_top(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    const char *policies[MOST_POLICIES + 1] = {NULL};
    ASYM_CLEANUP(top_done)
    struct top top = {
        .interval = a->interval, .view = {.sort = ASYM_TOP_RUNNABLE, .policies = policies}, .root = {.fd = -1}};
    struct asym_error err = {""};
    const struct asym_policy *policy;
    if (!a->once && asym_top_terminal_check(&err) < 0)
        return asym_verb_fail(ASYM_EXIT_USAGE, "%s", err.text);
    for (size_t i = 0; i < MOST_POLICIES && (policy = asym_policy_at(i)); i++)
        policies[i] = policy->name;
    int r = asym_root_open(NULL, &top.root, &err);
    if (r >= 0)
        r = read_frame(&top, &err);
    if (r < 0)
        return fail(r, &err);
    return a->once ? print_once(&top) : show(&top);
}

const struct asym_verb asym_verb_top = {
    .name = "top",
    .args = args,
    .summary = "show live what runs on which type of core, and what asymd does",
    .help = "Shows the CPUs by type of core with what runs there, and the applications: class, runnable threads,\n"
            "the share of their running time on fast CPUs, changes of CPUs in a minute, and the reason of asymd.\n"
            "The key ? lists the keys; q quits. top takes at most 1 % of a CPU: frames that cost more than that\n"
            "come less often than --interval says. With --once it prints all applications, as wide as the\n"
            "terminal or COLUMNS, or 80 columns without either. NO_COLOR turns colours off.\n",
    .run = run_top,
};
