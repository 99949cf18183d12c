/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Child processes close descriptors; a user whose closes hang is refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linux/rtx/rtx-acceptor.h"
#include "linux/rtx/rtx-closer.h"
#include "support/process.h"
#include "support/rtx-raw.h"
#include "support/test.h"

static struct asym_rtxd_closers *closers;
static const long long NOW = 1000;

static int set_up(void **state)
{
    (void)state;
    closers = calloc(1, sizeof *closers);
    return closers ? asym_rtxd_closers_init(closers) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    asym_rtxd_closers_done(closers);
    free(closers);
    return 0;
}

/* A closer ends by itself. This only ends a test that hangs. */
enum { PATIENCE_MS = 60000 };

static void close_all(long long now)
{
    for (int i = 0; i < PATIENCE_MS && (closers->n_running > 0 || closers->n_doomed > 0); i++) {
        asym_rtxd_close_doomed(closers, now);
        usleep(1000);
    }
    assert_int_equal(closers->n_running, 0);
    assert_int_equal(closers->n_doomed, 0);
}

TEST_WITH(what_is_doomed_is_closed, set_up, tear_down)
{
    int fds[3][2];
    const uid_t users[] = {5, 6, ASYM_RTXD_UNKNOWN_USER};
    assert_false(asym_rtxd_is_closing(closers));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pipe2(fds[i], O_CLOEXEC), 0);
        asym_rtxd_doom(closers, fds[i][1], users[i]);
    }
    asym_rtxd_doom(closers, -1, 5);
    assert_true(asym_rtxd_is_closing(closers));
    close_all(NOW);
    for (int i = 0; i < 3; i++) {
        struct pollfd end = {.fd = fds[i][0]};
        assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
        assert_true(end.revents & POLLHUP);
        assert_int_equal(fcntl(fds[i][1], F_GETFD), -1);
        close(fds[i][0]);
    }
    asym_rtxd_close_doomed(closers, NOW);
    assert_false(asym_rtxd_is_closing(closers));
}

