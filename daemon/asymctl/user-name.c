/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/user-name.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"

/* The openings after which asymd names a user. The name of a program can hold a number of a user, too, so others do not count. */
static const char *const openings[] = {"set by ", "A rule that "};

const char *asym_name_user(const char *sentence, char *buf, size_t size)
{
    snprintf(buf, size, "%s", sentence);
    for (size_t i = 0; i < ASYM_LENGTH(openings); i++) {
        const size_t n = strlen(openings[i]);
        const struct passwd *user = NULL;
        unsigned uid;
        int end = 0;
        if (strncmp(sentence, openings[i], n) == 0 && sscanf(sentence + n, "uid %u%n", &uid, &end) == 1)
            user = getpwuid((uid_t)uid);
        if (user)
            snprintf(buf, size, "%s%s (uid %u)%s", openings[i], user->pw_name, uid, sentence + n + end);
    }
    return buf;
}
