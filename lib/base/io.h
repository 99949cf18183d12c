/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Reads and writes as many bytes as the caller wants, however many system calls that takes. The functions are inline, so that the
 * base library itself makes no system call. The core and the policies must not call these: tests/purity.sh fails if they do.
 */
#ifndef ASYM_BASE_IO_H
#define ASYM_BASE_IO_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"

/** Reads up to size bytes. Returns their number, less than size at the end of the file; -errno. */
static inline ssize_t asym_read_all(int fd, void *buf, size_t size)
{
    size_t len = 0;
    while (len < size) {
        const ssize_t n = read(fd, (char *)buf + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/**
 * Reads a regular file of up to most bytes; flags: of openat, besides those of every reader. A NUL stands behind the text, which
 * the caller frees. Returns 0; -EINVAL: another kind of file; -EFBIG: a larger one; -errno.
 */
static inline int asym_read_file(int dir_fd, const char *path, int flags, size_t most, char **ret_text, size_t *ret_len)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size > most)
        return S_ISREG(st.st_mode) ? -EFBIG : -EINVAL;
    ASYM_AUTO_FREE char *text = malloc((size_t)st.st_size + 1);
    const ssize_t len = text ? asym_read_all(fd, text, (size_t)st.st_size) : -ENOMEM;
    if (len < 0)
        return (int)len;
    text[len] = '\0';
    *ret_text = ASYM_TAKE(text);
    *ret_len = (size_t)len;
    return 0;
}

/** Closes a stream of open_memstream. Returns 0; -ENOMEM, also where fclose returns 0 although there was no memory for the text. */
static inline int asym_close_text(FILE *out, char *const *text)
{
    return fclose(out) != 0 || !*text ? -ENOMEM : 0;
}

/** Writes all bytes. Returns 0; -errno, with some of them written. */
static inline int asym_write_all(int fd, const void *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t n = write(fd, (const char *)bytes + at, size - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += (size_t)n;
    }
    return 0;
}

/** The same, and returns only when the file is on the disk. */
static inline int asym_write_synced(int fd, const void *bytes, size_t size)
{
    const int r = asym_write_all(fd, bytes, size);
    return r < 0 || fsync(fd) == 0 ? r : -errno;
}

#endif
