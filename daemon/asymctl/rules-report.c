/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/rules-report.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "report/json.h"

/* The width of a rule's name in a table. Longer names push the rest of their line to the right. */
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

static const char *escaped(const char *text, char *buf, size_t size)
{
    return asym_text_escape(text, strlen(text), buf, size);
}

static const char *unlisted_of(const struct asym_settings *s)
{
    return s->daemon.unlisted ? "ignores" : "steers";
}

int asym_rules_list_text(const struct asym_settings *s, FILE *out)
{
    struct asym_rule_view rule;
    char name[192], effect[320];
    size_t i = 0;
    for (; asym_rules_at(s->rules, i, NULL, &rule); i++) {
        fprintf(out, "%-*s  %s\n", NAME_WIDTH, escaped(rule.name, name, sizeof name),
                effect_of(&rule, effect, sizeof effect));
        for (size_t k = 0; k < rule.n_keys; k++)
            fprintf(out, "    %s = %s\n", rule.key[k], rule.globs[k]);
        fprintf(out, "    %s%s\n", rule.origin, rule.facts->library ? " (library)" : "");
    }
    fprintf(out, "%s%zu rule%s. asymd uses the first that matches a program, and %s a program that none matches.\n",
            i > 0 ? "\n" : "", i, i == 1 ? "" : "s", unlisted_of(s));
    return ferror(out) ? -EIO : 0;
}

/* Returns the value with which a key is compared. NULL: not known. */
static const char *value_of(const struct asym_rule_subject *s, unsigned need, char *buf, size_t size)
{
    const char *text = NULL;
    if (need == ASYM_RULE_NEEDS_UID) {
        snprintf(buf, size, "%u", (unsigned)s->uid);
        return s->uid == (uid_t)-1 ? NULL : buf;
    }
    if (need == ASYM_RULE_NEEDS_COMM)
        text = s->comm;
    else if (need == ASYM_RULE_NEEDS_EXE)
        text = s->exe;
    else if (need == ASYM_RULE_NEEDS_CGROUP)
        text = s->cgroup;
    else if (need == ASYM_RULE_NEEDS_CMDLINE)
        text = s->cmdline;
    return text ? escaped(text, buf, size) : NULL;
}

/* "match_exe: /usr/bin/sleep is none of /usr/bin/borg /usr/bin/restic". */
static void print_miss(const struct asym_rule_view *rule, size_t k, const struct asym_rule_subject *subject, FILE *out)
{
    char buf[160];
    const char *value = value_of(subject, rule->need[k], buf, sizeof buf);
    const bool several = strpbrk(rule->globs[k], " \t");
    if (value)
        fprintf(out, "%s: \"%s\" is %s %s", rule->key[k], value, several ? "none of" : "not", rule->globs[k]);
    else
        fprintf(out, "%s: not known (not given, or this user may not read it)", rule->key[k]);
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
                         const struct asym_rule_subject *subject, FILE *out)
{
    char name[192], first[192], effect[320];
    const size_t miss = first_miss(rule);
    const bool matches = miss == rule->n_keys;
    fprintf(out, "%-5s %-*s  ", matches ? found ? "later" : "yes" : "no", NAME_WIDTH,
            escaped(rule->name, name, sizeof name));
    if (!matches)
        print_miss(rule, miss, subject, out);
    else if (found)
        fprintf(out, "matches, but \"%s\" comes first", escaped(found->name, first, sizeof first));
    else
        fputs(effect_of(rule, effect, sizeof effect), out);
    fputc('\n', out);
}

