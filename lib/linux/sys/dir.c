/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/dir.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static int32_t number_of(const char *name)
{
    int64_t n = 0;
    for (const char *c = name; *c; c++) {
        if (*c < '0' || *c > '9' || n > INT32_MAX / 10)
            return 0;
        n = n * 10 + (*c - '0');
    }
    return n <= INT32_MAX && name[0] != '0' ? (int32_t)n : 0;
}

int asym_dir_read(int fd, char *buf, size_t size, asym_dir_fn *fn, void *arg)
{
    const long n = syscall(SYS_getdents64, fd, buf, size);
    if (n < 0)
        return -errno;
    for (long at = 0; at < n;) {
        const struct asym_dir_entry *e = (const struct asym_dir_entry *)(const void *)(buf + at);
        const int32_t number = number_of(e->name);
        const int r = number > 0 ? fn(arg, number) : 0;
        if (r < 0)
            return r;
        at += e->size;
    }
    return n > 0;
}
