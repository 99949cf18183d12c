/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The helper's side: a helper drops every privilege that its role does not need before it runs. */
#include "linux/sys/helper-child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "linux/sys/helper-internal.h"

#define NOBODY 65534

/* The access rights of the first version of Landlock (Linux 5.13); every later kernel has them. */
#define LANDLOCK_READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_EXECUTE)
#define LANDLOCK_WRITING                                                                                               \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                  \
     LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |                        \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                     \
     LANDLOCK_ACCESS_FS_MAKE_SYM)

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
 * PR_SET_KEEPCAPS keeps the one capability of a role across the change of user.
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

static bool has_capability(const struct __user_cap_data_struct data[2], unsigned capability)
{
    return data[capability / 32].permitted & (1U << capability % 32);
}

static int drop_capabilities(unsigned may)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct had[2], kept[2] = {{0, 0, 0}, {0, 0, 0}};
    if (syscall(SYS_capget, &header, had) < 0)
        return -errno;
    if (may & ASYM_HELPER_MAY_PTRACE && has_capability(had, CAP_SYS_PTRACE))
        kept[0].effective = kept[0].permitted = 1U << CAP_SYS_PTRACE;
    return syscall(SYS_capset, &header, kept) < 0 ? -errno : 0;
}

/*
 * The kernel does not let a process restricted by Landlock inspect a process outside of its domain. A role that reads /proc of
 * other processes gets RLIMIT_FSIZE 0 instead: it cannot extend any file, and the user "nobody" can write to few files.
 */
static int restrict_files(unsigned may)
{
    const struct rlimit none = {0, 0};
    if (may & ASYM_HELPER_MAY_PTRACE)
        return setrlimit(RLIMIT_FSIZE, &none) < 0 ? -errno : 0;
    const struct landlock_ruleset_attr attr = {
        .handled_access_fs = LANDLOCK_WRITING | (may & ASYM_HELPER_MAY_READ_FILES ? 0 : LANDLOCK_READING)};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    /* EPERM: the system call filter of a container does not know the call. */
    if (ruleset < 0)
        return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -errno;
    int r = syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
    close(ruleset);
    return r;
}

static int confine(unsigned may)
{
    int r = restrict_helper();
    if (r == 0)
        r = become_nobody();
    if (r == 0)
        r = drop_capabilities(may);
    return r < 0 ? r : restrict_files(may);
}

static bool is_started_by_asymd(void)
{
    struct stat orders, reports;
    return fstat(ASYM_HELPER_ORDERS_FD, &orders) == 0 && S_ISSOCK(orders.st_mode) &&
           fstat(ASYM_HELPER_REPORTS_FD, &reports) == 0 && S_ISFIFO(reports.st_mode);
}

int asym_helper_main(const struct asym_helper_role *roles, size_t n_roles, int argc, char *const argv[])
{
    const struct asym_helper_role *role = NULL;
    for (size_t i = 0; argc == 2 && i < n_roles; i++)
        if (strcmp(roles[i].name, argv[1]) == 0)
            role = &roles[i];
    if (!role || !is_started_by_asymd())
        return 2;
    if (confine(role->may) < 0)
        return 1;
    fcntl(ASYM_HELPER_ORDERS_FD, F_SETFD, FD_CLOEXEC);
    fcntl(ASYM_HELPER_REPORTS_FD, F_SETFD, FD_CLOEXEC);
    return role->run(ASYM_HELPER_ORDERS_FD, ASYM_HELPER_REPORTS_FD);
}

static size_t take_fds(struct msghdr *m, int *ret_fds)
{
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(ret_fds, CMSG_DATA(c), n * sizeof(int));
    }
    return n;
}

ssize_t asym_helper_next_order(int orders, void *buf, size_t size, int *ret_fds, size_t *ret_n)
{
    struct iovec part = {buf, size};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(ASYM_HELPER_MAX_FDS * sizeof(int))];
    } control;
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    ssize_t n;
    do
        n = recvmsg(orders, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    *ret_n = take_fds(&m, ret_fds);
    return n;
}

int asym_helper_say(int reports, const void *report, size_t size)
{
    ssize_t n;
    do
        n = write(reports, report, size);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EIO;
}
