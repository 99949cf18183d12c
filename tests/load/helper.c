/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A helper program for tests of what a helper may do, and of helpers that do not answer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/observe/proc-reader.h"
#include "linux/sys/helper-process.h"
#include "load/helper.h"

/* Repeats each order. */
static int echo(int orders, int reports)
{
    char text[ASYM_HELPER_PACKET];
    for (ssize_t n; (n = asym_helper_next_order(orders, text, sizeof text)) > 0;) {
        if (asym_helper_say(reports, text, (size_t)n) < 0)
            return 1;
    }
    return 0;
}

static int try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    signal(SIGXFSZ, SIG_IGN);
    const int error = flags == O_WRONLY && write(fd, "x", 1) < 0 ? errno : 0;
    close(fd);
    return error;
}

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Reports its child, and ends. The child closes its copies of the channels, and does not end. */
static int leave(int orders, int reports)
{
    const pid_t child = fork();
    if (child == 0) {
        close(orders);
        close(reports);
        alarm(60);
        for (;;)
            pause();
    }
    return asym_helper_say(reports, &child, sizeof child) < 0;
}

/* Takes one order, the path of a file; reports the state of this process. */
static int tell(int orders, int reports)
{
    char path[ASYM_HELPER_PACKET];
    int signal = 0;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    ssize_t n = asym_helper_next_order(orders, path, sizeof path - 1);
    if (n <= 0 || syscall(SYS_capget, &header, caps) < 0 || prctl(PR_GET_PDEATHSIG, &signal) < 0)
        return 1;
    path[n] = '\0';
    const struct test_helper_state state = {
        .uid = getuid(),
        .capabilities = caps[0].permitted | (uint64_t)caps[1].permitted << 32,
        .no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
        .dumpable = prctl(PR_GET_DUMPABLE) == 1,
        .death_signal = signal,
        .policy = sched_getscheduler(0),
        .n_fds = count_fds(),
        .read_error = try_open(path, O_RDONLY),
        .write_error = try_open(path, O_WRONLY),
        .send_error = send(orders, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0,
    };
    return asym_helper_say(reports, &state, sizeof state) < 0;
}

static int hang(int orders, int reports)
{
    while (pause() < 0)
        ;
    return 0;
}

static int stay(void)
{
    alarm(300);
    return pause();
}

/* Answers each request as the pid says: TEST_READER_* of load/helper.h, or the pid as the bits of the maps. */
static int read_what_the_order_names(int orders, int reports)
{
    struct asym_read_request request;
    while (asym_helper_next_order(orders, &request, sizeof request) == (ssize_t)sizeof request) {
        struct asym_read_answer answer = {.pid = request.pid,
                                          .what = request.what,
                                          .start = request.start,
                                          .tag = request.tag,
                                          .maps = (uint32_t)request.pid};
        if (request.pid == TEST_READER_ENDS)
            return 0;
        if (request.pid == TEST_READER_STAYS && fork() == 0)
            return stay();
        if (request.pid == TEST_READER_HANGS || request.pid == TEST_READER_STAYS)
            return hang(orders, reports);
        if (request.pid == TEST_READER_LIES)
            answer.start++;
        if (asym_helper_say(reports, &answer, offsetof(struct asym_read_answer, cmdline) + 1) < 0)
            return 1;
        if (request.pid == TEST_READER_ENDS_THEN)
            return 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int orders, int reports);
    } roles[] = {{"echo", echo}, {"tell", tell}, {"hang", hang}, {"leave", leave}};
    for (size_t i = 0; argc == 2 && i < ASYM_LENGTH(roles); i++)
        if (strcmp(roles[i].name, argv[1]) == 0)
            return asym_helper_main(roles[i].run);
    return argc == 1 ? asym_helper_main(read_what_the_order_names) : 2;
}
