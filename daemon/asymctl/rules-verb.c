/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl rules: the rules in force, and which of them matches a process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "config/config.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/process-name.h"
#include "daemon/asymctl/verb.h"
#include "linux/observe/proc-owner.h"
#include "linux/observe/proc-reader.h"
#include "linux/sys/proc-parse.h"
#include "report/columns.h"
#include "report/json.h"

/* The width of a rule's name. A longer name pushes the rest of its line to the right. */
#define NAME_WIDTH 26

/* "slow, on CPUs 0-3, nice 5, counts as parallel". */
static const char *effect_of(const struct asym_rule_view *rule, char *buf, size_t size)
{
    char cpus[128];
    const struct asym_rule_facts *f = rule->facts;
    struct asym_text text = asym_text_in(buf, size);
    asym_text_add(&text, "%s", asym_rule_action_name(rule->action));
    if (!asym_mask_empty(&f->cpus))
        asym_text_add(&text, ", on CPUs %s", asym_mask_format_list(&f->cpus, cpus, sizeof cpus));
    if (f->has_nice)
        asym_text_add(&text, ", nice %d", f->nice);
    if (f->policy_class != ASYM_RULE_CLASS_AUTO)
        asym_text_add(&text, ", counts as %s", asym_rule_class_name(f->policy_class));
    return buf;
}

static const char *unlisted_of(const struct asym_settings *s)
{
    return s->daemon.unlisted ? "ignores" : "steers";
}

/* Prints the name of a rule from column at on, and the spaces up to the next column. Returns that column. */
static size_t print_name(const struct asym_terminal *terminal, const char *name, size_t at)
{
    char text[4 * ASYM_RULE_NAME_MAX + 1];
    const size_t reached = asym_columns_wrap(terminal, asym_text_show(name, text, sizeof text), at, at);
    const size_t next = ASYM_MAX(reached, at + NAME_WIDTH) + 2;
    fprintf(terminal->out, "%*s", (int)(next - reached), "");
    return next;
}

/* Print the rule of that name, or each: name, what it does, where it stands, what it matches. Returns 0; -EIO. */
static int print_rules(const struct asym_settings *s, const char *name, const struct asym_terminal *terminal)
{
    struct asym_rule_view rule;
    char text[4 * ASYM_VALUE_MAX + 1];
    size_t i = 0;
    for (; asym_rules_at(s->rules, i, NULL, &rule); i++) {
        if (name && strcmp(rule.name, name) != 0)
            continue;
        const size_t at = print_name(terminal, rule.name, 0);
        asym_columns_line(terminal, effect_of(&rule, text, sizeof text), at, NAME_WIDTH + 2);
        for (size_t k = 0; k < rule.n_keys; k++)
            asym_columns_say(terminal, 4, 8, "%s = %s", rule.key[k],
                             asym_text_printable(rule.globs[k], text, sizeof text));
        if (rule.lends_to_anyone)
            asym_columns_say(terminal, 4, 8, "any user can name a program so, and gains what the rule lends");
        asym_columns_say(terminal, 4, 8, "%s%s", rule.origin, rule.facts->library ? " (library)" : "");
    }
    if (name)
        return ferror(terminal->out) ? -EIO : 0;
    if (i > 0)
        fputc('\n', terminal->out);
    asym_columns_say(terminal, 0, 0,
                     "%zu rule%s. asymd uses the first that matches a program, and %s a program that none matches.", i,
                     i == 1 ? "" : "s", unlisted_of(s));
    return ferror(terminal->out) ? -EIO : 0;
}

/* Returns the value with which a key is compared. NULL: not known. */
static const char *value_of(const struct asym_rule_subject *s, unsigned need, char *buf, size_t size)
{
    size_t k = 0;
    while (asym_rule_keys[k].need != need)
        k++;
    if (need == ASYM_RULE_NEEDS_UID) {
        snprintf(buf, size, "%u", (unsigned)s->uid);
        return s->uid == (uid_t)-1 ? NULL : buf;
    }
    const char *text = *(const char *const *)(const void *)((const char *)s + asym_rule_keys[k].subject);
    return text ? asym_text_show(text, buf, size) : NULL;
}

/* "match_exe: /usr/bin/sleep is none of /usr/bin/borg /usr/bin/restic". */
static const char *miss_of(const struct asym_rule_view *rule, size_t k, const struct asym_rule_subject *subject,
                           char *buf, size_t size)
{
    char given[160], globs[4 * ASYM_VALUE_MAX + 1];
    const char *value = value_of(subject, rule->need[k], given, sizeof given);
    const bool several = strpbrk(rule->globs[k], " \t");
    if (value)
        snprintf(buf, size, "%s: \"%s\" is %s %s", rule->key[k], value, several ? "none of" : "not",
                 asym_text_printable(rule->globs[k], globs, sizeof globs));
    else
        snprintf(buf, size, "%s: not known (it does not run, or this user may not read it)", rule->key[k]);
    return buf;
}

