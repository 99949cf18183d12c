/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bounds on unread pages, and connections whose program has sent files. A child process runs the helper's role. The linker
 * puts __wrap_getsockopt below in place of getsockopt(2) (--wrap, tests/CMakeLists.txt), so that each connection has the user
 * that the test has chosen. The test needs no root.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/rtx/rtx-acceptor.h"
#include "linux/sys/helper-process.h"
#include "support/process.h"
#include "support/rtx-raw.h"
#include "support/test.h"

enum {
    PATIENCE_MS = 20000,
    USERS = 4,
    EACH = ASYM_RTXD_MAX_UNREAD / USERS,
    FIRST_USER = 3000,
};

/* The bound of each user on its own must not hide the common one. */
_Static_assert(USERS *EACH == ASYM_RTXD_MAX_UNREAD, "together they reach the bound");
_Static_assert(EACH < ASYM_RTXD_MAX_UNREAD_OF_USER, "none of them reaches its own");

static char dir[64], path[96];
static struct asym_helper helper = ASYM_HELPER_INIT("", "rtx");
static uid_t *user; /* of the next connection; shared with the helper */
static int programs[ASYM_RTXD_MAX_CONNECTIONS];
static size_t n_programs;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    const int r = __real_getsockopt(fd, level, name, value, size);
    if (r == 0 && level == SOL_SOCKET && name == SO_PEERCRED)
        ((struct ucred *)value)->uid = *user;
    return r;
}

static uint32_t flags; /* of the order to listen */

static void order(enum asym_rtxd_order_kind kind, uint32_t id, const int *fds, size_t n)
{
    const struct asym_rtxd_order o = {.kind = kind, .id = id, .flags = flags, .page_size = 4096};
    assert_int_equal(asym_helper_order(&helper, &o, sizeof o, fds, n), 0);
}

static void start_helper(void)
{
    int orders[2], reports[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders), 0);
    assert_int_equal(pipe2(reports, O_CLOEXEC | O_DIRECT), 0);
    helper.pid = asym_process_fork();
    assert_true(helper.pid >= 0);
    if (helper.pid == 0) {
        close(orders[0]);
        close(reports[0]);
        _exit(asym_rtxd_acceptor_run(orders[1], reports[1]));
    }
    close(orders[1]);
    close(reports[1]);
    helper.orders = orders[0];
    helper.reports = reports[0];
}

