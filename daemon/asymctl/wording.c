/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/wording.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "base/text.h"
#include "report/json.h"
#include "top/top.h"

/* Times and sizes as people read them. Each function returns buf, of ASYM_UNITS_SIZE bytes. */

const char *asym_units_duration(asym_usec t, char *buf)
{
    static const struct {
        const char *name;
        asym_usec usec;
    } units[] = {{"d", 86400 * ASYM_SEC}, {"h", 3600 * ASYM_SEC}, {"min", 60 * ASYM_SEC},
                 {"s", ASYM_SEC},         {"ms", ASYM_MSEC},      {"us", 1}};
    size_t i = 0;
    while (i + 1 < ASYM_LENGTH(units) && t < units[i].usec)
        i++;
    const uint64_t n = t / units[i].usec;
    /* Minutes go with hours, hours with days; seconds and less stand alone. */
    const uint64_t rest = i < 2 ? t % units[i].usec / units[i + 1].usec : 0;
    if (rest > 0)
        snprintf(buf, ASYM_UNITS_SIZE, "%" PRIu64 " %s %" PRIu64 " %s", n, units[i].name, rest, units[i + 1].name);
    else
        snprintf(buf, ASYM_UNITS_SIZE, "%" PRIu64 " %s", n, units[i].name);
    return buf;
}

const char *asym_units_bytes(uint64_t bytes, char *buf)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t i = 0;
    for (; value >= 1024 && i + 1 < ASYM_LENGTH(units); i++)
        value /= 1024;
    snprintf(buf, ASYM_UNITS_SIZE, i == 0 ? "%.0f %s" : "%.1f %s", value, units[i]);
    return buf;
}

static void put_time(asym_usec t, const char *format, char *buf, size_t size)
{
    const time_t seconds = (time_t)(t / ASYM_SEC);
    struct tm tm;
    buf[0] = '\0';
    if (localtime_r(&seconds, &tm))
        strftime(buf, size, format, &tm);
}

const char *asym_units_date(asym_usec t, char *buf)
{
    put_time(t, "%Y-%m-%d %H:%M:%S", buf, ASYM_UNITS_SIZE);
    return buf;
}

const char *asym_units_time_ms(asym_usec t, char *buf)
{
    char time[16];
    put_time(t, "%H:%M:%S", time, sizeof time);
    snprintf(buf, ASYM_UNITS_SIZE, "%s.%03u", time, (unsigned)(t % ASYM_SEC / ASYM_MSEC));
    return buf;
}

/*
 * The name of a user, in sentences of asymd. asymd itself looks up no names: that could make it wait for a server. Both
 * functions copy a text and, where asymd has put the number of a user and this machine knows the user, add the name. A program
 * can have a name such as "set by uid 0", so they compare all words around the number.
 */

/* Finds the number of a user at the beginning of text, with these words behind it. Returns the user; NULL: there is none. */
static const struct passwd *find_user(const char *text, const char *behind, const char **ret_end)
{
    char *end;
    errno = 0;
    const unsigned long uid = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : ULONG_MAX;
    if (errno != 0 || uid > UINT32_MAX || strncmp(end, behind, strlen(behind)) != 0)
        return NULL;
    *ret_end = end;
    return getpwuid((uid_t)uid);
}

static const char *name_user(const char *text, const char *before, const char *behind, char *buf, size_t size)
{
    static const char number[] = "uid ";
    const size_t n = strlen(before), digits = n + strlen(number);
    const char *end = NULL;
    const struct passwd *user = NULL;
    if (strncmp(text, before, n) == 0 && strncmp(text + n, number, strlen(number)) == 0)
        user = find_user(text + digits, behind, &end);
    if (user)
        snprintf(buf, size, "%s%s (uid %u)%s", before, user->pw_name, (unsigned)user->pw_uid, end);
    else
        snprintf(buf, size, "%s", text);
    return buf;
}

const char *asym_name_user_of_policy(const char *reason, char *buf, size_t size)
{
    return name_user(reason, "set by ", " over the bus", buf, size);
}

const char *asym_name_member(const json_t *object, const char *key, char *buf, size_t size)
{
    return asym_text_show(asym_json_get_text(object, key), buf, size);
}

const char *asym_name_policy(const json_t *status, char buf[ASYM_POLICY_NAMED])
{
    char policy[128], reason[2048], named[1024];
    asym_name_user_of_policy(asym_json_get_text(status, "policy_reason"), named, sizeof named);
    snprintf(buf, ASYM_POLICY_NAMED, "%s (%s)", asym_name_member(status, "policy", policy, sizeof policy),
             asym_text_show(named, reason, sizeof reason));
    return buf;
}

/* The kernel cuts the name of a program to 15 bytes: no sentence that begins with a name has all these words. */
const char *asym_name_user_of_rule(const char *sentence, char *buf, size_t size)
{
    return name_user(sentence, "A rule that ", " has set (asymctl set ", buf, size);
}

const char *asym_name_app(const json_t *app, char *buf, size_t size)
{
    const int64_t n = asym_json_get_int(app, "processes");
    if (n > 1)
        snprintf(buf, size, "%s, %" PRId64 " processes", asym_top_name(app), n);
    else
        snprintf(buf, size, "%s", asym_top_name(app));
    return buf;
}

/* The parts of a line about a decision of asymd, in the answers of asymctl why and asymctl watch. */

const char *asym_decision_cpus(const json_t *decision, char buf[ASYM_DECISION_CPUS])
{
    const int from = (int)asym_json_get_int(decision, "from"), to = (int)asym_json_get_int(decision, "to");
    char before[12] = "-", after[12] = "-";
    if (from >= 0)
        snprintf(before, sizeof before, "%d", from);
    if (to >= 0)
        snprintf(after, sizeof after, "%d", to);
    snprintf(buf, ASYM_DECISION_CPUS, "%3s->%-3s", before, after);
    return buf;
}

const char *asym_decision_what(const json_t *decision, char *buf, size_t size)
{
    char shown[64], why[512];
    asym_name_member(decision, "what", shown, sizeof shown);
    asym_name_member(decision, "reason", why, sizeof why);
    snprintf(buf, size, *why ? "%s (%s)" : "%s", shown, why);
    return buf;
}
