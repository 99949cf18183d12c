/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that the rows cannot express: names that must exist, and the syntax of strings. Each error begins with the origin of
 * the value: FILE:LINE or the option.
 */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

int asym_policy_unknown(const char *name, const char *where, struct asym_error *err)
{
    struct asym_nearest n = {.wanted = name};
    char hint[96], shown[128];
    asym_nearest_list(&n, "auto");
    for (size_t i = 0; asym_policy_at(i); i++)
        asym_nearest_list(&n, asym_policy_at(i)->name);
    asym_nearest_hint(&n, hint, sizeof hint);
    return asym_fail(err, -EINVAL, "%.220s: there is no policy '%s'%s; accepted are %s", where,
                     asym_text_show(name, shown, sizeof shown),
                     strcmp(name, "stock") == 0 ? " (the stock scheduler alone is 'none')" : hint, n.list);
}

static int check_policy(const struct asym_settings *s, struct asym_error *err)
{
    const char *name = s->daemon.policy;
    char where[256];
    if (asym_policy_find(name) || strcmp(name, "auto") == 0)
        return 0;
    snprintf(where, sizeof where, "%.200s: asymd.policy", asym_settings_origin(s, "asymd", "policy"));
    return asym_policy_unknown(name, where, err);
}

/* "0-7:1.6" gives CPUs and their speed. */
static int take_speeds(const char *word, size_t len, double speed[ASYM_MAX_CPUS], struct asym_mask *cpus)
{
    const char *colon = memchr(word, ':', len);
    struct asym_mask named;
    double value;
    if (!colon || asym_mask_parse_list(word, (size_t)(colon - word), &named) < 0 || asym_mask_empty(&named) ||
        asym_mask_meets(&named, cpus) || asym_parse_number(colon + 1, len - (size_t)(colon + 1 - word), &value) < 0 ||
        !(value > 0))
        return -EINVAL;
    ASYM_MASK_FOREACH (c, &named)
        speed[c] = value;
    *cpus = asym_mask_or(cpus, &named);
    return 0;
}

int asym_speeds_parse(const char *text, double ret_speed[ASYM_MAX_CPUS], struct asym_mask *ret_cpus)
{
    struct asym_mask cpus = {0};
    for (const char *p = text + strspn(text, " \t"); *p;) {
        size_t len = strcspn(p, " \t");
        if (take_speeds(p, len, ret_speed, &cpus) < 0)
            return -EINVAL;
        p += len;
        p += strspn(p, " \t");
    }
    *ret_cpus = cpus;
    return 0;
}

/* These return what is accepted, or NULL if the text is. */

static const char *check_speeds(const struct asym_settings *s, const char *text)
{
    double speed[ASYM_MAX_CPUS];
    struct asym_mask cpus;
    return asym_speeds_parse(text, speed, &cpus) < 0
               ? "CPUs with their speed, above 0 and each CPU once, such as 0-7:1.6 8-15:1"
               : NULL;
}

/* This check does not know the CPUs of the machine: it accepts any number or list. */
static const char *check_slow(const struct asym_settings *s, const char *text)
{
    struct asym_mask list;
    uint64_t n;
    bool number = asym_parse_u64(text, strlen(text), &n) == 0 && n >= 1 && n < ASYM_MAX_CPUS;
    if (!*text || number || (strpbrk(text, "-,") && asym_mask_parse_list(text, strlen(text), &list) == 0))
        return NULL;
    return "how many CPUs (1 or more), or a list of CPUs below 1024 such as 0-3,8 (4-4 for CPU 4 alone)";
}

static int parse_slow_speed(const char *text, struct asym_slow_speed *ret)
{
    static const struct {
        const char *unit;
        double share, khz;
    } units[] = {{"%", 0.01, 0}, {"kHz", 0, 1}, {"MHz", 0, 1e3}, {"GHz", 0, 1e6}};
    const size_t digits = strspn(text, "0123456789."), unit = digits + strspn(text + digits, " ");
    double number;
    if (asym_parse_number(text, digits, &number) < 0 || !(number > 0))
        return -EINVAL;
    for (size_t i = 0; i < ASYM_LENGTH(units); i++) {
        const struct asym_slow_speed speed = {.share = number * units[i].share,
                                              .khz = (uint64_t)ASYM_MIN(number * units[i].khz, 1e12)};
        if (strcmp(text + unit, units[i].unit) != 0)
            continue;
        if (speed.share > 1 || (units[i].khz > 0 && speed.khz == 0))
            return -EINVAL;
        *ret = speed;
        return 0;
    }
    return -EINVAL;
}

