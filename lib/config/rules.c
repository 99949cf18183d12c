/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

/* Finds the rule that matches a process, and says why the others do not. */

/* CPUs that a rule names by what they are, since the configuration does not know the machine: cpus = big-cache. */

static const char *const names[ASYM_N_RULE_CPUS] = {
    [ASYM_RULE_CPUS_LISTED] = "",
    [ASYM_RULE_CPUS_BIG_CACHE] = "big-cache",
    [ASYM_RULE_CPUS_HIGH_CLOCK] = "high-clock",
};

/* Returns the value of that name; ASYM_RULE_CPUS_LISTED: it is none of these names. */
static enum asym_rule_cpus_name cpus_named(const char *text)
{
    int name = ASYM_N_RULE_CPUS - 1;
    while (name > 0 && strcmp(names[name], text) != 0)
        name--;
    return (enum asym_rule_cpus_name)name;
}

size_t asym_rules_name_cpus(struct asym_rules *rules, const struct asym_mask *big_cache,
                            const struct asym_mask *high_clock, const struct asym_mask *slow)
{
    size_t n_without = 0;
    if (rules)
        rules->slow = *slow;
    for (size_t i = 0; rules && i < rules->n; i++) {
        struct asym_rule *rule = &rules->rules[i];
        if (rule->cpus_name == ASYM_RULE_CPUS_LISTED)
            continue;
        rule->facts.cpus = rule->cpus_name == ASYM_RULE_CPUS_BIG_CACHE ? *big_cache : *high_clock;
        n_without += asym_mask_empty(&rule->facts.cpus);
    }
    return n_without;
}

const struct asym_rule_key asym_rule_keys[ASYM_RULE_MATCHES] = {
    {"match_comm", offsetof(struct asym_rule_subject, comm), ASYM_RULE_NEEDS_COMM},
    {"match_exe", offsetof(struct asym_rule_subject, exe), ASYM_RULE_NEEDS_EXE},
    {"match_cgroup", offsetof(struct asym_rule_subject, cgroup), ASYM_RULE_NEEDS_CGROUP},
    {"match_cmdline", offsetof(struct asym_rule_subject, cmdline), ASYM_RULE_NEEDS_CMDLINE},
    {"match_uid", SIZE_MAX, ASYM_RULE_NEEDS_UID},
};

/* Calls fn for every word of text, without the quotes around it, until it returns true. Returns whether it did. */
static bool any_word(const char *text, bool (*fn)(const char *word, size_t n, const void *ctx), const void *ctx)
{
    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        const char *close = *text == '"' ? strchr(text + 1, '"') : NULL;
        const char *word = close ? text + 1 : text;
        const size_t n = close ? (size_t)(close - word) : strcspn(text, " \t");
        if (fn(word, n, ctx))
            return true;
        text = word + n + (close != NULL);
    }
    return false;
}

unsigned asym_rules_need(const struct asym_rules *rules)
{
    unsigned needs = 0;
    for (size_t i = 0; i < rules->n; i++)
        for (size_t k = 0; k < ASYM_RULE_MATCHES; k++)
            needs |= rules->rules[i].match[k] ? asym_rule_keys[k].need : 0;
    return needs;
}

static bool glob_matches(const char *word, size_t n, const void *text)
{
    char glob[ASYM_VALUE_MAX + 1];
    snprintf(glob, sizeof glob, "%.*s", (int)n, word);
    /* systemd writes backslashes into the names of control groups: they stand for themselves. */
    return fnmatch(glob, text, FNM_NOESCAPE) == 0;
}

static bool is_uid(const char *word, size_t n, const void *subject)
{
    uint64_t uid;
    return asym_parse_u64(word, n, &uid) == 0 && uid == ((const struct asym_rule_subject *)subject)->uid;
}