/* Returns the first key that does not match; n_keys: the rule matches. */
static size_t first_miss(const struct asym_rule_view *rule)
{
    size_t k = 0;
    while (k < rule->n_keys && !rule->misses[k])
        k++;
    return k;
}

static void print_tested(const struct asym_rule_view *rule, const struct asym_rule_view *found,
                         const struct asym_rule_subject *subject, const struct asym_terminal *terminal)
{
    enum { NAME_AT = 6 };
    char text[1024], first[4 * ASYM_RULE_NAME_MAX + 1];
    const size_t miss = first_miss(rule), indent = NAME_AT + NAME_WIDTH + 2;
    const bool matches = miss == rule->n_keys;
    fprintf(terminal->out, "%-*s", NAME_AT, matches ? found ? "later" : "yes" : "no");
    const size_t at = print_name(terminal, rule->name, NAME_AT);
    if (!matches)
        miss_of(rule, miss, subject, text, sizeof text);
    else if (found)
        snprintf(text, sizeof text, "matches, but \"%s\" comes first",
                 asym_text_show(found->name, first, sizeof first));
    else
        effect_of(rule, text, sizeof text);
    asym_columns_line(terminal, text, at, indent);
}

static void print_subject(const struct asym_rule_subject *s, const struct asym_terminal *terminal)
{
    enum { VALUE_AT = 15 };
    /* In the order of the keys. */
    static const char *const names[ASYM_RULE_MATCHES] = {"name", "executable", "control group", "command line", "user"};
    char buf[160];
    for (size_t k = 0; k < ASYM_RULE_MATCHES; k++) {
        const char *value = value_of(s, asym_rule_keys[k].need, buf, sizeof buf);
        fprintf(terminal->out, "%-*s", VALUE_AT, names[k]);
        asym_columns_line(terminal, value ? value : "not known", VALUE_AT, VALUE_AT);
    }
    fputc('\n', terminal->out);
}

/* Print the process, and for each rule whether it matches and, if not, which key does not. Returns 0; -EIO. */
static int print_tested_rules(const struct asym_settings *s, const struct asym_rule_subject *subject,
                              const struct asym_terminal *terminal)
{
    struct asym_rule_view rule, found;
    char name[4 * ASYM_RULE_NAME_MAX + 1], effect[320];
    bool any = false;
    size_t i = 0;
    print_subject(subject, terminal);
    for (; asym_rules_at(s->rules, i, subject, &rule); i++) {
        print_tested(&rule, any ? &found : NULL, subject, terminal);
        if (!any && first_miss(&rule) == rule.n_keys) {
            found = rule;
            any = true;
        }
    }
    if (i > 0)
        fputc('\n', terminal->out);
    if (any)
        asym_columns_say(terminal, 0, 0, "Rule \"%s\" applies: %s; %s", asym_text_show(found.name, name, sizeof name),
                         effect_of(&found, effect, sizeof effect), found.origin);
    else
        asym_columns_say(terminal, 0, 0, "No rule matches: asymd %s the program (asymd.default = %s)", unlisted_of(s),
                         s->daemon.unlisted ? "ignore" : "steer");
    return ferror(terminal->out) ? -EIO : 0;
}

static json_t *match_json(const struct asym_rule_view *rule, bool misses_only)
{
    json_t *keys = misses_only ? json_array() : json_object();
    for (size_t k = 0; k < rule->n_keys; k++) {
        if (!misses_only)
            asym_json_set(&keys, rule->key[k], asym_json_shown(rule->globs[k]));
        else if (rule->misses[k])
            asym_json_append(&keys, json_string(rule->key[k]));
    }
    return keys;
}

static json_t *rule_json(const struct asym_rule_view *rule, bool tested)
{
    const struct asym_rule_facts *f = rule->facts;
    json_t *json = json_pack("{s:o, s:o, s:s, s:o, s:o, s:s, s:b, s:b, s:o}", "name", asym_json_shown(rule->name),
                             "origin", asym_json_shown(rule->origin), "action", asym_rule_action_name(rule->action),
                             "cpus", asym_mask_empty(&f->cpus) ? json_null() : asym_json_cpus(&f->cpus), "nice",
                             f->has_nice ? json_integer(f->nice) : json_null(), "policy_class",
                             asym_rule_class_name(f->policy_class), "library", f->library, "lends_to_anyone",
                             rule->lends_to_anyone, "match", match_json(rule, false));
    if (tested) {
        asym_json_set(&json, "matches", json_boolean(first_miss(rule) == rule->n_keys));
        asym_json_set(&json, "misses", match_json(rule, true));
    }
    return json;
}

