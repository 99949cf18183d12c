/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/ini-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/macro.h"

#define FILE_MAX_ (1024 * 1024)

/* Character devices too: a user gives --config=/dev/null to load no configuration. */
int asym_ini_file(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s", path, strerror(-error));
    }
    if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
        return asym_fail(err, -EINVAL, "%.200s: %s; accepted is a file", path,
                         S_ISDIR(st.st_mode) ? "is a directory" : "is not a regular file");
    ASYM_AUTO_FREE char *text = malloc(FILE_MAX_ + 1);
    if (!text)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", path);
    const ssize_t len = asym_read_all(fd, text, FILE_MAX_ + 1);
    if (len < 0)
        return asym_fail(err, (int)len, "%.200s: %s", path, strerror((int)-len));
    if (len > FILE_MAX_)
        return asym_fail(err, -EINVAL, "%.200s: the file is larger than 1 MiB; accepted are up to 1 MiB", path);
    *ret_text = ASYM_TAKE(text);
    *ret_len = (size_t)len;
    return 0;
}
