/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl set. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/process-name.h"

static const struct {
    const char *name, *before, *after; /* of the number of the process, in the sentence for the user */
} actions[] = {
    {"fast", "asymd keeps process", " on fast CPUs until it ends"},
    {"slow", "asymd keeps process", " on slow CPUs until it ends"},
    {"ignore", "asymd leaves process", " alone until it ends"},
    {"steer", "asymd steers process", ", whatever the rules of the configuration say, until it ends"},
    {"auto", "the rules of the configuration decide about process", " again"},
};

static int unknown_action(const char *action)
{
    struct asym_error err;
    char text[64];
    asym_fail(&err, -EINVAL, "set: '%s' is no action; accepted are fast, slow, ignore, steer, auto",
              asym_text_escape(action, strlen(action), text, sizeof text));
    return asym_verb_fail(ASYM_EXIT_USAGE, err.text);
}

/* A rule for fast or slow CPUs holds also where all CPUs are alike, but it narrows nothing there. */
static bool is_without_effect(struct asym_client *client, const char *action)
{
    ASYM_CLEANUP(asym_client_status_done) struct asym_client_status state = {.version = NULL};
    struct asym_error err = {""};
    if (strcmp(action, "fast") != 0 && strcmp(action, "slow") != 0)
        return false;
    return asym_client_get_status(client, &state, &err) >= 0 && *state.slow_cpus == '\0';
}

struct arguments {
    struct asym_change_arguments change;
    bool permanent;
};

static const struct asym_arg args_of_set[] = {
    ASYM_ARG("--permanent", BOOL, NULL, permanent, .help = "write a rule for the program, which stays"),
    ASYM_ARG("--json", BOOL, NULL, change.json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

static int set_lasting(const struct arguments *a, struct asym_client *client,
                       const struct asym_process_operand *process, const char *action)
{
    ASYM_AUTO_FREE char *file = NULL;
    ASYM_AUTO_FREE char *before = NULL;
    struct asym_error err = {""};
    char text[1024], name[1024], first[1200] = "";
    const int r = asym_client_set_rule(client, process->pid, action, &file, &before, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    asym_text_escape(file, strlen(file), text, sizeof text);
    if (strcmp(action, "auto") == 0)
        return asym_verb_report_change(&a->change, "set", "the rule for the program of process %s is gone: %s",
                                       process->text, text);
    if (*before)
        snprintf(first, sizeof first, "; but the rule \"%s\" matches it, too, and comes first",
                 asym_text_escape(before, strlen(before), name, sizeof name));
    return asym_verb_report_change(&a->change, "set", "the rule %s for the program of process %s stands in %s%s",
                                   action, process->text, text, first);
}

static int set(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    const struct asym_change_arguments *args = &a->change;
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    struct asym_error err = {""};
    size_t i = 0;
    struct asym_process_operand process;
    while (i < ASYM_LENGTH(actions) && strcmp(actions[i].name, operands[1]) != 0)
        i++;
    if (i == ASYM_LENGTH(actions))
        return unknown_action(operands[1]);
    const int status = asym_verb_process_and_connect("set", operands[0], &process, &client);
    if (status != ASYM_EXIT_DONE)
        return status;
    if (a->permanent)
        return set_lasting(a, client, &process, actions[i].name);
    const int r = asym_client_set_program(client, process.pid, actions[i].name, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    if (is_without_effect(client, actions[i].name))
        return asym_verb_report_change(args, "set", "the rule %s for process %s has no effect, because no CPU is slow",
                                       actions[i].name, process.text);
    return asym_verb_report_change(args, "set", "%s %s%s", actions[i].before, process.text, actions[i].after);
}

const struct asym_verb asym_verb_set = {
    .name = "set",
    .args = args_of_set,
    .args_size = sizeof(struct arguments),
    .operands = ASYM_OPERANDS_TWO,
    .usage = "PID|NAME fast|slow|ignore|steer|auto",
    .needs = "a PID or the name of a program, and an action",
    .summary = "keep a process on fast or slow CPUs, leave it alone or steer it, until it ends",
    .help = "Sets a rule for one process. The rule ends with the process.\n"
            "  fast    on the fast CPUs only\n"
            "  slow    on the slow CPUs only\n"
            "  ignore  left alone\n"
            "  steer   steered as the policy says, whatever the rules say\n"
            "  auto    no such rule any more: the rules of the configuration decide again\n"
            "With --permanent asymd writes a rule for the program to rules.d beside its configuration, and names the\n"
            "file; auto removes it. Rules are described in asymd.conf(5).\n",
    .run = set,
};