static void print_subject(const struct asym_rule_subject *s, FILE *out)
{
    static const struct {
        const char *name;
        unsigned need;
    } rows[] = {
        {"name", ASYM_RULE_NEEDS_COMM},
        {"executable", ASYM_RULE_NEEDS_EXE},
        {"control group", ASYM_RULE_NEEDS_CGROUP},
        {"command line", ASYM_RULE_NEEDS_CMDLINE},
        {"user", ASYM_RULE_NEEDS_UID},
    };
    char buf[160];
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const char *value = value_of(s, rows[i].need, buf, sizeof buf);
        fprintf(out, "%-14s %s\n", rows[i].name, value ? value : "not known");
    }
    fputc('\n', out);
}

int asym_rules_test_text(const struct asym_settings *s, const struct asym_rule_subject *subject, FILE *out)
{
    struct asym_rule_view rule, found;
    char name[192], effect[320];
    bool any = false;
    size_t i = 0;
    print_subject(subject, out);
    for (; asym_rules_at(s->rules, i, subject, &rule); i++) {
        print_tested(&rule, any ? &found : NULL, subject, out);
        if (!any && first_miss(&rule) == rule.n_keys) {
            found = rule;
            any = true;
        }
    }
    if (any)
        fprintf(out, "\nRule \"%s\" applies: %s; %s\n", escaped(found.name, name, sizeof name),
                effect_of(&found, effect, sizeof effect), found.origin);
    else
        fprintf(out, "%sNo rule matches: asymd %s the program (asymd.default = %s)\n", i > 0 ? "\n" : "",
                unlisted_of(s), s->daemon.unlisted ? "ignore" : "steer");
    return ferror(out) ? -EIO : 0;
}

static json_t *match_json(const struct asym_rule_view *rule, bool misses_only)
{
    json_t *keys = misses_only ? json_array() : json_object();
    for (size_t k = 0; k < rule->n_keys; k++) {
        if (!misses_only)
            json_object_set_new(keys, rule->key[k], asym_json_bytes(rule->globs[k], strlen(rule->globs[k])));
        else if (rule->misses[k])
            json_array_append_new(keys, json_string(rule->key[k]));
    }
    return keys;
}

static json_t *rule_json(const struct asym_rule_view *rule, bool tested)
{
    const struct asym_rule_facts *f = rule->facts;
    json_t *json = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:s, s:b, s:o}", "name", asym_json_bytes(rule->name, strlen(rule->name)), "origin",
        asym_json_bytes(rule->origin, strlen(rule->origin)), "action", asym_rule_action_name(rule->action), "cpus",
        asym_mask_empty(&f->cpus) ? json_null() : asym_json_cpus(&f->cpus), "nice",
        f->has_nice ? json_integer(f->nice) : json_null(), "policy_class", asym_rule_class_name(f->policy_class),
        "library", f->library, "match", match_json(rule, false));
    if (!json || !tested)
        return json;
    json_object_set_new(json, "matches", json_boolean(first_miss(rule) == rule->n_keys));
    json_object_set_new(json, "misses", match_json(rule, true));
    return json;
}

int asym_rules_json(const struct asym_settings *s, const struct asym_rule_subject *subject, FILE *out)
{
    struct asym_rule_view rule;
    json_t *list = json_array();
    for (size_t i = 0; list && asym_rules_at(s->rules, i, subject, &rule); i++)
        if (json_array_append_new(list, rule_json(&rule, subject)) < 0) {
            json_decref(list);
            list = NULL;
        }
    ASYM_AUTO_JSON json_t *root = json_pack("{s:s, s:s, s:o}", "schema", "asymctl.rules/1", "default",
                                            s->daemon.unlisted ? "ignore" : "steer", "rules", list);
    if (!root)
        return -ENOMEM;
    if (subject) {
        const struct asym_rule_match found = asym_rules_match(s->rules, subject);
        json_object_set_new(root, "rule", found.name ? asym_json_bytes(found.name, strlen(found.name)) : json_null());
        json_object_set_new(root, "action", json_string(asym_rule_action_name(found.action)));
    }
    return json_dumpf(root, out, JSON_INDENT(2)) < 0 || fputc('\n', out) < 0 ? -EIO : 0;
}