static void listen_at(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    order(ASYM_RTXD_ORDER_LISTEN, 0, &fd, 1);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/asym-acceptor-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/rtx", dir);
    user = mmap(NULL, sizeof *user, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(user != MAP_FAILED);
    start_helper();
    listen_at(path);
    return 0;
}

/* The kernel is one before Linux 6.16. */
static int set_up_older(void **state)
{
    flags = ASYM_RTXD_FILES_MAY_BE_PASSED;
    return set_up(state);
}

static int tear_down(void **state)
{
    flags = 0;
    (void)state;
    assert_int_equal(asym_process_signal(helper.pid, SIGKILL), 0);
    assert_int_equal(waitpid(helper.pid, NULL, 0), helper.pid);
    close(helper.orders);
    close(helper.reports);
    while (n_programs > 0)
        close(programs[--n_programs]);
    munmap(user, sizeof *user);
    unlink(path);
    return rmdir(dir);
}

/* Waits for a report of this kind, and drops those before it. */
static struct asym_rtxd_report wait_for_report(enum asym_rtxd_report_kind kind)
{
    struct pollfd ready = {.fd = helper.reports, .events = POLLIN};
    char packet[ASYM_HELPER_PACKET];
    const struct asym_rtxd_report *report = (const void *)packet;
    do {
        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
        assert_int_equal(asym_helper_report(&helper, packet, sizeof packet), sizeof *report);
    } while (report->kind != kind);
    return *report;
}

/* All earlier orders have taken effect when the helper answers. Returns the connections that it closed at once so far. */
static uint32_t ping(void)
{
    static uint32_t id;
    order(ASYM_RTXD_ORDER_PING, ++id, NULL, 0);
    return wait_for_report(ASYM_RTXD_REPORT_ALIVE).turned_away;
}

static int connect_as(uid_t uid)
{
    int fd = -1;
    *user = uid;
    for (int i = 0; i < PATIENCE_MS && (fd = asym_raw_connect(path)) < 0; i++)
        usleep(1000);
    assert_true(fd >= 0);
    return programs[n_programs++] = fd;
}

/* The helper accepts a connection of this user. Returns its socket; *ret_id: its id. */
static int come(uid_t uid, uint32_t *ret_id)
{
    const int fd = connect_as(uid);
    const struct asym_rtxd_report came = wait_for_report(ASYM_RTXD_REPORT_CAME);
    assert_int_equal(came.uid, uid);
    *ret_id = came.id;
    return fd;
}

/* A program of this user gets a page and does not read it. Returns its socket; *ret_id: the connection's id. */
static int get_page_of(uid_t uid, uint32_t *ret_id)
{
    const int fd = come(uid, ret_id);
    const int files[] = {memfd_create("page", MFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
    assert_true(files[0] >= 0 && files[1] >= 0);
    order(ASYM_RTXD_ORDER_GRANT, *ret_id, files, 2);
    close(files[0]);
    close(files[1]);
    ping();
    return fd;
}

static int get_page(uid_t uid)
{
    uint32_t id;
    return get_page_of(uid, &id);
}

static void read_page(int fd)
{
    int memfd, event;
    assert_true(asym_raw_receive(fd, PATIENCE_MS, &memfd, &event));
    close(memfd);
    close(event);
}

/* The helper closes the connection at once and reports nothing but the number. */
static void expect_refusal(uid_t uid)
{
    const uint32_t before = ping();
    assert_true(asym_raw_is_closed(connect_as(uid), PATIENCE_MS));
    assert_int_equal(ping(), before + 1);
}

TEST_WITH(all_users_together_have_few_unread_pages, set_up, tear_down)
{
    int first = -1, of_root = -1;
    uint32_t id;
    /* Those of root do not count. */
    for (int i = 0; i < EACH; i++)
        of_root = get_page(0);
    for (uid_t u = FIRST_USER; u < FIRST_USER + USERS; u++)
        for (int i = 0; i < EACH; i++)
            first = get_page(u);
    for (uid_t u = FIRST_USER; u < FIRST_USER + USERS; u++)
        expect_refusal(u);
    /* A user without an unread page and root are accepted. */
    come(FIRST_USER + USERS, &id);
    come(0, &id);
    read_page(of_root);
    expect_refusal(FIRST_USER);
    /* With one page read, any of the users gets one more. */
    read_page(first);
    get_page(FIRST_USER);
    expect_refusal(FIRST_USER);
    expect_refusal(FIRST_USER + USERS - 1);
}

/* A program of this user gets a page and sends this file, or its own end of the connection (-1). Returns its socket. */
static int break_protocol(uid_t uid, int file)
{
    uint32_t id;
    const int fd = get_page_of(uid, &id), passed = file < 0 ? fd : file;
    assert_int_equal(asym_raw_send(fd, "", 1, &passed, 1), 0);
    assert_int_equal(wait_for_report(ASYM_RTXD_REPORT_BREACH).id, id);
    order(ASYM_RTXD_ORDER_CLOSE, id, NULL, 0);
    return fd;
}

/*
 * The helper has closed all that it was told to close, and this many descriptors are left. The number comes first: between two
 * closers there is a moment without one.
 */
static void wait_for_closers(long left)
{
    pid_t closer;
    for (int i = 0; i < PATIENCE_MS && asym_process_descriptors(helper.pid) > left; i += 10, usleep(10000))
        ping();
    assert_int_equal(asym_process_descriptors(helper.pid), left);
    for (int i = 0; i < PATIENCE_MS && asym_process_children(helper.pid, &closer, 1) > 0; i += 10, usleep(10000))
        ping();
    assert_int_equal(asym_process_children(helper.pid, &closer, 1), 0);
}

/*
 * The connection's own queue in the helper holds the last reference to the program's end, and that end holds the unread page.
 * The helper must drop the message: the kernel collects no cycle that a process can still reach.
 */
TEST_WITH(a_program_that_sent_its_own_end_leaves_nothing_behind, set_up_older, tear_down)
{
    const uid_t uid = FIRST_USER;
    ping();
    const long before = asym_process_descriptors(helper.pid);
    for (int i = 0; i < ASYM_RTXD_MAX_UNREAD_OF_USER; i++)
        close(break_protocol(uid, -1));
    n_programs = 0;
    wait_for_closers(before);
    get_page(uid);
}

/* The page stays unread, and counts, as long as the program has its end. */
TEST_WITH(a_program_that_sent_a_file_and_lives_keeps_its_unread_page, set_up_older, tear_down)
{
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int last = -1;
    ping();
    const long before = asym_process_descriptors(helper.pid);
    for (int i = 0; i < ASYM_RTXD_MAX_UNREAD_OF_USER; i++)
        last = break_protocol(FIRST_USER, i % 2 ? file : -1);
    wait_for_closers(before + ASYM_RTXD_MAX_UNREAD_OF_USER);
    expect_refusal(FIRST_USER);
    read_page(last);
    get_page(FIRST_USER);
    close(file);
}

TEST_MAIN
