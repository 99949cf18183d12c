/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl rules: the rules in force, and which of them matches a process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command-line.h"
#include "app/rule-subject.h"
#include "base/macro.h"
#include "base/parse.h"
#include "base/text.h"
#include "daemon/asymctl/machine-run.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/rules-report.h"
#include "daemon/asymctl/verb.h"

struct arguments {
    const char *config, *comm, *exe, *cgroup, *cmdline;
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--comm", STRING, "NAME", comm, .help = "test a program of that name that does not run"),
    ASYM_ARG("--exe", STRING, "PATH", exe, .help = "with the path of its executable"),
    ASYM_ARG("--cgroup", STRING, "PATH", cgroup, .help = "with the path of its control group"),
    ASYM_ARG("--cmdline", STRING, "TEXT", cmdline, .help = "with its arguments, joined by spaces"),
    ASYM_ARG("--config", STRING, "FILE", config, .help = "a configuration, instead of that of the running asymd"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

static bool is_described(const struct arguments *a)
{
    return a->comm || a->exe || a->cgroup || a->cmdline;
}

/* The name comes from the command line: it may have any bytes. */
static int refuse_long_name(const char *comm, struct asym_error *err)
{
    char shown[128], first[4 * ASYM_COMM_LEN];
    asym_text_escape(comm, strlen(comm), shown, sizeof shown);
    asym_text_escape(comm, ASYM_COMM_LEN - 1, first, sizeof first);
    return asym_fail(err, -EINVAL,
                     "rules test: no process has the name '%.60s': names have %d bytes at most. Test its first %d: "
                     "--comm=%s",
                     shown, ASYM_COMM_LEN - 1, ASYM_COMM_LEN - 1, first);
}

static bool is_name(const char *operand)
{
    return operand[strspn(operand, "0123456789")] != '\0';
}

/* Checks the operands. *ret_pid: 0: no process is to be tested. */
static int check_operands(const struct arguments *a, char **operands, int32_t *ret_pid, struct asym_error *err)
{
    const char *pid = operands[0] ? operands[1] : NULL;
    uint64_t number = 0;
    *ret_pid = 0;
    if (operands[0] && strcmp(operands[0], "test") != 0 && (pid || is_described(a)))
        return asym_fail(err, -EINVAL,
                         "rules: behind '%.60s' nothing is accepted; accepted are nothing, the NAME of a rule or a "
                         "program, test PID, test NAME, and test --comm=NAME",
                         operands[0]);
    if (operands[0] && strcmp(operands[0], "test") != 0)
        return 0;
    if (!operands[0] && is_described(a))
        return asym_fail(err, -EINVAL, "rules: --comm, --exe, --cgroup and --cmdline are for test");
    if (operands[0] && !pid && !is_described(a))
        return asym_fail(err, -EINVAL,
                         "rules test needs a PID, or a program described by --comm and the like: asymctl rules test "
                         "4711, or asymctl rules test --comm=firefox");
    if (pid && is_described(a))
        return asym_fail(err, -EINVAL,
                         "rules test: a PID and --comm or the like are given; asymctl accepts one of them");
    if (a->comm && strlen(a->comm) >= ASYM_COMM_LEN)
        return refuse_long_name(a->comm, err);
    if (pid && !is_name(pid) && (asym_parse_u64(pid, strlen(pid), &number) < 0 || number == 0 || number > INT32_MAX))
        return asym_fail(err, -EINVAL,
                         "rules test: '%.60s' is not accepted; accepted are the PID of a process, or a name", pid);
    *ret_pid = pid && is_name(pid) ? 0 : (int32_t)number;
    return 0;
}

/* Fills ret with the process, or with the described program. */
static int find_subject(const struct arguments *a, int32_t pid, struct asym_rule_subject_texts *ret,
                        struct asym_error *err)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    if (pid == 0) {
        ret->of = (struct asym_rule_subject){
            .comm = a->comm, .exe = a->exe, .cgroup = a->cgroup, .cmdline = a->cmdline, .uid = (uid_t)-1};
        return 0;
    }
    const int r = asym_root_open(NULL, &root, err);
    return r < 0 ? r : asym_rule_subject_read(&root, pid, ret, err);
}

static int test(const struct arguments *a, const struct asym_settings *s, int32_t pid, struct asym_error *err)
{
    ASYM_AUTO_FREE struct asym_rule_subject_texts *texts = malloc(sizeof *texts);
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    int r = texts ? find_subject(a, pid, texts, err) : asym_fail(err, -ENOMEM, "no memory");
    if (r < 0)
        return asym_verb_fail(ASYM_EXIT_FAILED, err->text);
    return asym_verb_reported(a->json ? asym_rules_json(s, NULL, &texts->of, stdout)
                                      : asym_rules_test_text(s, &texts->of, &terminal));
}

/* Tests the process of that name that has used the most CPU time. Where none runs, the rules know the name alone. */
static int test_named(const struct arguments *a, const struct asym_settings *s, const char *name,
                      struct asym_error *err)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    ASYM_CLEANUP(asym_named_processes_done) struct asym_named_processes found = {.process = NULL};
    const struct arguments program = {.comm = name, .json = a->json};
    int r = asym_root_open(NULL, &root, err);
    if (r >= 0)
        r = asym_named_processes_find(&root, name, (int32_t)getpid(), &found);
    if (r >= 0 && found.n > 0 && !found.by_command_line)
        return test(a, s, (int32_t)found.process[0].pid, err);
    if (strlen(name) >= ASYM_COMM_LEN)
        return asym_verb_fail(ASYM_EXIT_USAGE, (refuse_long_name(name, err), err->text));
    return test(&program, s, 0, err);
}

