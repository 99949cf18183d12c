/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings/internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "settings/nearest.h"

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

/* A rule without keys behind the others; NULL: no memory. */
static struct asym_rule *append(struct asym_rules *rules, const char *name, const char *origin)
{
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

static const char *shown(const char *text, char *buf, size_t size)
{
    return asym_text_escape(text, strlen(text), buf, size);
}

int asym_rules_add(struct asym_rules *rules, const char *name, const char *origin, struct asym_error *err)
{
    char text[4 * ASYM_RULE_NAME_MAX + 1];
    if (strlen(name) > ASYM_RULE_NAME_MAX)
        return asym_fail(err, -EINVAL, "the rule's name is too long; accepted are %d bytes", ASYM_RULE_NAME_MAX);
    for (size_t i = 0; i < rules->n; i++)
        if (strcmp(rules->rules[i].name, name) == 0)
            return asym_fail(err, -EINVAL, "there is a rule \"%s\" already, at %s", shown(name, text, sizeof text),
                             rules->rules[i].origin);
    return append(rules, name, origin) ? 0 : asym_fail(err, -ENOMEM, "no memory");
}

static int set_action(struct asym_rule *rule, const char *value, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = value};
    char hint[64], text[128];
    if (rule->action >= 0)
        return asym_fail(err, -EEXIST, "action is given twice in this rule");
    for (size_t i = 0; i < ASYM_LENGTH(actions); i++) {
        asym_nearest_consider(&n, actions[i]);
        if (strcmp(actions[i], value) == 0)
            rule->action = (int)i;
    }
    if (rule->action >= 0)
        return 0;
    return asym_fail(err, -EINVAL, "action '%s' is not accepted%s; accepted are steer, ignore, fast, slow",
                     shown(value, text, sizeof text), asym_nearest_hint(&n, hint, sizeof hint));
}

/* Call fn for every word of text until it returns true. */
static bool any_word(const char *text, bool (*fn)(const char *word, size_t n, const void *ctx), const void *ctx)
{
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        size_t n = strcspn(text, " \t");
        if (fn(text, n, ctx))
            return true;
        text += n;
    }
    return false;
}

static bool is_no_uid(const char *word, size_t n, const void *ctx)
{
    uint64_t uid;
    (void)ctx;
    return asym_parse_u64(word, n, &uid) < 0 || uid >= UINT32_MAX;
}

static int unknown_key(const char *key, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = key};
    char hint[64], text[128];
    for (size_t k = 0; k < ASYM_LENGTH(keys); k++)
        asym_nearest_consider(&n, keys[k].key);
    asym_nearest_consider(&n, "action");
    return asym_fail(err, -EINVAL,
                     "unknown key '%s' in a rule%s; accepted are action, match_comm, match_exe, match_cgroup, "
                     "match_cmdline, match_uid",
                     shown(key, text, sizeof text), asym_nearest_hint(&n, hint, sizeof hint));
}

static int set_match(char **field, size_t k, const char *value, struct asym_error *err)
{
    char text[256];
    if (*field)
        return asym_fail(err, -EEXIST, "%s is given twice in this rule", keys[k].key);
    if (!*value)
        return asym_fail(err, -EINVAL, "%s is empty; accepted are globs separated by spaces", keys[k].key);
    if (keys[k].need == ASYM_RULE_NEEDS_UID && any_word(value, is_no_uid, NULL))
        return asym_fail(err, -EINVAL, "match_uid '%s' is not accepted; accepted are numbers of users, 0 to 4294967294",
                         shown(value, text, sizeof text));
    *field = strdup(value);
    return *field ? 0 : asym_fail(err, -ENOMEM, "no memory");
}

int asym_rules_set(struct asym_rules *rules, const char *key, const char *value, struct asym_error *err)
{
    struct asym_rule *rule = &rules->rules[rules->n - 1];
    if (strcmp(key, "action") == 0)
        return set_action(rule, value, err);
    for (size_t k = 0; k < ASYM_LENGTH(keys); k++)
        if (strcmp(keys[k].key, key) == 0)
            return set_match(field_of(rule, keys[k].rule), k, value, err);
    return unknown_key(key, err);
}

int asym_rules_check(const struct asym_rules *rules, struct asym_error *err)
{
    char text[4 * ASYM_RULE_NAME_MAX + 1];
    for (size_t i = 0; i < rules->n; i++) {
        const struct asym_rule *rule = &rules->rules[i];
        bool any = false;
        for (size_t k = 0; k < ASYM_LENGTH(keys); k++)
            any |= *field_of(rule, keys[k].rule) != NULL;
        if (any && rule->action >= 0)
            continue;
        return asym_fail(err, -EINVAL, "%s: the rule \"%s\" has no %s; accepted %s", rule->origin,
                         shown(rule->name, text, sizeof text), any ? "action" : "match",
                         any ? "are steer, ignore, fast, slow"
                             : "are match_comm, match_exe, match_cgroup, match_cmdline, match_uid");
    }
    return 0;
}

struct asym_rules *asym_rules_copy(const struct asym_rules *rules)
{
    struct asym_rules *copy = asym_rules_new();
    for (size_t i = 0; copy && i < rules->n; i++) {
        struct asym_rule *rule = append(copy, rules->rules[i].name, rules->rules[i].origin);
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

static bool glob_matches(const char *word, size_t n, const void *text)
{
    char glob[ASYM_VALUE_MAX + 1];
    snprintf(glob, sizeof glob, "%.*s", (int)n, word);
    return fnmatch(glob, text, 0) == 0;
}

static bool is_uid(const char *word, size_t n, const void *subject)
{
    uint64_t uid;
    return asym_parse_u64(word, n, &uid) == 0 && uid == ((const struct asym_rule_subject *)subject)->uid;
}

static bool matches(const struct asym_rule *rule, const struct asym_rule_subject *subject)
{
    for (size_t k = 0; k < ASYM_LENGTH(keys); k++) {
        const char *globs = *field_of(rule, keys[k].rule), *text;
        if (!globs)
            continue;
        if (keys[k].need == ASYM_RULE_NEEDS_UID) {
            if (!any_word(globs, is_uid, subject))
                return false;
            continue;
        }
        text = *(const char *const *)(const void *)((const char *)subject + keys[k].subject);
        if (!text || !any_word(globs, glob_matches, text))
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