/* A drop of the message would linger in the close of the TCP connection, and the exit of a closer does not. */
TEST_WITH(a_queue_is_emptied_and_its_socket_stays_open, set_up, tear_down)
{
    int sockets[2], pipes[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(setsockopt(sockets[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)), 0);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    const int files[] = {pipes[1], asym_raw_lingering()};
    assert_true(files[1] >= 0);
    assert_int_equal(asym_raw_send(sockets[1], "", 1, files, 2), 0);
    assert_int_equal(asym_raw_send(sockets[1], "", 0, NULL, 0), 0);
    assert_int_equal(asym_raw_send(sockets[1], "", 1, &sockets[1], 1), 0);
    close(files[0]);
    close(files[1]);
    shutdown(sockets[0], SHUT_RDWR);
    asym_rtxd_empty(closers, sockets[0], 5);
    asym_rtxd_empty(closers, -1, 5);
    assert_true(asym_rtxd_is_closing(closers));
    close_all(NOW);
    struct pollfd end = {.fd = pipes[0]};
    assert_int_equal(poll(&end, 1, 0), 1);
    assert_true(end.revents & POLLHUP);
    char byte;
    assert_int_equal(recv(sockets[0], &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(send(sockets[1], &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL), -1);
    assert_int_equal(errno, EPIPE);
    close(pipes[0]);
    close(sockets[0]);
    close(sockets[1]);
}

static void doom(uid_t uid, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        asym_rtxd_doom(closers, fd, uid);
    }
}

TEST_WITH(a_user_that_leaves_too_much_is_refused_and_no_other_user, set_up, tear_down)
{
    struct asym_rtxd_standing standing;
    doom(5, ASYM_RTXD_STOCK - 1);
    doom(6, 10);
    assert_false(asym_rtxd_next_standing(closers, NOW, &standing));
    doom(5, 1);
    assert_true(asym_rtxd_next_standing(closers, NOW, &standing));
    assert_int_equal(standing.uid, 5);
    assert_true(standing.refused);
    assert_false(asym_rtxd_next_standing(closers, NOW, &standing));
    assert_true(asym_rtxd_is_refused(closers, 5));
    assert_false(asym_rtxd_is_refused(closers, 6));
    close_all(NOW);
    /* The refusal lasts at least ASYM_RTXD_REFUSED_MS. */
    assert_false(asym_rtxd_next_standing(closers, NOW + ASYM_RTXD_REFUSED_MS - 1, &standing));
    assert_true(asym_rtxd_is_refused(closers, 5));
    assert_true(asym_rtxd_next_standing(closers, NOW + ASYM_RTXD_REFUSED_MS, &standing));
    assert_int_equal(standing.uid, 5);
    assert_false(standing.refused);
    assert_false(asym_rtxd_is_refused(closers, 5));
    asym_rtxd_close_doomed(closers, NOW + ASYM_RTXD_REFUSED_MS);
    assert_false(asym_rtxd_is_closing(closers));
}

TEST_WITH(no_user_is_refused_for_the_unknown_one, set_up, tear_down)
{
    struct asym_rtxd_standing standing;
    doom(ASYM_RTXD_UNKNOWN_USER, ASYM_RTXD_STOCK + 1);
    assert_false(asym_rtxd_next_standing(closers, NOW, &standing));
    assert_false(asym_rtxd_is_refused(closers, ASYM_RTXD_UNKNOWN_USER));
    close_all(NOW);
}

/* Users without an account of their own share one. */
TEST_WITH(users_without_an_account_share_one, set_up, tear_down)
{
    for (uid_t uid = 1; uid <= ASYM_RTXD_MAX_ACCOUNTS; uid++)
        doom(uid, 1);
    doom(5000, 2);
    doom(5001, 3);
    assert_int_equal(closers->n_accounts, ASYM_RTXD_MAX_ACCOUNTS);
    assert_int_equal(closers->shared.n, 5);
    assert_int_equal(closers->accounts[0].n, 1);
    asym_rtxd_close_doomed(closers, NOW);
    assert_true(closers->n_running <= ASYM_RTXD_MAX_CLOSERS);
    close_all(NOW);
    asym_rtxd_close_doomed(closers, NOW);
    assert_int_equal(closers->n_accounts, 0);
}

/* A closer that begins late: its copies stay open for longer than the parent waits. */
static bool is_late;

static void delay_child(void)
{
    if (is_late)
        usleep(60 * 1000000);
}

/* The parent does not know what hangs until the closer holds only its own descriptors. It kills the closer, and tries again. */
TEST_WITH(a_closer_that_begins_late_does_not_hang, set_up, tear_down)
{
    struct asym_rtxd_standing standing;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    asym_rtxd_doom(closers, fds[1], 7);
    is_late = true;
    for (int i = 0; i < 2; i++) {
        asym_rtxd_close_doomed(closers, NOW + (long long)i * ASYM_RTXD_LONGEST_MS);
        assert_int_equal(closers->n_running, 0);
        assert_int_equal(closers->n_doomed, 1);
        assert_false(asym_rtxd_next_standing(closers, NOW + (long long)i * ASYM_RTXD_LONGEST_MS, &standing));
        assert_true(fcntl(fds[1], F_GETFD) >= 0);
    }
    is_late = false;
    /* Its time counts from the moment at which it has closed its copies. */
    asym_rtxd_close_doomed(closers, NOW + 2LL * ASYM_RTXD_LONGEST_MS);
    assert_int_equal(closers->n_running, 1);
    assert_int_equal(closers->running[0].idle, 0);
    assert_int_equal(closers->running[0].age, 0);
    close_all(NOW + 2LL * ASYM_RTXD_LONGEST_MS);
    struct pollfd end = {.fd = fds[0]};
    assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
    close(fds[0]);
}

/* Returns a connected TCP socket with unsent data. Its last close sleeps for as long as the peer does not read. */
static int lingering(int *ret_peer)
{
    static const char data[65536];
    const struct linger linger = {.l_onoff = 1, .l_linger = 1000};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    *ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(*ret_peer >= 0);
    close(listener);
    while (send(fd, data, sizeof data, MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    return fd;
}

/*
 * The last close of one user's descriptor would sleep in a process that does not exit. The closers of other users begin with a
 * copy of this descriptor. They must have closed it before the closer of its user exits.
 */
TEST_WITH(no_closer_drops_the_last_reference_of_another_user, set_up, tear_down)
{
    enum { ROUNDS = 200, OTHERS = 3, HANGING = 7 };
    for (int round = 0; round < ROUNDS; round++) {
        int peer, fd = lingering(&peer);
        for (uid_t other = 0; other < OTHERS; other++)
            asym_rtxd_doom(closers, eventfd(0, EFD_CLOEXEC), other);
        asym_rtxd_doom(closers, fd, HANGING);
        asym_rtxd_close_doomed(closers, NOW);
        for (int i = 0; i < PATIENCE_MS && closers->n_running > 0; i++) {
            usleep(1000);
            asym_rtxd_close_doomed(closers, NOW);
        }
        const size_t n_sleeping = closers->n_running;
        close(peer);
        close_all(NOW);
        assert_int_equal(n_sleeping, 0);
    }
}

/* A child that sleeps until it is killed stands for a closer of the user. Returns its pid. */
static pid_t sleeping_closer(uid_t uid)
{
    const pid_t pid = asym_process_fork();
    if (pid == 0)
        for (;;)
            pause();
    assert_true(pid > 0);
    /* It calls nothing else that sleeps. Until then it uses CPU time, and the passes would count from its last. */
    for (int i = 0; i < PATIENCE_MS && asym_process_state(pid) != 'S'; i++)
        usleep(1000);
    assert_int_equal(asym_process_state(pid), 'S');
    doom(uid, 1);
    closers->running[closers->n_running++] = (struct asym_rtxd_closer){.pid = pid, .uid = uid};
    return pid;
}

static void one_pass(long long now)
{
    usleep(1000);
    asym_rtxd_close_doomed(closers, now);
}

/* A clock that has leapt says that this process got no CPU. Its closers may have got none, too. */
TEST_WITH(only_a_closer_that_sleeps_for_many_passes_hangs, set_up, tear_down)
{
    struct asym_rtxd_standing standing;
    const int steps = ASYM_RTXD_HUNG_MS / ASYM_RTXD_STEP_MS;
    long long now = NOW;
    const pid_t pid = sleeping_closer(7);
    asym_rtxd_close_doomed(closers, now);
    for (int i = 0; i < steps - 1; i++) {
        one_pass(now += 100000);
        assert_int_equal(closers->n_running, 1);
        assert_false(asym_rtxd_next_standing(closers, now, &standing));
    }
    /* The first passes may have seen its CPU time grow. */
    for (int i = 0; i < steps && !asym_rtxd_is_refused(closers, 7); i++) {
        one_pass(now += ASYM_RTXD_STEP_MS);
        asym_rtxd_next_standing(closers, now, &standing);
    }
    assert_true(asym_rtxd_is_refused(closers, 7));
    asym_process_signal(pid, SIGKILL);
    close_all(now);
}

/* A closer that goes on using CPU time does not hang before ASYM_RTXD_LONGEST_MS. */
TEST_WITH(a_closer_that_runs_has_longer, set_up, tear_down)
{
    struct asym_rtxd_standing standing;
    const pid_t pid = sleeping_closer(7);
    asym_rtxd_close_doomed(closers, NOW);
    for (int ms = ASYM_RTXD_STEP_MS; ms < ASYM_RTXD_LONGEST_MS; ms += ASYM_RTXD_STEP_MS) {
        closers->running[0].cpu = -1;
        one_pass(NOW + ms);
        assert_false(asym_rtxd_next_standing(closers, NOW + ms, &standing));
    }
    closers->running[0].cpu = -1;
    one_pass(NOW + ASYM_RTXD_LONGEST_MS);
    assert_true(asym_rtxd_next_standing(closers, NOW + ASYM_RTXD_LONGEST_MS, &standing));
    assert_int_equal(standing.uid, 7);
    asym_process_signal(pid, SIGKILL);
    close_all(NOW + ASYM_RTXD_LONGEST_MS);
}

int main(void)
{
    struct rlimit limit;
    pthread_atfork(NULL, NULL, delay_child);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return test_run(NULL, NULL);
}