static bool key_matches(const struct asym_rule *rule, size_t k, const struct asym_rule_subject *subject)
{
    if (asym_rule_keys[k].need == ASYM_RULE_NEEDS_UID)
        return any_word(rule->match[k], is_uid, subject);
    const char *text = *(const char *const *)(const void *)((const char *)subject + asym_rule_keys[k].subject);
    return text && any_word(rule->match[k], glob_matches, text);
}

static bool matches(const struct asym_rule *rule, const struct asym_rule_subject *subject)
{
    for (size_t k = 0; k < ASYM_RULE_MATCHES; k++)
        if (rule->match[k] && !key_matches(rule, k, subject))
            return false;
    return true;
}

/* A rule that only names CPUs, a nice value or a class steers. */
static enum asym_rule_action action_of(const struct asym_rule *rule)
{
    return rule->action < 0 ? ASYM_RULE_STEER : (enum asym_rule_action)rule->action;
}

struct asym_rule_match asym_rules_match(const struct asym_rules *rules, const struct asym_rule_subject *subject)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct asym_rule *rule = &rules->rules[i];
        if (matches(rule, subject))
            return (struct asym_rule_match){.action = action_of(rule), .name = rule->name, .facts = &rule->facts};
    }
    return (struct asym_rule_match){.action = rules->unlisted};
}

/* Folders in which only root makes files, and control groups that only root makes. */
static const char *const of_root[] = {"/usr/",  "/bin/",     "/sbin/",        "/lib",        "/opt/",
                                      "/snap/", "/var/lib/", "/system.slice", "/init.scope", "/machine.slice"};

/* A glob is as far below a folder of root as its text without wildcards says. */
static bool is_open_to_users(const char *word, size_t n, const void *ctx)
{
    const size_t literal = strcspn(word, "*?[");
    for (size_t i = 0; i < sizeof of_root / sizeof *of_root; i++)
        if (strlen(of_root[i]) <= (literal < n ? literal : n) && strncmp(word, of_root[i], strlen(of_root[i])) == 0)
            return false;
    return true;
}

/* Before the machine is known, any CPU may be a fast one. */
static bool lends_cpus(const struct asym_rules *rules, const struct asym_rule *rule)
{
    return rule->cpus_name != ASYM_RULE_CPUS_LISTED || !asym_mask_within(&rule->facts.cpus, &rules->slow);
}

static bool lends_to_anyone(const struct asym_rules *rules, const struct asym_rule *rule)
{
    bool anyone = rule->action == ASYM_RULE_FAST || (rule->facts.has_nice && rule->facts.nice < 0) ||
                  rule->facts.policy_class == ASYM_RULE_CLASS_SERIAL || lends_cpus(rules, rule);
    for (size_t k = 0; k < ASYM_RULE_MATCHES; k++) {
        const unsigned need = asym_rule_keys[k].need;
        if (!rule->match[k] || need == ASYM_RULE_NEEDS_COMM || need == ASYM_RULE_NEEDS_CMDLINE)
            continue;
        anyone = anyone && need != ASYM_RULE_NEEDS_UID && any_word(rule->match[k], is_open_to_users, NULL);
    }
    return anyone;
}

bool asym_rules_at(const struct asym_rules *rules, size_t i, const struct asym_rule_subject *subject,
                   struct asym_rule_view *ret)
{
    if (i >= rules->n)
        return false;
    const struct asym_rule *rule = &rules->rules[i];
    *ret = (struct asym_rule_view){.name = rule->name,
                                   .origin = rule->origin,
                                   .action = action_of(rule),
                                   .facts = &rule->facts,
                                   .lends_to_anyone = lends_to_anyone(rules, rule)};
    for (size_t k = 0; k < ASYM_RULE_MATCHES; k++) {
        if (!rule->match[k])
            continue;
        ret->key[ret->n_keys] = asym_rule_keys[k].key;
        ret->globs[ret->n_keys] = rule->match[k];
        ret->need[ret->n_keys] = asym_rule_keys[k].need;
        ret->misses[ret->n_keys++] = subject && !key_matches(rule, k, subject);
    }
    return true;
}

/* An effect that the rule does not name. */
#define NONE INT_MIN

