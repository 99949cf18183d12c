/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The helper that accepts connections, on a kernel that cannot keep files out of messages (SO_PASSRIGHTS). The test sends
 * the orders of asymd. To make a close hang, a thread of the test holds the lock of an epoll instance with an eventfd: the
 * thread writes an event to memory that userfaultfd never provides. The test needs root, for a process of another user and
 * for userfaultfd.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/rtx/rtx-acceptor.h"
#include "linux/rtx/rtx-closer.h"
#include "linux/rtx/rtx-link.h"
#include "support/process.h"
#include "support/rtx-raw.h"
#include "support/test.h"

enum {
    STRANGER = 2002,
    HUNG_BY_MS = 3 * ASYM_RTXD_HUNG_MS,
    PATIENCE_MS = 30000, /* for an event that comes within a second on an idle machine */
    LIMIT = 64,          /* descriptors of the helper in the test with few */
};

static char dir[64], path[96];
static struct asym_rtxd_link *helper;
/* Pipes to processes that wait until the test closes them. */
static int ends[ASYM_RTXD_MAX_CONNECTIONS];
static size_t n_ends;

static struct {
    int uffd, epoll, event;
    void *memory;
    pthread_t thread;
    atomic_bool end;
} hang;

static void *hold_lock(void *arg)
{
    (void)arg;
    while (!hang.end)
        epoll_wait(hang.epoll, hang.memory, 1, 10);
    return NULL;
}

