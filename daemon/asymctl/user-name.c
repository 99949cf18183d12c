/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/user-name.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

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

/* The kernel cuts the name of a program to 15 bytes: no sentence that begins with a name has all these words. */
const char *asym_name_user_of_rule(const char *sentence, char *buf, size_t size)
{
    return name_user(sentence, "A rule that ", " has set (asymctl set ", buf, size);
}

const char *asym_name_leader(const struct asym_client_app *app)
{
    const char *last = strrchr(app->cgroup, '/');
    return app->pid == 0 && last && last[1] ? last + 1 : app->comm;
}

const char *asym_name_app(const struct asym_client_app *app, char *buf, size_t size)
{
    const char *name = asym_name_leader(app);
    if (app->processes > 1)
        snprintf(buf, size, "%s, %" PRIu32 " processes", name, app->processes);
    else
        snprintf(buf, size, "%s", name);
    return buf;
}