/* NAME is a rule, or else a program. */
static int show_named(const struct arguments *a, const struct asym_settings *s, const char *name,
                      struct asym_error *err)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    struct asym_rule_view rule;
    for (size_t i = 0; asym_rules_at(s->rules, i, NULL, &rule); i++)
        if (strcmp(rule.name, name) == 0)
            return asym_verb_reported(a->json ? asym_rules_json(s, name, NULL, stdout)
                                              : asym_rules_list_text(s, name, &terminal));
    return test_named(a, s, name, err);
}

static int rules(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    const struct asym_invocation cli = {.config = a->config};
    struct asym_settings *s = NULL;
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    struct asym_error err = {""};
    int32_t pid;
    int status;
    if (check_operands(a, operands, &pid, &err) < 0 || asym_machine_settings(&cli, ASYM_MACHINE_SAYS, &s, &err) < 0)
        return asym_verb_fail(ASYM_EXIT_USAGE, err.text);
    if (operands[0] && strcmp(operands[0], "test") != 0)
        status = show_named(a, s, operands[0], &err);
    else if (operands[0] && operands[1] && pid == 0)
        status = test_named(a, s, operands[1], &err);
    else if (operands[0])
        status = test(a, s, pid, &err);
    else
        status = asym_verb_reported(a->json ? asym_rules_json(s, NULL, NULL, stdout)
                                            : asym_rules_list_text(s, NULL, &terminal));
    asym_settings_free(s);
    return status;
}

const struct asym_verb asym_verb_rules = {
    .name = "rules",
    .args = args,
    .args_size = sizeof(struct arguments),
    .operands = ASYM_OPERANDS_SOME,
    .usage = "[test] [PID|NAME]",
    .summary = "list the rules in force, or say which one matches a program",
    .help = "Prints the rules of the running asymd, or without one those of the installed configuration and of the\n"
            "groups of the library that it includes, in the order in which asymd tries them. With test, prints for\n"
            "each rule whether it matches the process PID, or the program that the options describe, and why not.\n"
            "asymd uses the first rule that matches.\n"
            "With NAME, prints the rule of that name, or tests a program of that name, as test NAME does: as it runs,\n"
            "or where it does not run, by the name alone.\n",
    .run = rules,
};
