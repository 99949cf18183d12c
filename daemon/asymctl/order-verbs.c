/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verbs that give a running asymd an order, and say what came of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/wording.h"
#include "report/json.h"

struct arguments {
    bool permanent, json;
};

/* Those that can be permanent take all rows, the others those after the first. */
static const struct asym_arg args[] = {
    ASYM_ARG("--permanent", BOOL, NULL, permanent, .help = "also write it to the configuration, so that it stays"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

struct order {
    const struct arguments *args;
    struct asym_client *client;
    struct asym_process_operand process;
    json_t *state; /* after the order: the report on the status */
    struct asym_error err;
};

static void order_done(struct order *o)
{
    asym_client_close(o->client);
    json_decref(o->state);
}

/* r: the result of the order. Reads the state after it. Returns the exit status. */
static int end_order(struct order *o, int r)
{
    if (r >= 0)
        r = asym_client_get_report(o->client, "status", 0, &o->state, &o->err);
    return r < 0 ? asym_verb_call_failed(r, &o->err) : ASYM_EXIT_DONE;
}

/* Reports a change that asymd has made: as a sentence, or as { "schema": "asymctl.change/1", "verb", "text" }. */
static __attribute__((format(printf, 3, 4))) int report(const struct order *o, const char *verb, const char *format,
                                                        ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (o->args->json)
        return asym_verb_reported(asym_json_print(
            json_pack("{s:s, s:s, s:o}", "schema", "asymctl.change/1", "verb", verb, "text", asym_json_shown(text)),
            stdout));
    puts(text);
    return ASYM_EXIT_DONE;
}

/* Rounds up to whole seconds. */
static int parse_seconds(const char *operand, uint64_t *ret)
{
    char text[128];
    asym_usec t;
    if (asym_parse_duration(operand, strlen(operand), &t) >= 0 && t > 0) {
        *ret = (t + ASYM_SEC - 1) / ASYM_SEC;
        return ASYM_EXIT_DONE;
    }
    const bool is_number = *operand && strspn(operand, "0123456789.") == strlen(operand);
    return asym_verb_fail(ASYM_EXIT_USAGE, "pause: '%s' %s; accepted are times such as 90s, 1h30min or 2days",
                          asym_text_show(operand, text, sizeof text),
                          is_number ? "has no unit" : "cannot be read as a time");
}

static int pause_asymd(const void *parsed, char **operands)
{
    ASYM_CLEANUP(order_done) struct order o = {.args = parsed};
    char until[ASYM_UNITS_SIZE] = "asymctl resume";
    uint64_t seconds = 0;
    int status = operands[0] ? parse_seconds(operands[0], &seconds) : ASYM_EXIT_DONE;
    if (status == ASYM_EXIT_DONE)
        status = asym_verb_connect(&o.client);
    if (status == ASYM_EXIT_DONE)
        status = end_order(&o, asym_client_change(o.client, &o.err, "Pause", "t", seconds));
    if (status != ASYM_EXIT_DONE)
        return status;
    if (!asym_json_get_flag(o.state, "paused"))
        return report(&o, "pause", "asymd is not paused any more: another user has resumed it");
    const int64_t end = asym_json_get_int(o.state, "paused_until_us");
    if (end > 0)
        asym_units_date((asym_usec)end, until);
    return report(&o, "pause", "asymd has restored all masks and nice values, and steers nothing until %s%s", until,
                  end > 0 ? ", or until asymctl resume" : "");
}

static int resume(const void *parsed, char **operands)
{
    ASYM_CLEANUP(order_done) struct order o = {.args = parsed};
    int status = asym_verb_connect(&o.client);
    if (status == ASYM_EXIT_DONE)
        status = end_order(&o, asym_client_change(o.client, &o.err, "Resume", NULL));
    return status == ASYM_EXIT_DONE ? report(&o, "resume", "asymd steers again") : status;
}

static int reload(const void *parsed, char **operands)
{
    ASYM_CLEANUP(order_done) struct order o = {.args = parsed};
    char policy[ASYM_POLICY_NAMED], orders[96] = "";
    int status = asym_verb_connect(&o.client);
    if (status == ASYM_EXIT_DONE)
        status = end_order(&o, asym_client_change(o.client, &o.err, "Reload", NULL));
    if (status != ASYM_EXIT_DONE)
        return status;
    const int64_t n = asym_json_get_int(o.state, "orders");
    if (n > 0)
        snprintf(orders, sizeof orders, "; rules of asymctl set for %" PRId64 " process%s still hold", n,
                 n == 1 ? "" : "es");
    return report(&o, "reload", "asymd has read its configuration again: policy %s%s%s",
                  asym_name_policy(o.state, policy), orders,
                  asym_json_get_flag(o.state, "paused") ? "; it is still paused" : "");
}

static int print_policy(const json_t *state, bool json)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    const char *name = asym_json_get_text(state, "policy"), *reason = asym_json_get_text(state, "policy_reason");
    char text[ASYM_POLICY_NAMED];
    if (json)
        return asym_json_print(json_pack("{s:s, s:o, s:o}", "schema", "asymctl.policy/1", "policy",
                                         asym_json_shown(name), "reason", asym_json_shown(reason)),
                               stdout);
    asym_columns_line(&terminal, asym_name_policy(state, text), 0, 2);
    return 0;
}

static int policy(const void *parsed, char **operands)
{
    ASYM_CLEANUP(order_done) struct order o = {.args = parsed};
    const char *name = operands[0];
    if (o.args->permanent && !name)
        return asym_verb_fail(ASYM_EXIT_USAGE, "policy: --permanent needs the NAME of a policy");
    int status = asym_verb_connect(&o.client);
    if (status == ASYM_EXIT_DONE)
        status = end_order(
            &o, name ? asym_client_change(o.client, &o.err, "SetPolicy", "sb", name, (int)o.args->permanent) : 0);
    return status == ASYM_EXIT_DONE ? asym_verb_reported(print_policy(o.state, o.args->json)) : status;
}

/* The actions of asymctl set. */
static const struct {
    const char *name, *before, *after; /* of the number of the process, in the sentence for the user */
    bool is_fast_or_slow;
} actions[] = {
    {"fast", "asymd keeps process", " on fast CPUs until it ends", true},
    {"slow", "asymd keeps process", " on slow CPUs until it ends", true},
    {"ignore", "asymd leaves process", " alone until it ends", false},
    {"steer", "asymd steers process", ", whatever the rules of the configuration say, until it ends", false},
    {"auto", "the rules of the configuration decide about process", " again, whatever affinity it has now", false},
};

static int set_lasting(struct order *o, const char *verb, const char *action)
{
    ASYM_AUTO_FREE char *file = NULL;
    ASYM_AUTO_FREE char *before = NULL;
    char text[1024], name[1024], first[1200] = "";
    const int r = asym_client_set_rule(o->client, o->process.pid, action, &file, &before, &o->err);
    if (r < 0)
        return asym_verb_call_failed(r, &o->err);
    asym_text_show(file, text, sizeof text);
    if (strcmp(action, "auto") == 0)
        return report(o, verb, "the rule for the program of process %s is gone: %s", o->process.text, text);
    if (*before)
        snprintf(first, sizeof first, "; but the rule \"%s\" matches it, too, and comes first",
                 asym_text_show(before, name, sizeof name));
    return report(o, verb, "the rule %s for the program of process %s stands in %s%s", action, o->process.text, text,
                  first);
}

static int set_program(const void *parsed, const char *verb, const char *operand, const char *action)
{
    ASYM_CLEANUP(order_done) struct order o = {.args = parsed};
    size_t i = 0;
    char text[64];
    while (i < ASYM_LENGTH(actions) && strcmp(actions[i].name, action) != 0)
        i++;
    if (i == ASYM_LENGTH(actions))
        return asym_verb_fail(ASYM_EXIT_USAGE, "set: '%s' is no action; accepted are fast, slow, ignore, steer, auto",
                              asym_text_show(action, text, sizeof text));
    int status = asym_verb_process_and_connect(verb, operand, &o.process, &o.client);
    if (status == ASYM_EXIT_DONE && o.args->permanent)
        return set_lasting(&o, verb, action);
    if (status == ASYM_EXIT_DONE)
        status = end_order(&o, asym_client_change(o.client, &o.err, "SetProgram", "us", o.process.pid, action));
    if (status != ASYM_EXIT_DONE)
        return status;
    /* A rule for fast or slow CPUs holds also where all CPUs are alike, but it narrows nothing there. */
    if (actions[i].is_fast_or_slow && *asym_json_get_text(o.state, "slow_cpus") == '\0')
        return report(&o, verb, "the rule %s for process %s has no effect, because no CPU is slow", action,
                      o.process.text);
    return report(&o, verb, "%s %s%s", actions[i].before, o.process.text, actions[i].after);
}

static int set(const void *parsed, char **operands)
{
    return set_program(parsed, "set", operands[0], operands[1]);
}

static int release(const void *parsed, char **operands)
{
    return set_program(parsed, "release", operands[0], "ignore");
}

static int adopt(const void *parsed, char **operands)
{
    return set_program(parsed, "adopt", operands[0], "auto");
}

const struct asym_verb asym_verb_policy = {
    .name = "policy",
    .args = args,
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[NAME]",
    .summary = "print the policy of the running asymd, or switch to another",
    .help = "Prints the policy that is in force, and why it is. With NAME, asymd switches to that policy at once;\n"
            "auto lets asymd choose. asymctl policies lists them. The switch lasts until asymd ends; with\n"
            "--permanent asymd also writes it to its configuration. If the policy cannot run here, the verb says\n"
            "why, and nothing changes.\n",
    .run = policy,
};

const struct asym_verb asym_verb_pause = {
    .name = "pause",
    .args = args + 1,
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[TIME]",
    .summary = "restore all masks and nice values, and steer nothing for a time, or until asymctl resume",
    .help = "asymd gives every thread its own affinity and nice value back, and steers nothing for TIME, such as\n"
            "90s, 1h30min or 2days; without TIME until asymctl resume. It still observes.\n",
    .run = pause_asymd,
};

const struct asym_verb asym_verb_resume = {
    .name = "resume",
    .args = args + 1,
    .summary = "let a paused asymd steer again",
    .help = "Ends asymctl pause before its time is over.\n",
    .run = resume,
};

const struct asym_verb asym_verb_set = {
    .name = "set",
    .args = args,
    .operands = ASYM_OPERANDS_TWO,
    .usage = "PID|NAME fast|slow|ignore|steer|auto",
    .needs = "a PID or the name of a program, and an action",
    .summary = "keep a process on fast or slow CPUs, leave it alone or steer it, until it ends",
    .help = "Sets a rule for one process. The rule ends with the process.\n"
            "  fast    on the fast CPUs only\n"
            "  slow    on the slow CPUs only\n"
            "  ignore  left alone: its threads get their own affinity and nice value back\n"
            "  steer   steered as the policy says, whatever the rules say\n"
            "  auto    no such rule any more: the rules of the configuration decide again\n"
            "\n"
            "asymd leaves a thread alone when its affinity was changed from outside: auto takes it back, with the\n"
            "affinity that it has now as its own.\n"
            "\n"
            "With --permanent asymd writes a rule for the program to rules.d beside its configuration, and names the\n"
            "file; auto removes it. Rules are described in asymd.conf(5).\n",
    .run = set,
};

const struct asym_verb asym_verb_release = {
    .name = "release",
    .args = args + 1,
    .operands = ASYM_OPERANDS_MUST,
    .usage = "PID|NAME",
    .needs = "a PID or the name of a program",
    .summary = "restore the masks and nice values of a process, and leave it alone: set PID ignore",
    .help = "Does the same as asymctl set PID|NAME ignore.\n",
    .run = release,
};

const struct asym_verb asym_verb_adopt = {
    .name = "adopt",
    .args = args + 1,
    .operands = ASYM_OPERANDS_MUST,
    .usage = "PID|NAME",
    .needs = "a PID or the name of a program",
    .summary = "let asymd steer a process again that it leaves alone: set PID auto",
    .help = "Does the same as asymctl set PID|NAME auto.\n",
    .run = adopt,
};

const struct asym_verb asym_verb_reload = {
    .name = "reload",
    .args = args + 1,
    .summary = "make asymd read its configuration again",
    .help = "Makes the running asymd read its configuration again, as SIGHUP does. If the configuration has a\n"
            "mistake, asymd keeps the one that it has, and the verb fails with the mistake. Prints the policy with\n"
            "its origin: an order of asymctl policy holds until asymd ends, asymctl pause until its end,\n"
            "and asymctl set until the process ends.\n",
    .run = reload,
};
