/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/helper-process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/thread.h"

/* The channels in the helper process. */
#define ASYM_HELPER_ORDERS_FD  3
#define ASYM_HELPER_REPORTS_FD 4

#define NOBODY                 65534

/*
 * The helper ends with asymd. The user "nobody" cannot trace it. No program that it executes gains a privilege. It does not inherit
 * a raised priority. asymd may have ended before the helper requested the signal. Then the pipe for reports has no reader, and
 * SIGPIPE kills the helper at its first report.
 */
static int restrict_helper(void)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    setpriority(PRIO_PROCESS, 0, 0);
    return 0;
}

/*
 * Where the service may not change its user (its unit has no CAP_SETUID), the helper stays root without capabilities.
 * PR_SET_KEEPCAPS keeps the one capability across the change of user.
 */
static int become_nobody(void)
{
    if (geteuid() != 0)
        return 0;
    if (prctl(PR_SET_KEEPCAPS, 1) < 0)
        return -errno;
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return errno == EPERM ? 0 : -errno;
    /* The kernel resets these two at a change of user. */
    return prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

/* It keeps CAP_SYS_PTRACE, to read /proc of other processes. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct had[2], kept[2] = {{0, 0, 0}, {0, 0, 0}};
    if (syscall(SYS_capget, &header, had) < 0)
        return -errno;
    kept[0].effective = kept[0].permitted = had[0].permitted & 1U << CAP_SYS_PTRACE;
    return syscall(SYS_capset, &header, kept) < 0 ? -errno : 0;
}

/*
 * The kernel refuses each write that extends a file. The helper does not use Landlock: then it could not inspect processes outside
 * of its domain.
 */
static int restrict_files(void)
{
    const struct rlimit none = {0, 0};
    return setrlimit(RLIMIT_FSIZE, &none) < 0 ? -errno : 0;
}

static int confine(void)
{
    int r = restrict_helper();
    if (r == 0)
        r = become_nobody();
    if (r == 0)
        r = drop_capabilities();
    return r < 0 ? r : restrict_files();
}

static bool is_started_by_asymd(void)
{
    struct stat orders, reports;
    return fstat(ASYM_HELPER_ORDERS_FD, &orders) == 0 && S_ISSOCK(orders.st_mode) &&
           fstat(ASYM_HELPER_REPORTS_FD, &reports) == 0 && S_ISFIFO(reports.st_mode);
}

int asym_helper_main(int (*run)(int orders, int reports))
{
    if (!is_started_by_asymd())
        return 2;
    if (confine() < 0)
        return 1;
    fcntl(ASYM_HELPER_ORDERS_FD, F_SETFD, FD_CLOEXEC);
    fcntl(ASYM_HELPER_REPORTS_FD, F_SETFD, FD_CLOEXEC);
    return run(ASYM_HELPER_ORDERS_FD, ASYM_HELPER_REPORTS_FD);
}

ssize_t asym_helper_next_order(int orders, void *buf, size_t size)
{
    ssize_t n;
    do
        n = recv(orders, buf, size, 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

int asym_helper_say(int reports, const void *report, size_t size)
{
    ssize_t n;
    do
        n = write(reports, report, size);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EIO;
}

#define ORDERS_SIZE (1 << 20)

/* The four ends of the channels; -1: closed. */
struct channels {
    int orders[2], reports[2]; /* [0] asymd's end, [1] the helper's end */
};

static void close_channels(struct channels *c)
{
    for (size_t i = 0; i < 2; i++) {
        asym_close_p(&c->orders[i]);
        asym_close_p(&c->reports[i]);
    }
}

/* Neither end of the helper may have the number that the other one gets there: the first step would close it. */
static int lift(int *fd)
{
    const int higher = *fd > ASYM_HELPER_REPORTS_FD ? *fd : fcntl(*fd, F_DUPFD_CLOEXEC, ASYM_HELPER_REPORTS_FD + 1);
    if (higher < 0)
        return -errno;
    if (higher != *fd)
        close(*fd);
    *fd = higher;
    return 0;
}

/*
 * asymd's end accepts no message: the helper could otherwise send one with a file descriptor, which asymd would close together
 * with the socket. asymd shuts the end down before the helper gets the other one.
 */
static int open_channels(struct channels *ret)
{
    struct channels c = {{-1, -1}, {-1, -1}};
    int pipe[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, c.orders) < 0)
        return -errno;
    /* The buffer holds some hundred orders; fewer where the kernel limits it. */
    setsockopt(c.orders[0], SOL_SOCKET, SO_SNDBUF, &(int){ORDERS_SIZE}, sizeof(int));
    int r = shutdown(c.orders[0], SHUT_RD) < 0 || fcntl(c.orders[0], F_SETFL, O_NONBLOCK) < 0 ||
                    pipe2(pipe, O_CLOEXEC | O_DIRECT) < 0
                ? -errno
                : 0;
    if (r == 0) {
        c.reports[0] = pipe[0];
        c.reports[1] = pipe[1];
        /* This affects asymd's end only: each end of a pipe is an open file of its own. */
        r = fcntl(pipe[0], F_SETFL, O_NONBLOCK | O_DIRECT) < 0 ? -errno : 0;
    }
    if (r == 0)
        r = lift(&c.orders[1]);
    if (r == 0)
        r = lift(&c.reports[1]);
    if (r < 0) {
        close_channels(&c);
        return r;
    }
    *ret = c;
    return 0;
}

static int add_actions(posix_spawn_file_actions_t *actions, const struct channels *c)
{
    const int steps[][2] = {{c->orders[1], ASYM_HELPER_ORDERS_FD}, {c->reports[1], ASYM_HELPER_REPORTS_FD}};
    int r = 0;
    for (int fd = STDIN_FILENO; r == 0 && fd <= STDERR_FILENO; fd++)
        r = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
    for (size_t i = 0; r == 0 && i < ASYM_LENGTH(steps); i++)
        r = posix_spawn_file_actions_adddup2(actions, steps[i][0], steps[i][1]);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(actions, ASYM_HELPER_REPORTS_FD + 1);
    return -r;
}

/* The helper does not inherit asymd's scheduling policy, nor its signal mask and handlers. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    const struct sched_param param = {.sched_priority = 0};
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETSCHEDULER | POSIX_SPAWN_SETPGROUP);
    if (r == 0)
        r = posix_spawnattr_setschedpolicy(attributes, SCHED_OTHER);
    if (r == 0)
        r = posix_spawnattr_setschedparam(attributes, &param);
    if (r == 0)
        r = posix_spawnattr_setsigmask(attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attributes, &all);
    return -r;
}

static int spawn(const struct asym_helper *h, const struct channels *c, pid_t *ret_pid)
{
    char name[] = "asymd-helper", *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *const argv[] = {name, (char *)(uintptr_t)h->argument, NULL};
    int r = -posix_spawn_file_actions_init(&actions);
    if (r < 0)
        return r;
    r = -posix_spawnattr_init(&attributes);
    if (r == 0) {
        r = add_actions(&actions, c);
        if (r == 0)
            r = set_attributes(&attributes);
        if (r == 0)
            r = -posix_spawn(ret_pid, h->program, &actions, &attributes, argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

int asym_helper_start(struct asym_helper *h)
{
    struct channels c;
    pid_t pid;
    if (asym_helper_reap(h) >= ASYM_HELPER_MAX_DYING)
        return -EBUSY;
    int r = open_channels(&c);
    if (r < 0)
        return r;
    r = spawn(h, &c, &pid);
    if (r < 0) {
        close_channels(&c);
        return r;
    }
    close(c.orders[1]);
    close(c.reports[1]);
    /* The helper has inherited asymd's affinity. If the kernel refuses another one, the helper works there. */
    if (asym_mask_empty(&h->affinity))
        asym_thread_get_mask(0, &h->affinity);
    else
        asym_thread_set_mask(pid, &h->affinity, false);
    h->pid = pid;
    h->orders = c.orders[0];
    h->reports = c.reports[0];
    return 0;
}

/*
 * pid is a helper that was not reaped yet, or whose group has a process that was not: no other process can have the number.
 * Reaps the processes of the group that have ended. Returns whether no child of this process is left in it.
 */
static bool is_gone(pid_t pid)
{
    pid_t r;
    do
        r = waitpid(-pid, NULL, WNOHANG);
    while (r > 0 || (r < 0 && errno == EINTR));
    return r != 0;
}

void asym_helper_kill(struct asym_helper *h)
{
    asym_close_p(&h->orders);
    asym_close_p(&h->reports);
    h->orders = h->reports = -1;
    if (h->pid <= 1)
        return;
    kill(h->pid, SIGKILL);
    /* asym_helper_start() has checked that dying[] has room. */
    if (!is_gone(h->pid))
        h->dying[h->n_dying++] = h->pid;
    h->pid = 0;
}

size_t asym_helper_reap(struct asym_helper *h)
{
    size_t kept = 0;
    for (size_t i = 0; i < h->n_dying; i++)
        if (!is_gone(h->dying[i]))
            h->dying[kept++] = h->dying[i];
    return h->n_dying = kept;
}

int asym_helper_order(const struct asym_helper *h, const void *order, size_t size)
{
    if (size == 0 || size > ASYM_HELPER_PACKET)
        return -EINVAL;
    if (h->orders < 0)
        return -ENOTCONN;
    if (send(h->orders, order, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return 0;
    switch (errno) {
    case EAGAIN:
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
        return -EAGAIN;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        return -ENOTCONN;
    default:
        return -errno;
    }
}

ssize_t asym_helper_report(const struct asym_helper *h, void *buf, size_t size)
{
    if (h->reports < 0)
        return -ENOTCONN;
    ssize_t n = read(h->reports, buf, size);
    if (n > 0)
        return n;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : -ENOTCONN;
}
