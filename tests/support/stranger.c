/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/stranger.h"

#include <fcntl.h>

#include "support/must.h"
#include "support/process.h"
#include "support/test.h"

#define NOBODY 65534

uid_t asym_stranger_uid(void)
{
    return geteuid() == 0 ? NOBODY : geteuid();
}

static void become_stranger(void)
{
    if (geteuid() == 0)
        MUST(asym_process_become(NOBODY) == 0);
}

pid_t asym_stranger_start(void (*run)(void *arg), void *arg)
{
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        become_stranger();
        alarm(60);
        run(arg);
        _exit(0);
    }
    return pid;
}

pid_t asym_stranger_exec(const char *const *argv, int out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", ASYM_LIVE_BIN, argv[0]);
    int fd = open(path, O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        if (out >= 0)
            MUST(dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0);
        become_stranger();
        fexecve(fd, (char *const *)(uintptr_t)argv, environ);
        _exit(127);
    }
    close(fd);
    return pid;
}