/* Do either as JSON, asymctl.rules/1. name NULL: each rule; subject NULL: the list. Returns 0; -ENOMEM, -EIO. */
static int write_rules_json(const struct asym_settings *s, const char *name, const struct asym_rule_subject *subject,
                            FILE *out)
{
    struct asym_rule_view rule;
    json_t *list = json_array();
    for (size_t i = 0; asym_rules_at(s->rules, i, subject, &rule); i++)
        if (!name || strcmp(rule.name, name) == 0)
            asym_json_append(&list, rule_json(&rule, subject));
    json_t *root = json_pack("{s:s, s:s, s:o}", "schema", "asymctl.rules/1", "default",
                             s->daemon.unlisted ? "ignore" : "steer", "rules", list);
    if (subject) {
        const struct asym_rule_match found = asym_rules_match(s->rules, subject);
        asym_json_set(&root, "rule", found.name ? asym_json_shown(found.name) : json_null());
        asym_json_set(&root, "action", json_string(asym_rule_action_name(found.action)));
    }
    return asym_json_print(root, out);
}

/* The attributes of a process that rules match, as the service reads them. */
struct texts {
    struct asym_rule_subject of; /* a text that this user may not read is NULL */
    char comm[ASYM_COMM_LEN], exe[4096], cgroup[4096];
    char cmdline[ASYM_READ_CMDLINE_MAX];
};

static void read_exe(const struct asym_root *root, int32_t pid, struct texts *ret)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/exe", (int)pid);
    const ssize_t n = readlinkat(root->fd, path, ret->exe, sizeof ret->exe - 1);
    if (n < 0)
        return;
    ret->exe[n] = '\0';
    ret->of.exe = ret->exe;
}

static void read_cgroup(const struct asym_root *root, int32_t pid, struct texts *ret)
{
    char path[64], text[8192];
    const char *name;
    size_t len;
    snprintf(path, sizeof path, "proc/%d/cgroup", (int)pid);
    const ssize_t n = asym_root_read(root, path, text, sizeof text);
    if (n < 0 || asym_parse_cgroup_name(text, (size_t)n, &name, &len) < 0)
        return;
    snprintf(ret->cgroup, sizeof ret->cgroup, "%.*s", (int)len, name);
    ret->of.cgroup = ret->cgroup;
}

static int read_cmdline(const struct asym_root *root, int32_t pid, uint64_t start, struct texts *ret)
{
    const struct asym_read_request request = {.pid = pid, .what = ASYM_READ_CMDLINE, .start = start};
    ASYM_AUTO_FREE struct asym_read_answer *answer = malloc(sizeof *answer);
    if (!answer)
        return -ENOMEM;
    asym_proc_read(root, &request, answer);
    if (answer->error == 0) {
        memcpy(ret->cmdline, answer->cmdline, sizeof ret->cmdline);
        ret->of.cmdline = ret->cmdline;
    }
    return answer->error == -ESRCH ? -ESRCH : 0;
}

/* It can delay the call: the command line is in the memory of the process. Returns 0; -ESRCH, -errno with err. */
static int read_subject(const struct asym_root *root, int32_t pid, struct texts *ret, struct asym_error *err)
{
    struct asym_stat stat;
    uint32_t uid;
    *ret = (struct texts){.of = {.uid = (uid_t)-1}};
    int r = asym_read_stat(root, pid, 0, &stat);
    if (r == -ENOENT || r == -ESRCH)
        return asym_fail(err, -ESRCH, "there is no process %d", (int)pid);
    if (r >= 0) {
        memcpy(ret->comm, stat.comm, sizeof ret->comm);
        ret->of.comm = ret->comm;
        read_exe(root, pid, ret);
        read_cgroup(root, pid, ret);
        if (asym_proc_owner(root, pid, &uid) == 0)
            ret->of.uid = (uid_t)uid;
        r = read_cmdline(root, pid, stat.start, ret);
    }
    return r < 0 ? asym_fail(err, r, "cannot read process %d: %s", (int)pid, strerror(-r)) : 0;
}

static const char accepted[] =
    "accepted are nothing, the NAME of a rule, or test and then, as without test, PID or the "
    "NAME of a program";