/* ASYM_RULE_UNLISTED is the action of no rule. */
static const char *const actions[] = {"steer", "ignore", "fast", "slow", NULL};
static const char *const classes[] = {"auto", "serial", "parallel", NULL};

const char *asym_rule_action_name(enum asym_rule_action action)
{
    return action < ASYM_RULE_UNLISTED ? actions[action] : "ignore";
}

const char *asym_rule_class_name(enum asym_rule_class class)
{
    return class <= ASYM_RULE_CLASS_PARALLEL ? classes[class] : "auto";
}

void asym_rules_free(struct asym_rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->n; i++) {
        for (size_t k = 0; k < ASYM_RULE_MATCHES; k++)
            free(rules->rules[i].match[k]);
        free(rules->rules[i].name);
        free(rules->rules[i].origin);
    }
    free(rules->rules);
    free(rules);
}

const struct asym_rule *asym_rules_named(const struct asym_rules *rules, const char *name)
{
    for (size_t i = 0; i < rules->n; i++)
        if (strcmp(rules->rules[i].name, name) == 0)
            return &rules->rules[i];
    return NULL;
}

int asym_rules_add(struct asym_rules *rules, const char *name, const char *origin, struct asym_error *err)
{
    char text[4 * ASYM_RULE_NAME_MAX + 1];
    const struct asym_rule *same = asym_rules_named(rules, name);
    if (strlen(name) > ASYM_RULE_NAME_MAX)
        return asym_fail(err, -EINVAL, "the rule's name is too long; accepted are %d bytes", ASYM_RULE_NAME_MAX);
    if (same)
        return asym_fail(err, -EINVAL, "there is a rule \"%s\" already, at %s", asym_text_show(name, text, sizeof text),
                         same->origin);
    struct asym_rule rule = {
        .name = strdup(name), .origin = strdup(origin), .action = NONE, .nice = NONE, .policy_class = NONE};
    if (!rule.name || !rule.origin || asym_grow(&rules->rules, rules->n, &rules->capacity, sizeof *rules->rules) < 0) {
        free(rule.name);
        free(rule.origin);
        return asym_fail(err, -ENOMEM, "no memory");
    }
    rules->rules[rules->n++] = rule;
    return 0;
}

/* The machine is not known here: any CPU that asymd handles is accepted. */
static int parse_cpus(const struct asym_option *row, void *base, const char *value)
{
    struct asym_rule *rule = base;
    struct asym_mask cpus;
    rule->cpus_name = cpus_named(value);
    if (rule->cpus_name != ASYM_RULE_CPUS_LISTED)
        return 0;
    if (asym_mask_parse_list(value, strlen(value), &cpus) < 0 || asym_mask_empty(&cpus))
        return -EINVAL;
    rule->facts.cpus = cpus;
    return 0;
}

/* The keys that say what asymd does with a process. The action is the first. */
static const struct asym_option effects[] = {
    ASYM_OPTION(struct asym_rule, ENUM, action, .values = actions),
    {.key = "cpus",
     .type = ASYM_OPTION_CUSTOM,
     .parse = parse_cpus,
     .accepted = "a list of CPUs below 1024, such as 0-3,8, or big-cache or high-clock"},
    ASYM_OPTION(struct asym_rule, NICE, nice, .min = -20, .max = 19),
    ASYM_OPTION(struct asym_rule, ENUM, policy_class, .values = classes),
};

static bool has(const struct asym_rule *rule, const struct asym_option *effect)
{
    if (effect->type == ASYM_OPTION_CUSTOM)
        return rule->cpus_name != ASYM_RULE_CPUS_LISTED || !asym_mask_empty(&rule->facts.cpus);
    return *(const int *)(const void *)((const char *)rule + effect->offset) != NONE;
}

