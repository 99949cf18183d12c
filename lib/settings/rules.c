/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings/internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"

static const char *const actions[] = {"steer", "ignore", "fast", "slow"};

/* The keys of a rule: where its globs are kept, and what of a process they look at. */
static const struct {
    const char *key;
    size_t rule, subject;
    unsigned need;
} keys[] = {
    {"match_comm", offsetof(struct asym_rule, comm), offsetof(struct asym_rule_subject, comm), ASYM_RULE_NEEDS_COMM},
    {"match_exe", offsetof(struct asym_rule, exe), offsetof(struct asym_rule_subject, exe), ASYM_RULE_NEEDS_EXE},
    {"match_cgroup", offsetof(struct asym_rule, cgroup), offsetof(struct asym_rule_subject, cgroup),
     ASYM_RULE_NEEDS_CGROUP},
    {"match_cmdline", offsetof(struct asym_rule, cmdline), offsetof(struct asym_rule_subject, cmdline),
     ASYM_RULE_NEEDS_CMDLINE},
    {"match_uid", offsetof(struct asym_rule, uid), SIZE_MAX, ASYM_RULE_NEEDS_UID},
};

static char **field_of(const struct asym_rule *rule, size_t offset)
{
    return (char **)((uintptr_t)rule + offset);
}

struct asym_rules *asym_rules_new(void)
{
    return calloc(1, sizeof(struct asym_rules));
}

void asym_rules_free(struct asym_rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->n; i++) {
        for (size_t k = 0; k < ASYM_LENGTH(keys); k++)
            free(*field_of(&rules->rules[i], keys[k].rule));
        free(rules->rules[i].name);
        free(rules->rules[i].origin);
    }
    free(rules->rules);
    free(rules);
}

static struct asym_rule *get_rule(struct asym_rules *rules, const char *name, const char *origin)
{
    for (size_t i = 0; i < rules->n; i++)
        if (strcmp(rules->rules[i].name, name) == 0)
            return &rules->rules[i];
    if (rules->n == rules->capacity) {
        size_t capacity = rules->capacity ? rules->capacity * 2 : 8;
        struct asym_rule *grown = reallocarray(rules->rules, capacity, sizeof *grown);
        if (!grown)
            return NULL;
        rules->rules = grown;
        rules->capacity = capacity;
    }
    struct asym_rule rule = {.name = strdup(name), .origin = strdup(origin), .action = -1};
    if (!rule.name || !rule.origin) {
        free(rule.name);
        free(rule.origin);
        return NULL;
    }
    rules->rules[rules->n] = rule;
    return &rules->rules[rules->n++];
}

static int set_action(struct asym_rule *rule, const char *value, struct asym_error *err)
{
    if (rule->action >= 0)
        return asym_fail(err, -EEXIST, "rule \"%.64s\": action is given twice", rule->name);
    for (size_t i = 0; i < ASYM_LENGTH(actions); i++)
        if (strcmp(actions[i], value) == 0)
            rule->action = (int)i;
    return rule->action >= 0
               ? 0
               : asym_fail(err, -EINVAL,
                           "rule \"%.64s\": action '%.64s' is not accepted; accepted are steer, ignore, fast, slow",
                           rule->name, value);
}

static bool are_uids(const char *text)
{
    uint64_t uid;
    while (*text) {
        size_t n = strcspn(text, " \t");
        if (n > 0 && (asym_parse_u64(text, n, &uid) < 0 || uid > UINT32_MAX))
            return false;
        text += n + strspn(text + n, " \t");
    }
    return true;
}

int asym_rules_set(struct asym_rules *rules, const char *name, const char *origin, const char *key, const char *value,
                   struct asym_error *err)
{
    struct asym_rule *rule = get_rule(rules, name, origin);
    if (!rule)
        return asym_fail(err, -ENOMEM, "no memory");
    if (strcmp(key, "action") == 0)
        return set_action(rule, value, err);
    for (size_t k = 0; k < ASYM_LENGTH(keys); k++) {
        if (strcmp(keys[k].key, key) != 0)
            continue;
        char **field = field_of(rule, keys[k].rule);
        if (*field)
            return asym_fail(err, -EEXIST, "rule \"%.64s\": %s is given twice", name, key);
        if (!*value)
            return asym_fail(err, -EINVAL, "rule \"%.64s\": %s is empty; accepted are globs separated by spaces", name,
                             key);
        if (keys[k].need == ASYM_RULE_NEEDS_UID && !are_uids(value))
            return asym_fail(err, -EINVAL, "rule \"%.64s\": match_uid '%.64s' is not accepted; accepted are numbers",
                             name, value);
        *field = strdup(value);
        return *field ? 0 : asym_fail(err, -ENOMEM, "no memory");
    }
    return asym_fail(err, -EINVAL,
                     "rule \"%.64s\": unknown key '%.64s'; accepted are action, match_comm, match_exe, match_cgroup, "
                     "match_cmdline, match_uid",
                     name, key);
}