static int test(const struct asym_verb_config *a, const struct asym_settings *s,
                const struct asym_rule_subject *subject)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    return asym_verb_reported(a->json ? write_rules_json(s, NULL, subject, stdout)
                                      : print_tested_rules(s, subject, &terminal));
}

static int test_process(const struct asym_verb_config *a, const struct asym_settings *s, const struct asym_root *root,
                        uint32_t pid, struct asym_error *err)
{
    ASYM_AUTO_FREE struct texts *texts = malloc(sizeof *texts);
    const int r = texts ? read_subject(root, (int32_t)pid, texts, err) : asym_fail(err, -ENOMEM, "no memory");
    return r < 0 ? asym_verb_fail(ASYM_EXIT_FAILED, "%s", err->text) : test(a, s, &texts->of);
}

/* The name comes from the command line: it may have any bytes. */
static int refuse_long_name(const char *name)
{
    char shown[128], first[4 * ASYM_COMM_LEN];
    asym_text_show(name, shown, sizeof shown);
    asym_text_escape(name, ASYM_COMM_LEN - 1, first, sizeof first);
    return asym_verb_fail(
        ASYM_EXIT_USAGE,
        "rules test: no process has the name '%.60s': names have %d bytes at most. Test its first %d: %s", shown,
        ASYM_COMM_LEN - 1, ASYM_COMM_LEN - 1, first);
}

/* Tests the process of that name that has used the most CPU time. Where none runs, the rules know the name alone. */
static int test_named(const struct asym_verb_config *a, const struct asym_settings *s, const struct asym_root *root,
                      const char *name, struct asym_error *err)
{
    ASYM_CLEANUP(asym_named_processes_done) struct asym_named_processes found = {.process = NULL};
    const int r = asym_named_processes_find(root, name, (int32_t)getpid(), &found);
    if (r >= 0 && found.n > 0 && !found.by_command_line)
        return test_process(a, s, root, found.process[0].pid, err);
    return strlen(name) >= ASYM_COMM_LEN ? refuse_long_name(name)
                                         : test(a, s, &(struct asym_rule_subject){.comm = name, .uid = (uid_t)-1});
}

/* Without test, the word is a rule, or else a process or a program. */
static int answer(const struct asym_verb_config *a, const struct asym_settings *s, const char *subject, bool is_test)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    struct asym_error err = {""};
    uint32_t pid;
    if (!is_test && (!subject || asym_rules_named(s->rules, subject)))
        return asym_verb_reported(a->json ? write_rules_json(s, subject, NULL, stdout)
                                          : print_rules(s, subject, &terminal));
    const bool is_pid = asym_verb_is_pid(subject, &pid);
    /* A number that no process can have is no name, either. */
    if (!is_pid && subject[strspn(subject, "0123456789")] == '\0')
        return asym_verb_wrong_usage(&asym_verb_rules, accepted);
    if (asym_root_open(NULL, &root, &err) < 0)
        return asym_verb_fail(ASYM_EXIT_FAILED, "%s", err.text);
    return is_pid ? test_process(a, s, &root, pid, &err) : test_named(a, s, &root, subject, &err);
}

static int rules(const void *parsed, char **operands)
{
    const struct asym_verb_config *a = parsed;
    const struct asym_invocation cli = {.config = a->config};
    const bool is_test = operands[0] && strcmp(operands[0], "test") == 0;
    struct asym_settings *s = NULL;
    struct asym_error err = {""};
    if (is_test ? !operands[1] : operands[0] && operands[1])
        return asym_verb_wrong_usage(&asym_verb_rules, accepted);
    if (asym_machine_settings(&cli, ASYM_MACHINE_SAYS, &s, &err) < 0)
        return asym_verb_fail(ASYM_EXIT_USAGE, "%s", err.text);
    const int status = answer(a, s, operands[is_test], is_test);
    asym_settings_free(s);
    return status;
}

const struct asym_verb asym_verb_rules = {
    .name = "rules",
    .args = asym_verb_config_args,
    .operands = ASYM_OPERANDS_SOME,
    .usage = "[test] [PID|NAME]",
    .summary = "list the rules in force, or say which one matches a program",
    .help = "Prints the rules of the running asymd, or without one those of the installed configuration and of the\n"
            "groups of the library that it includes, in the order in which asymd tries them. With test, prints for\n"
            "each rule whether it matches the process, and why not. asymd uses the first rule that matches.\n"
            "Without test, prints the rule NAME if there is one, and else tests PID or NAME: a program as it runs,\n"
            "or where it does not run, by the name alone.\n",
    .run = rules,
};
