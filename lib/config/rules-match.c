/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the rule that matches a process, and says why the others do not. */

#include <fnmatch.h>
#include <string.h>

#include "base/mask.h"
#include "base/parse.h"
#include "config/config-internal.h"

/* CPUs that a rule names by what they are, since the configuration does not know the machine: cpus = big-cache. */

static const char *const names[ASYM_N_RULE_CPUS] = {
    [ASYM_RULE_CPUS_LISTED] = "",
    [ASYM_RULE_CPUS_BIG_CACHE] = "big-cache",
    [ASYM_RULE_CPUS_HIGH_CLOCK] = "high-clock",
};

const char *asym_rule_cpus_name(enum asym_rule_cpus_name name)
{
    return names[name];
}

enum asym_rule_cpus_name asym_rule_cpus_named(const char *text)
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

bool asym_rule_any_word(const char *text, bool (*fn)(const char *word, size_t n, const void *ctx), const void *ctx)
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
        return asym_rule_any_word(rule->match[k], is_uid, subject);
    const char *text = *(const char *const *)(const void *)((const char *)subject + asym_rule_keys[k].subject);
    return text && asym_rule_any_word(rule->match[k], glob_matches, text);
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
        anyone = anyone && need != ASYM_RULE_NEEDS_UID && asym_rule_any_word(rule->match[k], is_open_to_users, NULL);
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