int asym_rules_check(const struct asym_rules *rules, struct asym_error *err)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct asym_rule *rule = &rules->rules[i];
        bool any = false;
        for (size_t k = 0; k < ASYM_LENGTH(keys); k++)
            any |= *field_of(rule, keys[k].rule) != NULL;
        if (!any || rule->action < 0)
            return asym_fail(err, -EINVAL, "%s: rule \"%.64s\" has no %s", rule->origin, rule->name,
                             any ? "action" : "match_ key");
    }
    return 0;
}

struct asym_rules *asym_rules_copy(const struct asym_rules *rules)
{
    struct asym_rules *copy = asym_rules_new();
    for (size_t i = 0; copy && i < rules->n; i++) {
        struct asym_rule *rule = get_rule(copy, rules->rules[i].name, rules->rules[i].origin);
        bool complete = rule != NULL;
        for (size_t k = 0; complete && k < ASYM_LENGTH(keys); k++) {
            const char *from = *field_of(&rules->rules[i], keys[k].rule);
            complete = !from || (*field_of(rule, keys[k].rule) = strdup(from)) != NULL;
        }
        if (!complete) {
            asym_rules_free(copy);
            return NULL;
        }
        rule->action = rules->rules[i].action;
    }
    return copy;
}

void asym_rules_print(const struct asym_rules *rules, FILE *out)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct asym_rule *rule = &rules->rules[i];
        fprintf(out, "\n[rule \"%s\"]  ; %s\n", rule->name, rule->origin);
        for (size_t k = 0; k < ASYM_LENGTH(keys); k++)
            if (*field_of(rule, keys[k].rule))
                fprintf(out, "%s = %s\n", keys[k].key, *field_of(rule, keys[k].rule));
        if (rule->action >= 0)
            fprintf(out, "action = %s\n", actions[rule->action]);
    }
}

unsigned asym_rules_need(const struct asym_rules *rules)
{
    unsigned needs = 0;
    for (size_t i = 0; i < rules->n; i++)
        for (size_t k = 0; k < ASYM_LENGTH(keys); k++)
            needs |= *field_of(&rules->rules[i], keys[k].rule) ? keys[k].need : 0;
    return needs;
}

/* Does any of the globs match? A glob too long to copy matches nothing. */
static bool any_glob(const char *globs, const char *text)
{
    while (*globs) {
        char glob[512];
        size_t n = strcspn(globs, " \t");
        if (n > 0 && n < sizeof glob) {
            memcpy(glob, globs, n);
            glob[n] = '\0';
            if (fnmatch(glob, text, 0) == 0)
                return true;
        }
        globs += n + strspn(globs + n, " \t");
    }
    return false;
}

static bool matches(const struct asym_rule *rule, const struct asym_rule_subject *subject)
{
    for (size_t k = 0; k < ASYM_LENGTH(keys); k++) {
        const char *globs = *field_of(rule, keys[k].rule), *text;
        char uid[16];
        if (!globs)
            continue;
        if (keys[k].subject == SIZE_MAX) {
            snprintf(uid, sizeof uid, "%u", (unsigned)subject->uid);
            text = uid;
        } else {
            text = *(const char *const *)(const void *)((const char *)subject + keys[k].subject);
        }
        if (!text || !any_glob(globs, text))
            return false;
    }
    return true;
}

enum asym_rule_action asym_rules_match(const struct asym_rules *rules, const struct asym_rule_subject *subject,
                                       const char **ret_name)
{
    for (size_t i = 0; i < rules->n; i++) {
        if (!matches(&rules->rules[i], subject))
            continue;
        *ret_name = rules->rules[i].name;
        return (enum asym_rule_action)rules->rules[i].action;
    }
    *ret_name = NULL;
    return ASYM_RULE_STEER;
}