static const char *format(const struct asym_rule *rule, const struct asym_option *effect, char *buf, size_t size)
{
    if (effect->type != ASYM_OPTION_CUSTOM)
        return asym_option_format(effect, rule, buf, size);
    return rule->cpus_name != ASYM_RULE_CPUS_LISTED ? names[rule->cpus_name]
                                                    : asym_mask_format_list(&rule->facts.cpus, buf, size);
}

static bool is_no_uid(const char *word, size_t n, const void *ctx)
{
    uint64_t uid;
    return asym_parse_u64(word, n, &uid) < 0 || uid >= UINT32_MAX;
}

/* The globs of a key, and where to say that one of them can match no process. */
struct globs {
    const char *key;
    unsigned need;
    struct asym_error *err;
};

/* Returns how many bytes at the beginning of the word stand for themselves. */
static size_t plain_length(const char *word, size_t n)
{
    size_t plain = 0;
    while (plain < n && !strchr("*?[", word[plain]))
        plain++;
    return plain;
}

/* Returns true, with an error, for a glob that no name or path can match. */
static bool is_vain(const char *word, size_t n, const void *ctx)
{
    const struct globs *g = ctx;
    const bool is_path = g->need & (ASYM_RULE_NEEDS_EXE | ASYM_RULE_NEEDS_CGROUP);
    const size_t plain = plain_length(word, n);
    char text[128], cut[4 * ASYM_COMM_LEN];
    asym_text_escape(word, n, text, sizeof text);
    /* The kernel cuts names. */
    if (g->need == ASYM_RULE_NEEDS_COMM && plain >= ASYM_COMM_LEN)
        asym_fail(g->err, 0, "%s '%s' matches no process: names have %d bytes at most, so this one is '%s'", g->key,
                  text, ASYM_COMM_LEN - 1, asym_text_escape(word, ASYM_COMM_LEN - 1, cut, sizeof cut));
    else if (memchr(word, '"', n))
        asym_fail(
            g->err, 0,
            "%s: the quotes in '%s' are not around a word; accepted are globs separated by spaces, one with a space "
            "in double quotes; ? matches a quote",
            g->key, text);
    else if (n == 0)
        asym_fail(g->err, 0, "%s: there is nothing between the quotes, which matches no process", g->key);
    else if (is_path && plain > 0 && *word != '/')
        asym_fail(g->err, 0, "%s '%s' matches no process: paths begin with '/', so write '*/%s'", g->key, text, text);
    else if (is_path && n > 1 && word[n - 1] == '/')
        asym_fail(g->err, 0, "%s '%s' matches no process: no path ends in '/', so write '%s*'", g->key, text, text);
    else if (word[n - 1] == '\\')
        asym_fail(g->err, 0, "%s '%s': a backslash keeps no space; write the name in double quotes", g->key, text);
    else
        return false;
    return true;
}

static int unknown_key(const char *key, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = key};
    for (size_t i = 0; i < ASYM_LENGTH(effects); i++)
        asym_nearest_list(&n, effects[i].key);
    for (size_t k = 0; k < ASYM_RULE_MATCHES; k++)
        asym_nearest_list(&n, asym_rule_keys[k].key);
    return asym_option_unknown(&n, "rule", NULL, err);
}

static int set_match(char **field, size_t k, const char *value, struct asym_error *err)
{
    char text[256];
    if (*field)
        return asym_fail(err, -EEXIST, "%s is given twice in this rule", asym_rule_keys[k].key);
    if (!*value)
        return asym_fail(err, -EINVAL, "%s is empty; accepted are globs separated by spaces", asym_rule_keys[k].key);
    if (asym_rule_keys[k].need == ASYM_RULE_NEEDS_UID && any_word(value, is_no_uid, NULL))
        return asym_fail(err, -EINVAL, "match_uid '%s' is not accepted; accepted are user IDs, 0 to 4294967294",
                         asym_text_show(value, text, sizeof text));
    struct globs globs = {asym_rule_keys[k].key, asym_rule_keys[k].need, err};
    if (any_word(value, is_vain, &globs))
        return -EINVAL;
    *field = strdup(value);
    return *field ? 0 : asym_fail(err, -ENOMEM, "no memory");
}

