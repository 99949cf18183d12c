/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/rtx-raw.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <asym/rtx.h>

bool asym_raw_home(const char *dir, uid_t uid, char *ret, size_t size)
{
    struct asym_rtx_user row = {.is_used = 1};
    char path[256];
    bool found = false;
    snprintf(path, sizeof path, "%s/" ASYM_RTX_USERS, dir);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found && row.is_used && read(fd, &row, sizeof row) == (ssize_t)sizeof row)
        found = row.is_used && row.uid == uid;
    if (fd >= 0)
        close(fd);
    snprintf(ret, size, "%s/" ASYM_RTX_HOME, dir, row.pool, row.number);
    return found;
}

void asym_raw_path(const char *dir, pid_t pid, uint64_t number, char *ret, size_t size)
{
    asym_raw_home(dir, geteuid(), ret, size);
    const size_t n = strlen(ret);
    snprintf(ret + n, size - n, "/" ASYM_RTX_FILE "%d.%" PRIu64, (int)pid, number);
}

int asym_raw_create(const char *dir, pid_t pid, uint64_t number)
{
    char path[256];
    asym_raw_path(dir, pid, number, path, sizeof path);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd;
}

int asym_raw_announce(int file)
{
    return fchmod(file, 0644) < 0 ? -errno : 0;
}

int asym_raw_fill(int file, pid_t tid, uint32_t notify_min_usec)
{
    const struct {
        struct asym_rtx_header header;
        struct asym_rtx_slot slot;
    } page = {.header = {.magic = ASYM_RTX_MAGIC,
                         .version = ASYM_RTX_VERSION,
                         .header_size = sizeof page.header,
                         .slot_size = sizeof page.slot,
                         .n_slots = 1,
                         .n_used = 1,
                         .notify_min_usec = notify_min_usec},
              .slot = {.tid = tid, .word = ASYM_RTX_WORKING | ASYM_RTX_MASTER}};
    return pwrite(file, &page, sizeof page, 0) == (ssize_t)sizeof page ? 0 : -errno;
}

int asym_raw_set_phase(int file, int is_serial)
{
    const uint64_t word = ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | (is_serial ? ASYM_RTX_SERIAL : 0);
    return pwrite(file, &word, sizeof word, sizeof(struct asym_rtx_header)) == (ssize_t)sizeof word ? 0 : -errno;
}

int asym_raw_wake(int file)
{
    static const uint32_t any = 1;
    return pwrite(file, &any, sizeof any, offsetof(struct asym_rtx_header, rung)) == (ssize_t)sizeof any ? 0 : -errno;
}

long long asym_raw_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
