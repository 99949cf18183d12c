/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the facts: in a helper, or at once where reading cannot block. */
#include "linux/observe/proc-reader-child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "linux/sys/helper-child.h"
#include "linux/sys/proc-maps.h"
#include "linux/sys/proc-parse.h"

_Static_assert(sizeof(struct asym_read_answer) <= ASYM_HELPER_PACKET, "an answer is one packet");

static uint64_t start_of(const struct asym_root *root, int32_t pid)
{
    char path[64], text[1024];
    struct asym_stat stat;
    snprintf(path, sizeof path, "proc/%d/stat", (int)pid);
    ssize_t n = asym_root_read(root, path, text, sizeof text);
    return n > 0 && asym_parse_stat(text, (size_t)n, &stat) == 0 ? stat.start : 0;
}

/* The kernel separates arguments by NULs; rules expect spaces. */
static void read_cmdline(const struct asym_root *root, int32_t pid, char *ret, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/cmdline", (int)pid);
    ssize_t n = asym_root_read(root, path, ret, size);
    n = ASYM_MAX(n, 0);
    while (n > 0 && ret[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (ret[i] == '\0')
            ret[i] = ' ';
    ret[n] = '\0';
}

static void read_build_id(const struct asym_root *root, int32_t pid, int (*build_id)(int fd, char *ret), char *ret)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/exe", (int)pid);
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || build_id(fd, ret) < 0)
        ret[0] = '\0';
}

void asym_proc_read(const struct asym_root *root, const struct asym_read_request *request,
                    int (*build_id)(int fd, char *ret), struct asym_read_answer *ret)
{
    *ret = (struct asym_read_answer){
        .pid = request->pid, .what = request->what, .start = request->start, .tag = request->tag};
    bool cut = false;
    if (request->what & ASYM_READ_MAPS)
        ret->maps = asym_maps_read(root, request->pid, request->maps_most, &cut);
    ret->maps_cut = cut;
    if (request->what & ASYM_READ_CMDLINE)
        read_cmdline(root, request->pid, ret->cmdline, sizeof ret->cmdline);
    if (request->what & ASYM_READ_BUILD_ID && build_id)
        read_build_id(root, request->pid, build_id, ret->build_id);
    /* This check comes last: the start time proves that one process had the PID during all readings. */
    if (root->live && start_of(root, request->pid) != request->start)
        ret->error = -ESRCH;
}

/* A file system that answers just before the deadline costs no CPU time, but it delays the reading of all other processes. */
static void read_and_measure(const struct asym_root *root, const struct asym_read_request *request,
                             int (*build_id)(int fd, char *ret), struct asym_read_answer *ret)
{
    const asym_usec cpu = asym_clock_process_cpu(), began = asym_clock_now();
    asym_proc_read(root, request, build_id, ret);
    const asym_usec spent = asym_clock_process_cpu() - cpu, took = asym_clock_now() - began;
    ret->cost = (uint32_t)ASYM_MAX(spent, took / 10);
}

int asym_proc_reader_run(int orders, int reports, int (*build_id)(int fd, char *ret))
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    struct asym_read_request request;
    struct asym_read_answer answer;
    int fds[ASYM_HELPER_MAX_FDS];
    size_t n_fds;
    ssize_t n;
    if (asym_root_open(NULL, &root, NULL) < 0)
        return 1;
    while ((n = asym_helper_next_order(orders, &request, sizeof request, fds, &n_fds)) > 0) {
        if (n != (ssize_t)sizeof request || n_fds > 0)
            return 1;
        read_and_measure(&root, &request, build_id, &answer);
        if (asym_helper_say(reports, &answer, offsetof(struct asym_read_answer, cmdline) + strlen(answer.cmdline) + 1) <
            0)
            return 1;
    }
    return 0;
}