static int set_effect(struct asym_rule *rule, const struct asym_option *effect, const char *value,
                      struct asym_error *err)
{
    if (has(rule, effect))
        return asym_fail(err, -EEXIST, "%s is given twice in this rule", effect->key);
    const int r = asym_option_parse(effect, NULL, rule, value, err);
    if (r < 0)
        return r;
    rule->facts.has_nice = rule->nice != NONE;
    rule->facts.nice = (int8_t)(rule->nice != NONE ? rule->nice : 0);
    rule->facts.policy_class = rule->policy_class != NONE ? (enum asym_rule_class)rule->policy_class
                                                          : ASYM_RULE_CLASS_AUTO;
    return 0;
}

int asym_rules_set(struct asym_rules *rules, const char *key, const char *value, struct asym_error *err)
{
    struct asym_rule *rule = &rules->rules[rules->n - 1];
    for (size_t i = 0; i < ASYM_LENGTH(effects); i++)
        if (strcmp(effects[i].key, key) == 0)
            return set_effect(rule, &effects[i], value, err);
    for (size_t k = 0; k < ASYM_RULE_MATCHES; k++)
        if (strcmp(asym_rule_keys[k].key, key) == 0)
            return set_match(&rule->match[k], k, value, err);
    return unknown_key(key, err);
}

/* A rule that ignores a process can do nothing else with it. */
static int check_ignored(const struct asym_rule *rule, const char *name, struct asym_error *err)
{
    for (size_t i = 1; rule->action == ASYM_RULE_IGNORE && i < ASYM_LENGTH(effects); i++)
        if (has(rule, &effects[i]))
            return asym_fail(err, -EINVAL,
                             "%s: the rule \"%s\" ignores the process, so %s has no effect; accepted is one "
                             "of them",
                             rule->origin, name, effects[i].key);
    return 0;
}

int asym_rules_check(const struct asym_rules *rules, struct asym_error *err)
{
    char text[4 * ASYM_RULE_NAME_MAX + 1];
    for (size_t i = 0; i < rules->n; i++) {
        const struct asym_rule *rule = &rules->rules[i];
        bool matches = false, acts = false;
        for (size_t k = 0; k < ASYM_RULE_MATCHES; k++)
            matches |= rule->match[k] != NULL;
        for (size_t k = 0; k < ASYM_LENGTH(effects); k++)
            acts |= has(rule, &effects[k]);
        asym_text_show(rule->name, text, sizeof text);
        if (!matches)
            return asym_fail(err, -EINVAL,
                             "%s: the rule \"%s\" has no match; accepted are match_comm, match_exe, "
                             "match_cgroup, match_cmdline, match_uid",
                             rule->origin, text);
        if (!acts)
            return asym_fail(err, -EINVAL,
                             "%s: the rule \"%s\" has no action; accepted are steer, ignore, fast, slow; "
                             "or give it cpus, nice or policy_class",
                             rule->origin, text);
        const int r = check_ignored(rule, text, err);
        if (r < 0)
            return r;
    }
    return 0;
}

void asym_rules_print(const struct asym_rules *rules, FILE *out)
{
    char text[ASYM_MASK_LIST_MAX];
    for (size_t i = 0; i < rules->n; i++) {
        const struct asym_rule *rule = &rules->rules[i];
        fprintf(out, "\n[rule \"%s\"]  ; %s%s\n", rule->name, rule->origin,
                rule->facts.library ? ASYM_ORIGIN_IN_LIBRARY : "");
        for (size_t k = 0; k < ASYM_RULE_MATCHES; k++)
            if (rule->match[k])
                fprintf(out, "%s = %s\n", asym_rule_keys[k].key, rule->match[k]);
        for (size_t k = 0; k < ASYM_LENGTH(effects); k++)
            if (has(rule, &effects[k]))
                fprintf(out, "%s = %s\n", effects[k].key, format(rule, &effects[k], text, sizeof text));
    }
}
