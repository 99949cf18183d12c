/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/proc-maps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

static bool has(const char *text, size_t len, const char *part)
{
    return memmem(text, len, part, strlen(part)) != NULL;
}

unsigned asym_maps_scan(const char *text, size_t len)
{
    static const struct {
        const char *part;
        unsigned bits;
    } rows[] = {
        {"/memfd:asym-rtx", ASYM_MAPS_PAGE},
        {"/libomp.so", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libomp-", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libomp5.so", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libiomp5.so", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libgomp.so", ASYM_MAPS_OPENMP},
        {"/libgomp-", ASYM_MAPS_OPENMP},
        {"/libtbb.so", ASYM_MAPS_COUNTS_LATE},
        {"/libtbb_debug.so", ASYM_MAPS_COUNTS_LATE},
    };
    unsigned bits = 0;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        bits |= has(text, len, rows[i].part) ? rows[i].bits : 0;
    return bits;
}

/* The part after the last newline is kept and completed by the next read. */
unsigned asym_maps_read(const struct asym_root *root, pid_t pid, size_t most, bool *ret_cut)
{
    char path[64], text[16384];
    size_t kept = 0, total = 0;
    unsigned bits = 0;
    snprintf(path, sizeof path, "proc/%d/maps", (int)pid);
    *ret_cut = false;
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_RDONLY | O_NONBLOCK);
    while (fd >= 0 && !*ret_cut) {
        ssize_t n = read(fd, text + kept, sizeof text - kept);
        if (n <= 0)
            break;
        const size_t len = kept + (size_t)n;
        const char *end = memrchr(text, '\n', len);
        const size_t whole = end ? (size_t)(end - text) + 1 : len;
        bits |= asym_maps_scan(text, whole);
        kept = len - whole;
        memmove(text, text + whole, kept);
        total += (size_t)n;
        *ret_cut = total >= most;
    }
    return bits;
}