/* An eventfd whose last close hangs until end_hang(). */
static int make_hanging_event(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct epoll_event in = {.events = EPOLLIN};
    hang.uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    assert_true(hang.uffd >= 0);
    assert_int_equal(ioctl(hang.uffd, UFFDIO_API, &api), 0);
    hang.memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(hang.memory != MAP_FAILED);
    struct uffdio_register range = {.range = {.start = (uintptr_t)hang.memory, .len = 4096},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    assert_int_equal(ioctl(hang.uffd, UFFDIO_REGISTER, &range), 0);
    hang.epoll = epoll_create1(EPOLL_CLOEXEC);
    hang.event = eventfd(1, EFD_CLOEXEC);
    assert_int_equal(epoll_ctl(hang.epoll, EPOLL_CTL_ADD, hang.event, &in), 0);
    assert_int_equal(pthread_create(&hang.thread, NULL, hold_lock, NULL), 0);
    /* The thread waits for the memory. */
    struct pollfd fault = {.fd = hang.uffd, .events = POLLIN};
    assert_int_equal(poll(&fault, 1, PATIENCE_MS), 1);
    assert_int_equal(fault.revents, POLLIN);
    return hang.event;
}

/* The waiting thread goes on when userfaultfd is closed. */
static void end_hang(void)
{
    if (hang.uffd < 0)
        return;
    hang.end = true;
    close(hang.uffd);
    pthread_join(hang.thread, NULL);
    close(hang.epoll);
    munmap(hang.memory, 4096);
}

static int set_up(void **state)
{
    (void)state;
    if (geteuid() != 0)
        fail_msg("%s", "setresuid: Operation not permitted (run as root)");
    memset(&hang, 0, sizeof hang);
    hang.uffd = -1;
    snprintf(dir, sizeof dir, "/tmp/asym-acceptor-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    snprintf(path, sizeof path, "%s/rtx", dir);
    helper = asym_rtxd_link_new(ASYM_TEST_BIN "/daemon/asymd-helper");
    assert_non_null(helper);
    return 0;
}

static void close_ends(void)
{
    while (n_ends > 0)
        close(ends[--n_ends]);
}

static int tear_down(void **state)
{
    (void)state;
    end_hang();
    close_ends();
    helper->close(helper);
    while (wait(NULL) > 0)
        ;
    unlink(path);
    return rmdir(dir);
}

static void order(enum asym_rtxd_order_kind kind, uint32_t id, const int *fds, size_t n)
{
    const struct asym_rtxd_order o = {
        .kind = kind, .id = id, .page_size = 4096, .flags = ASYM_RTXD_FILES_MAY_BE_PASSED};
    assert_int_equal(helper->order(helper, &o, fds, n), 0);
}

static void start_helper(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(helper->start(helper, NULL), 0);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(chmod(path, 0666), 0);
    order(ASYM_RTXD_ORDER_LISTEN, 0, &fd, 1);
    close(fd);
}

/* Waits ms milliseconds for the next report of this kind. Drops other reports before it. */
static bool next_report(enum asym_rtxd_report_kind kind, int ms, struct asym_rtxd_report *ret)
{
    const long long end = asym_raw_ms() + ms;
    while (asym_raw_ms() < end) {
        const ssize_t n = helper->report(helper, ret);
        if (n == (ssize_t)sizeof *ret && ret->kind == kind)
            return true;
        assert_true(n == (ssize_t)sizeof *ret || n == -EAGAIN);
        if (n < 0)
            usleep(1000);
    }
    return false;
}

static uint64_t cpu_of_helper(uint32_t id)
{
    struct asym_rtxd_report alive;
    order(ASYM_RTXD_ORDER_PING, id, NULL, 0);
    assert_true(next_report(ASYM_RTXD_REPORT_ALIVE, PATIENCE_MS, &alive));
    assert_int_equal(alive.id, id);
    return alive.cpu_usec;
}

static int connect_helper(void)
{
    int fd = -1;
    for (int i = 0; i < 5000 && (fd = asym_raw_connect(path)) < 0; i++)
        usleep(1000);
    assert_true(fd >= 0);
    return fd;
}

/* Connects, and waits until the helper reports the connection. Returns its id. */
static uint32_t come(int *ret_fd)
{
    struct asym_rtxd_report came;
    *ret_fd = connect_helper();
    assert_true(next_report(ASYM_RTXD_REPORT_CAME, PATIENCE_MS, &came));
    return came.id;
}

/* A closer of the helper sleeps uninterruptibly in its exit. */
static bool a_close_hangs(void)
{
    pid_t helper_pid = 0, closers[ASYM_RTXD_MAX_CLOSERS];
    size_t n = 0;
    if (asym_process_children(getpid(), &helper_pid, 1) == 1)
        n = asym_process_children(helper_pid, closers, ASYM_RTXD_MAX_CLOSERS);
    while (n > 0 && asym_process_state(closers[n - 1]) != 'D')
        n--;
    return n > 0;
}

static void check_root_is_not_blamed(void)
{
    struct asym_rtxd_report report;
    int fd;
    assert_false(next_report(ASYM_RTXD_REPORT_HUNG, HUNG_BY_MS, &report));
    assert_true(a_close_hangs());
    assert_true(come(&fd) > 0);
    close(fd);
}

static pid_t pid_of_helper(void)
{
    char file[64];
    int child = 0;
    snprintf(file, sizeof file, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(file, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &child), 1);
    fclose(f);
    return child;
}

/* The signal takes effect some time after the call, so wait. */
static void stop_process(pid_t pid)
{
    char file[64], state = '?';
    snprintf(file, sizeof file, "/proc/%d/stat", (int)pid);
    asym_process_signal(pid, SIGSTOP);
    for (int i = 0; i < 5000 && state != 'T'; i++, usleep(1000)) {
        FILE *f = fopen(file, "re");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
        fclose(f);
    }
    assert_int_equal(state, 'T');
}

/* The previous helper had these files. */
TEST_WITH(a_close_for_no_connection_that_hangs_is_no_fault_of_roots, set_up, tear_down)
{
    start_helper();
    const int event = make_hanging_event();
    order(ASYM_RTXD_ORDER_HOLD, 0, &event, 1);
    /* Then the helper has the last descriptor of it. */
    close(event);
    order(ASYM_RTXD_ORDER_CLOSE, 0, NULL, 0);
    check_root_is_not_blamed();
}

TEST_WITH(a_page_for_no_connection_is_no_fault_of_roots, set_up, tear_down)
{
    start_helper();
    const int fds[] = {memfd_create("page", MFD_CLOEXEC), make_hanging_event()};
    const pid_t pid = pid_of_helper();
    stop_process(pid);
    order(ASYM_RTXD_ORDER_GRANT, 12345, fds, 2);
    close(fds[0]);
    close(fds[1]);
    asym_process_signal(pid, SIGCONT);
    check_root_is_not_blamed();
}

/*
 * asymd orders a close before the helper has seen that a message waits on the connection. A close for the same user hangs,
 * so the helper must keep the connection.
 */
TEST_WITH(a_connection_that_waits_to_be_closed_takes_no_cpu_time, set_up, tear_down)
{
    int first, second;
    start_helper();
    const uint32_t ids[] = {come(&first), come(&second)};
    const pid_t pid = pid_of_helper();
    const int event = make_hanging_event(), file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    order(ASYM_RTXD_ORDER_HOLD, ids[0], &event, 1);
    close(event);
    order(ASYM_RTXD_ORDER_CLOSE, ids[0], NULL, 0);
    assert_true(cpu_of_helper(1) > 0);
    usleep(100000);
    stop_process(pid);
    order(ASYM_RTXD_ORDER_CLOSE, ids[1], NULL, 0);
    assert_int_equal(asym_raw_send(second, "", 1, &file, 1), 0);
    asym_process_signal(pid, SIGCONT);
    const uint64_t before = cpu_of_helper(2);
    sleep(1);
    const uint64_t used = cpu_of_helper(3) - before;
    print_message("%llu us of CPU time in a second\n", (unsigned long long)used);
    assert_true(used < 200000);
    close(first);
    close(second);
    close(file);
}

/* The link counts it with the killed helpers, see test-helper.c. */
TEST_WITH(a_close_that_hangs_longer_than_its_helper_lives_is_counted, set_up, tear_down)
{
    int fd;
    siginfo_t ended = {0};
    start_helper();
    const uint32_t id = come(&fd);
    const pid_t pid = pid_of_helper();
    const int event = make_hanging_event();
    order(ASYM_RTXD_ORDER_HOLD, id, &event, 1);
    close(event);
    order(ASYM_RTXD_ORDER_CLOSE, id, NULL, 0);
    for (int i = 0; i < PATIENCE_MS && !a_close_hangs(); i++)
        usleep(1000);
    assert_true(a_close_hangs());
    helper->kill(helper);
    /* A helper that has ended at once has been reaped by the order to end it. */
    if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) < 0)
        assert_int_equal(errno, ECHILD);
    helper->reap(helper);
    /* The helper has been reaped. Its closer is in its group, and a child of this process. */
    assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT), -1);
    assert_int_equal(waitid(P_PGID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    close(fd);
    end_hang();
    hang.uffd = -1;
    for (int i = 0; i < 5000 && waitid(P_PGID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0; i++, usleep(1000))
        helper->reap(helper);
    assert_int_equal(waitid(P_PGID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT), -1);
}

static size_t count_descriptors(pid_t pid)
{
    char name[64];
    size_t n = 0;
    snprintf(name, sizeof name, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(name);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* Uses up the descriptors of the helper. */
static void fill_descriptors(pid_t pid)
{
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (uint32_t i = 0; count_descriptors(pid) < LIMIT; i++) {
        order(ASYM_RTXD_ORDER_HOLD, 99, &file, 1);
        cpu_of_helper(100 + i);
    }
    close(file);
}

/* A process of the stranger connects and passes this file. */
static void pass_as_stranger(int file)
{
    int status;
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        asym_raw_become(STRANGER);
        const int fd = asym_raw_connect(path);
        _exit(fd >= 0 && asym_raw_send(fd, "", 1, &file, 1) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- Pages that a program does not read, and the limits of users. ---- */

static void grant(uint32_t id)
{
    const int fds[] = {memfd_create("page", MFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
    order(ASYM_RTXD_ORDER_GRANT, id, fds, 2);
    close(fds[0]);
    close(fds[1]);
}

/* A process of this user connects n times. It ends at close_ends(). */
static void connect_as(uid_t uid, int n)
{
    int fds[2];
    char byte;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    const pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[1]);
        asym_raw_become(uid);
        for (int i = 0; i < n; i++)
            if (asym_raw_connect(path) < 0)
                _exit(1);
        _exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(fds[0]);
    ends[n_ends++] = fds[1];
}

/* Returns whether the helper closes a connection of this user at once. */
static bool is_turned_away(uid_t uid)
{
    int status;
    const pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        asym_raw_become(uid);
        const int fd = asym_raw_connect(path);
        _exit(fd >= 0 && asym_raw_is_closed(fd, PATIENCE_MS) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status == 0;
}

/* asymd drops a program that does not fill its page. The page stays in the queue of the program. */
static void come_and_do_not_read(int fds[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = come(&fds[i]);
        grant(id);
        order(ASYM_RTXD_ORDER_CLOSE, id, NULL, 0);
    }
}

/* Root has the same limit as other users. */
TEST_WITH(a_user_has_few_pages_that_its_programs_do_not_read, set_up, tear_down)
{
    struct asym_rtxd_report report;
    int fds[ASYM_RTXD_MAX_UNREAD_OF_USER], memfd, event;
    start_helper();
    cpu_of_helper(1);
    const size_t before = count_descriptors(pid_of_helper());
    come_and_do_not_read(fds, ASYM_RTXD_MAX_UNREAD_OF_USER);
    const int refused = connect_helper();
    assert_true(asym_raw_is_closed(refused, PATIENCE_MS));
    assert_false(next_report(ASYM_RTXD_REPORT_CAME, 0, &report));
    close(refused);
    connect_as(STRANGER, 1);
    assert_true(next_report(ASYM_RTXD_REPORT_CAME, PATIENCE_MS, &report));
    assert_int_equal(report.uid, STRANGER);
    close_ends();
    assert_true(next_report(ASYM_RTXD_REPORT_GONE, PATIENCE_MS, &report));
    order(ASYM_RTXD_ORDER_CLOSE, report.id, NULL, 0);
    /* A program reads its page, and another one ends. Each makes room for one. */
    assert_true(asym_raw_receive(fds[0], 0, &memfd, &event));
    close(memfd);
    close(event);
    close(fds[1]);
    come_and_do_not_read(fds, 2);
    for (int i = 0; i < ASYM_RTXD_MAX_UNREAD_OF_USER; i++)
        close(fds[i]);
    /* A ping makes the helper close the connections. A closer closes the eventfds. */
    for (uint32_t i = 2; i < 5000 && count_descriptors(pid_of_helper()) > before; i++, usleep(1000))
        cpu_of_helper(i);
    assert_int_equal(count_descriptors(pid_of_helper()), before);
}

/* Users with a connection for each place that is not root's leave root its own ones. */
TEST_WITH(connections_of_many_users_leave_root_its_places, set_up, tear_down)
{
    enum {
        OF_USER = ASYM_RTXD_MAX_UNANSWERED_OF_USER,
        PLACES = ASYM_RTXD_MAX_CONNECTIONS - OF_USER,
        USERS = PLACES / OF_USER,
        BEFORE_ANSWER = ASYM_RTXD_MAX_UNANSWERED / OF_USER,
    };
    struct asym_rtxd_report report;
    uint32_t ids[PLACES];
    int fd;
    start_helper();
    /* It listens when it answers. */
    cpu_of_helper(100);
    for (int u = 0; u < USERS; u++) {
        connect_as(3001 + (uid_t)u, OF_USER);
        for (int i = 0; i < OF_USER; i++) {
            assert_true(next_report(ASYM_RTXD_REPORT_CAME, PATIENCE_MS, &report));
            ids[u * OF_USER + i] = report.id;
        }
        /* So many wait for an answer: the next user has to wait, and root does not. */
        if (u == BEFORE_ANSWER - 1) {
            assert_true(is_turned_away(4001));
            const uint32_t id = come(&fd);
            close(fd);
            assert_true(next_report(ASYM_RTXD_REPORT_GONE, PATIENCE_MS, &report));
            order(ASYM_RTXD_ORDER_CLOSE, id, NULL, 0);
        }
        for (int i = 0; u >= BEFORE_ANSWER - 1 && i < OF_USER; i++)
            grant(ids[(u - BEFORE_ANSWER + 1) * OF_USER + i]);
        /* After its answer the helper has sent the pages. */
        cpu_of_helper(1 + (uint32_t)u);
    }
    assert_true(is_turned_away(4001));
    for (int i = 0; i < OF_USER; i++) {
        assert_true(come(&fd) > 0);
        ends[n_ends++] = fd;
    }
}

/* The limit stays, because the test may lack the right to raise it again. No test runs after this one. */
static void start_helper_with_few_descriptors(void)
{
    const struct rlimit few = {LIMIT, LIMIT};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    start_helper();
    cpu_of_helper(1);
    fill_descriptors(pid_of_helper());
}

TEST_WITH(without_descriptors_a_connection_is_closed_and_its_user_is_blamed, set_up, tear_down)
{
    struct asym_rtxd_report report;
    start_helper_with_few_descriptors();
    const pid_t pid = pid_of_helper();
    const int event = make_hanging_event(), fd = connect_helper();
    assert_true(asym_raw_is_closed(fd, PATIENCE_MS));
    close(fd);
    stop_process(pid);
    pass_as_stranger(event);
    close(event);
    asym_process_signal(pid, SIGCONT);
    assert_true(next_report(ASYM_RTXD_REPORT_HUNG, PATIENCE_MS, &report));
    assert_int_equal(report.uid, STRANGER);
    /* The helper still accepts connections, root's first. */
    order(ASYM_RTXD_ORDER_CLOSE, 99, NULL, 0);
    /* The helper closes the file after its first answer. */
    cpu_of_helper(2);
    cpu_of_helper(3);
    int root;
    assert_true(come(&root) > 0);
    close(root);
    /* After the hang nothing is left to close, and asymd lets the stranger in again after a while. */
    end_hang();
    hang.uffd = -1;
    assert_true(next_report(ASYM_RTXD_REPORT_FREED, PATIENCE_MS, &report));
    assert_int_equal(report.uid, STRANGER);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return test_run(NULL, NULL);
}
