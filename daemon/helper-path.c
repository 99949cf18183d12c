/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/helper-path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

/* From the directory of the running program. */
static const char *const places[] = {"asymd-helper", ASYM_HELPER_FROM_SBIN};

int asym_helper_path(char *ret, size_t size)
{
    char self[PATH_MAX], path[PATH_MAX + 128];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return -errno;
    self[n] = '\0';
    *(strrchr(self, '/') + 1) = '\0';
    for (size_t i = 0; i < ASYM_LENGTH(places); i++) {
        snprintf(path, sizeof path, "%s%s", self, places[i]);
        if (access(path, X_OK) < 0)
            continue;
        if (strlen(path) >= size)
            return -ENAMETOOLONG;
        memcpy(ret, path, strlen(path) + 1);
        return 0;
    }
    return -ENOENT;
}
