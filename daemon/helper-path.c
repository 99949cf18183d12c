/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/helper-path.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/paths.h"

int asym_helper_path(char *ret, size_t size)
{
    char path[ASYM_PATH_SIZE];
    if (access(asym_path(ASYM_PATH_HELPER, path), X_OK) < 0)
        return -errno;
    if (strlen(path) >= size)
        return -ENAMETOOLONG;
    memcpy(ret, path, strlen(path) + 1);
    return 0;
}