/* "50%", or "2-3:75%". */
static int take_slow_speed(const char *text, size_t len, struct asym_slow_speeds *s)
{
    char word[ASYM_VALUE_MAX + 1];
    struct asym_slow_speed speed;
    struct asym_mask named = {0};
    snprintf(word, sizeof word, "%.*s", (int)len, text);
    char *colon = strchr(word, ':');
    if (colon && (asym_mask_parse_list(word, (size_t)(colon - word), &named) < 0 || asym_mask_empty(&named)))
        return -EINVAL;
    const bool again = colon ? asym_mask_meets(&named, &s->cpus) : s->rest.share > 0 || s->rest.khz > 0;
    if (again || parse_slow_speed(colon ? colon + 1 : word, &speed) < 0)
        return -EINVAL;
    if (!colon)
        s->rest = speed;
    ASYM_MASK_FOREACH (c, &named)
        s->named[c] = speed;
    s->cpus = asym_mask_or(&s->cpus, &named);
    return 0;
}

int asym_slow_speeds_parse(const char *text, struct asym_slow_speeds *ret)
{
    struct asym_slow_speeds s = {.rest = {.khz = 0}};
    /* "1400 MHz" is one speed. */
    const bool is_one = parse_slow_speed(text, &s.rest) == 0;
    size_t n = 0;
    for (const char *p = text + strspn(text, " \t"); !is_one && *p; p += strspn(p, " \t"), n++) {
        const size_t len = strcspn(p, " \t");
        if (take_slow_speed(p, len, &s) < 0)
            return -EINVAL;
        p += len;
    }
    if (!is_one && n == 0)
        return -EINVAL;
    *ret = s;
    return 0;
}

const struct asym_slow_speed *asym_slow_speed_of(const struct asym_slow_speeds *speeds, int cpu)
{
    if (asym_mask_has(&speeds->cpus, cpu))
        return &speeds->named[cpu];
    return speeds->rest.share > 0 || speeds->rest.khz > 0 ? &speeds->rest : NULL;
}

static bool has_frequency(const struct asym_slow_speeds *speeds)
{
    ASYM_MASK_FOREACH (c, &speeds->cpus)
        if (speeds->named[c].khz > 0)
            return true;
    return speeds->rest.khz > 0;
}

static const char *check_slow_speed(const struct asym_settings *s, const char *text)
{
    struct asym_slow_speeds speeds;
    if (asym_slow_speeds_parse(text, &speeds) < 0)
        return "a share such as 50%, above 0% and up to 100%, or a frequency such as 1400MHz, or several with CPUs "
               "such "
               "as 2-3:75% 4-5:50%";
    return has_frequency(&speeds) && s->asymmetry.method != ASYM_METHOD_CPUFREQ
               ? "a share such as 50%; a frequency needs asymmetry.method = cpufreq"
               : NULL;
}

/* The working directory of the service is another one than that of asymd --dry-run. */
static const char *check_path(const struct asym_settings *s, const char *text)
{
    return *text == '/' ? NULL : "an absolute path";
}

static const struct {
    const char *section, *key;
    size_t offset; /* of the text in struct asym_settings */
    const char *(*check)(const struct asym_settings *s, const char *text);
} checks[] = {
    {"machine", "speeds", offsetof(struct asym_settings, machine.speeds), check_speeds},
    {"asymmetry", "slow", offsetof(struct asym_settings, asymmetry.slow), check_slow},
    {"asymmetry", "slow_speed", offsetof(struct asym_settings, asymmetry.slow_speed), check_slow_speed},
    {"asymd", "state_dir", offsetof(struct asym_settings, daemon.state_dir), check_path},
    {"counters", "profiles", offsetof(struct asym_settings, counters.profiles), check_path},
};

int asym_settings_check(const struct asym_settings *s, struct asym_error *err)
{
    int r = check_policy(s, err);
    for (size_t i = 0; r >= 0 && i < ASYM_LENGTH(checks); i++) {
        const char *text = *(char *const *)(const void *)((const char *)s + checks[i].offset);
        const char *accepted = checks[i].check(s, text), *section = checks[i].section, *key = checks[i].key;
        char shown[128];
        if (accepted)
            r = asym_fail(err, -EINVAL, "%.200s: %s.%s: '%s' is not accepted; accepted is %s",
                          asym_settings_origin(s, section, key), section, key,
                          asym_text_show(text, shown, sizeof shown), accepted);
    }
    return r < 0 ? r : asym_rules_check(s->rules, err);
}
