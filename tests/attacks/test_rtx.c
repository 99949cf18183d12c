/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs of other users at the socket of runtime extensions: files whose last close blocks, connections without end, all
 * places, a number that another process has by then. asymd goes on, ends when it is asked to, and lets others in. The first
 * message of an attack is what asymd expected before it handed out pages itself. Needs root, for programs of several users.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "support/process.h"
#include "support/live.h"
#include "support/rtx-alone.h"
#include "support/rtx-raw.h"
#include "support/service.h"

enum {
    HONEST = 2001,
    ATTACKER = 2002,
    PATIENCE_MS = 10000, /* within which asymd ends, and lets a program in */
    MANY = 200,
};

static char path[128];
static pid_t asymd, spin;
static pid_t *server; /* of the attacker's file system, shared with it; 0: none */
static pid_t attackers[8];
static bool alone; /* without the rest of asymd, and with descriptors in messages */

static void start_asymd(void)
{
    const char *const options[] = {"--interval=100ms", NULL};
    snprintf(path, sizeof path, "%s/rtx", asym_service_dir());
    assert_int_equal(chmod(asym_service_dir(), 0755), 0);
    if (alone) {
        asymd = asym_rtx_alone_start(asym_service_dir(), -1);
    } else {
        spin = asym_service_spin("1");
        asymd = asym_service_start(spin, options);
    }
    assert_true(asymd > 1);
    int fd = -1;
    for (int i = 0; i < PATIENCE_MS / 10 && (fd = asym_raw_connect(path)) < 0; i++)
        usleep(10000);
    assert_true(fd >= 0);
    close(fd);
}

static int set_up_for(void **state, bool is_alone)
{
    if (geteuid() != 0)
        fail_msg("%s", "setresuid: Operation not permitted (run as root)");
    asym_service_set_up(state);
    alone = is_alone;
    asymd = spin = 0;
    memset(attackers, 0, sizeof attackers);
    server = mmap(NULL, sizeof *server, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(server != MAP_FAILED);
    start_asymd();
    return 0;
}

static int set_up(void **state)
{
    return set_up_for(state, false);
}

static int set_up_alone(void **state)
{
    return set_up_for(state, true);
}

static bool has_ended(pid_t pid, int ms)
{
    int status;
    const long long end = asym_raw_ms() + ms;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (asym_raw_ms() > end)
            return false;
        usleep(10000);
    }
    return true;
}

static void end_asymd(void)
{
    asym_process_signal(asymd, SIGTERM);
    if (!has_ended(asymd, PATIENCE_MS))
        fail_msg("asymd does not end within %d ms", PATIENCE_MS);
    asymd = 0;
}

/* A process of this user, which ends with the test. */
static pid_t start(uid_t uid, void (*run)(void))
{
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
        alarm(100);
        if (uid != 0 && asym_raw_become(uid) < 0)
            _exit(2);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(0);
    }
    return pid;
}

static void end_attackers(void)
{
    if (*server > 1)
        asym_process_signal(*server, SIGKILL);
    *server = 0;
    for (size_t i = 0; i < ASYM_LENGTH(attackers); i++) {
        if (attackers[i] > 1) {
            asym_process_signal(attackers[i], SIGKILL);
            waitpid(attackers[i], NULL, 0);
        }
        attackers[i] = 0;
    }
}

static void attack_as(size_t number, uid_t uid, void (*run)(void))
{
    attackers[number] = start(uid, run);
}

static bool is_attacking(size_t number)
{
    const bool ended = has_ended(attackers[number], 0);
    attackers[number] = ended ? 0 : attackers[number];
    return !ended;
}

/* Whatever the test has found. */
static int tear_down(void **state)
{
    end_attackers();
    munmap(server, sizeof *server);
    if (asymd > 1) {
        asym_process_signal(asymd, SIGCONT);
        asym_process_signal(asymd, SIGKILL);
        waitpid(asymd, NULL, 0);
    }
    if (spin > 1)
        asym_live_end(spin, SIGKILL);
    return asym_service_tear_down(state);
}

/*
 * As an honest program that looks once a second: each try by itself, so many of them. The exit status: how many failed. A try
 * has three looks: on a busy machine the answer to one may come after the program has stopped to wait for it.
 */
enum { LOOK_MS = 950, TRY_MS = 3 * LOOK_MS };

static int tries;

static void join(void)
{
    int failed = 0;
    setenv(ASYM_RTX_SOCKET_ENV, path, 1);
    for (int i = 0; i < tries; i++) {
        const long long begun = asym_raw_ms();
        while (asym_rtx_join(NULL) == 0 && !asym_rtx_is_joined() && asym_raw_ms() < begun + TRY_MS)
            usleep(10000);
        failed += !asym_rtx_is_joined();
        asym_rtx_leave();
        while (asym_raw_ms() < begun + LOOK_MS)
            usleep(10000);
    }
    _exit(failed);
}

static int count_failed(uid_t uid, int n)
{
    int status;
    tries = n;
    const pid_t pid = start(uid, join);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The message of the first version of the protocol, with these files. */
static int send_first(int fd, const int *fds, size_t n)
{
    const uint32_t hello[4] = {ASYM_RTX_MAGIC, 1, sizeof hello, 0};
    return asym_raw_send(fd, hello, sizeof hello, fds, n);
}

/* ---- Files whose last close blocks. ---- */

static void linger(int n_fds)
{
    int fds[32];
    const int tcp = asym_raw_lingering(), fd = asym_raw_connect(path);
    for (int i = 0; i < n_fds; i++)
        fds[i] = tcp;
    if (tcp < 0 || fd < 0)
        _exit(3);
    send_first(fd, fds, (size_t)n_fds);
    close(tcp);
    pause();
}

static void linger_with_two(void)
{
    linger(2);
}

static void linger_with_twenty(void)
{
    linger(20);
}

/* A process has four places: the fifth connection is refused with its message unread. */
static void linger_in_refusal(void)
{
    for (int i = 0; i < 4; i++)
        asym_raw_connect(path);
    linger(1);
}

static void check_linger(void (*attack)(void))
{
    attack_as(0, ATTACKER, attack);
    sleep(1);
    assert_true(is_attacking(0));
    const int failed = count_failed(HONEST, 3);
    end_asymd();
    assert_int_equal(failed, 0);
}

static void a_file_that_lingers_holds_up_nobody(void **state)
{
    (void)state;
    check_linger(linger_with_two);
}

static void many_files_that_linger_hold_up_nobody(void **state)
{
    (void)state;
    check_linger(linger_with_twenty);
}

static void a_file_that_lingers_in_a_refused_connection_holds_up_nobody(void **state)
{
    (void)state;
    check_linger(linger_in_refusal);
}

/* It has come, and is not read, when asymd is to end. */
static void a_file_that_lingers_does_not_hold_up_the_end(void **state)
{
    (void)state;
    asym_process_signal(asymd, SIGSTOP);
    attack_as(0, ATTACKER, linger_with_two);
    sleep(1);
    asym_process_signal(asymd, SIGTERM);
    asym_process_signal(asymd, SIGCONT);
    end_asymd();
}

/* ---- FUSE: a file system that answers nothing but what is needed to open a file in it. ---- */

static struct {
    int device;
    char dir[96];
} fuse;

static void answer(uint64_t unique, int error, const void *data, size_t size)
{
    char text[512];
    const struct fuse_out_header h = {.len = (uint32_t)(sizeof h + size), .error = error, .unique = unique};
    memcpy(text, &h, sizeof h);
    if (size > 0)
        memcpy(text + sizeof h, data, size);
    if (write(fuse.device, text, h.len) < 0 && errno != ENOENT)
        _exit(4);
}

static struct fuse_attr attributes(uint64_t node)
{
    return (struct fuse_attr){
        .ino = node, .mode = node == 1 ? S_IFDIR | 0777 : S_IFREG | 0666, .nlink = 1, .size = 4096, .blksize = 4096};
}

static _Noreturn void answer_some(void)
{
    static char request[1 << 18];
    alarm(60);
    while (read(fuse.device, request, sizeof request) > 0 || errno == EINTR || errno == ENOENT) {
        const struct fuse_in_header *h = (const void *)request;
        const struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = 4096, .max_write = 4096};
        const struct fuse_attr_out attr = {.attr_valid = 100, .attr = attributes(h->nodeid)};
        const struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 100, .attr_valid = 100, .attr = attributes(2)};
        const struct fuse_open_out opened = {.fh = 1};
        if (h->opcode == FUSE_INIT)
            answer(h->unique, 0, &init, sizeof init);
        else if (h->opcode == FUSE_GETATTR)
            answer(h->unique, 0, &attr, sizeof attr);
        else if (h->opcode == FUSE_LOOKUP)
            answer(h->unique, 0, &entry, sizeof entry);
        else if (h->opcode == FUSE_OPEN)
            answer(h->unique, 0, &opened, sizeof opened);
        else if (h->opcode != FUSE_FLUSH && h->opcode != FUSE_READ && h->opcode != FUSE_INTERRUPT &&
                 h->opcode != FUSE_FORGET)
            answer(h->unique, -ENOSYS, NULL, 0);
    }
    _exit(0);
}

static int must(int r, const char *call)
{
    if (r >= 0)
        return r;
    fprintf(stderr, "%s: %s\n", call, strerror(errno));
    _exit(5);
}

/*
 * A file of it. The process is root until then, and has mounts of its own. The server is another process: the end of that is
 * the end of all that waits for an answer.
 */
static int open_fuse_file(void)
{
    char options[96], file[112];
    snprintf(fuse.dir, sizeof fuse.dir, "%s/fuse", asym_service_dir());
    must(unshare(CLONE_NEWNS), "unshare");
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount");
    must(mkdir(fuse.dir, 0777), "mkdir");
    fuse.device = must(open("/dev/fuse", O_RDWR | O_CLOEXEC), "/dev/fuse");
    snprintf(options, sizeof options, "fd=%d,rootmode=40777,user_id=%d,group_id=%d", fuse.device, ATTACKER, ATTACKER);
    must(mount("fuse", fuse.dir, "fuse", MS_NOSUID | MS_NODEV, options), "mount fuse");
    must(asym_raw_become(ATTACKER), "setresuid");
    const pid_t pid = must(fork(), "fork");
    if (pid == 0)
        answer_some();
    *server = pid;
    close(fuse.device);
    snprintf(file, sizeof file, "%s/f", fuse.dir);
    return must(open(file, O_RDWR | O_CLOEXEC), "open");
}

static void pass_fuse_file(void)
{
    const int file = open_fuse_file(), fds[] = {file, file};
    const int fd = must(asym_raw_connect(path), "connect");
    send_first(fd, fds, 2);
    for (;;)
        pause();
}

static void check_fuse(void (*attack)(void))
{
    attack_as(0, 0, attack);
    sleep(2);
    assert_true(is_attacking(0));
    const int failed = count_failed(HONEST, 3);
    end_asymd();
    assert_int_equal(failed, 0);
}

static void a_file_whose_flush_is_never_answered_holds_up_nobody(void **state)
{
    (void)state;
    check_fuse(pass_fuse_file);
}

/*
 * The eventfd that asymd has handed out, in an epoll instance whose lock a thread holds: it is to write an event to memory that
 * is never there. The last close of the eventfd waits for that lock.
 */
static int held_epoll;
static void *held_memory;

static void *hold_lock(void *arg)
{
    (void)arg;
    while (epoll_wait(held_epoll, held_memory, 1, -1) >= 0)
        ;
    return NULL;
}

static void hold_epoll_lock(void)
{
    int memfd, event;
    pthread_t thread;
    struct epoll_event in = {.events = EPOLLIN};
    const int file = open_fuse_file(), fd = must(asym_raw_connect(path), "connect");
    held_memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    held_epoll = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    if (held_memory == MAP_FAILED || !asym_raw_receive(fd, 5000, &memfd, &event))
        _exit(6);
    must(asym_raw_fill(memfd, event, getpid()), "fill");
    must(epoll_ctl(held_epoll, EPOLL_CTL_ADD, event, &in), "epoll_ctl");
    close(event);
    pthread_create(&thread, NULL, hold_lock, NULL);
    usleep(300000);
    close(fd);
    for (;;)
        pause();
}

static void an_eventfd_whose_close_waits_holds_up_nobody(void **state)
{
    (void)state;
    check_fuse(hold_epoll_lock);
}

/* asymd is killed, and has that eventfd still: its end does not wait, or nothing could be restored. */
static void keep_epoll_lock(void)
{
    int memfd, event;
    pthread_t thread;
    struct epoll_event in = {.events = EPOLLIN};
    const int file = open_fuse_file(), fd = must(asym_raw_connect(path), "connect");
    held_memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    held_epoll = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    if (held_memory == MAP_FAILED || !asym_raw_receive(fd, 5000, &memfd, &event))
        _exit(6);
    must(asym_raw_fill(memfd, event, getpid()), "fill");
    must(epoll_ctl(held_epoll, EPOLL_CTL_ADD, event, &in), "epoll_ctl");
    close(event);
    pthread_create(&thread, NULL, hold_lock, NULL);
    for (;;)
        pause();
}

static void an_eventfd_whose_close_waits_does_not_hold_up_a_kill(void **state)
{
    (void)state;
    attack_as(0, 0, keep_epoll_lock);
    sleep(2);
    assert_true(is_attacking(0));
    asym_process_signal(asymd, SIGKILL);
    assert_true(has_ended(asymd, PATIENCE_MS));
    asymd = 0;
}

/* ---- Floods and places. ---- */

static void flood(void)
{
    for (;;) {
        const int fd = asym_raw_connect(path);
        if (fd >= 0)
            close(fd);
        else
            usleep(MANY);
    }
}

static void check_flood(int n)
{
    for (int i = 0; i < n; i++)
        attack_as((size_t)i, ATTACKER, flood);
    sleep(1);
    const int failed = count_failed(HONEST, 10);
    end_attackers();
    print_message("%d flooders: another user was let in %d of 10 times\n", n, 10 - failed);
    end_asymd();
    assert_int_equal(failed, 0);
}

static void a_flood_of_connections_keeps_nobody_out(void **state)
{
    (void)state;
    check_flood(1);
}

static void four_floods_of_connections_keep_nobody_out(void **state)
{
    (void)state;
    check_flood(4);
}

/* One of sixteen processes that take four places each. */
static void take_places(void)
{
    for (int i = 0; i < 16; i++) {
        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int k = 0; k < 4; k++) {
            int memfd, event, fd = -1;
            for (int t = 0; t < 20 && (fd < 0 || !asym_raw_receive(fd, 500, &memfd, &event)); t++) {
                if (fd >= 0)
                    close(fd);
                usleep(200000);
                fd = asym_raw_connect(path);
            }
            if (fd >= 0)
                asym_raw_fill(memfd, event, getpid());
        }
        for (;;)
            pause();
    }
    for (;;)
        pause();
}

static void four_users_with_all_places_keep_nobody_out(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        attack_as(i, 3001 + i, take_places);
    sleep(8);
    const int failed = count_failed(HONEST, 3), failed_root = count_failed(0, 3);
    end_asymd();
    assert_int_equal(failed, 0);
    assert_int_equal(failed_root, 0);
}

/* ---- A number that another process has by then. ---- */

/* The process of the connection dies before anything looks at it, and one of another user gets its number. */
static pid_t start_as(pid_t number)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    fflush(NULL);
    const pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60);
        asym_raw_become(HONEST);
        for (;;)
            pause();
    }
    return pid;
}

static int first_child(pid_t pid)
{
    char file[64];
    int child = 0;
    snprintf(file, sizeof file, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(file, "re");
    if (f && fscanf(f, "%d", &child) != 1)
        child = 0;
    if (f)
        fclose(f);
    return child;
}

static int the_socket;

static void connect_and_die(void)
{
    const int page = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING), fds[] = {page, eventfd(0, EFD_CLOEXEC)};
    const uint32_t header[16] = {ASYM_RTX_MAGIC, 1, 64, 64, 1, 1};
    char zeroes[4096] = {0};
    memcpy(zeroes, header, sizeof header);
    if (write(page, zeroes, sizeof zeroes) < 0)
        _exit(7);
    fcntl(page, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
    struct sockaddr_storage address = {.ss_family = AF_UNIX};
    memcpy(address.__ss_padding, path, strlen(path) + 1);
    if (connect(the_socket, (const struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + strlen(path) + 1)) < 0)
        _exit(8);
    send_first(the_socket, fds, 2);
}

static void a_successor_is_not_spoken_for(void **state)
{
    (void)state;
    const pid_t helper = first_child(asymd);
    int status, memfd, event;
    the_socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    asym_process_signal(asymd, SIGSTOP);
    if (helper > 1)
        asym_process_signal(helper, SIGSTOP);
    const pid_t attacker = start(ATTACKER, connect_and_die);
    assert_int_equal(waitpid(attacker, &status, 0), attacker);
    assert_int_equal(status, 0);
    const pid_t victim = start_as(attacker);
    assert_int_equal(victim, attacker);
    asym_process_signal(asymd, SIGCONT);
    if (helper > 1)
        asym_process_signal(helper, SIGCONT);
    const bool handed = asym_raw_receive(the_socket, 1000, &memfd, &event),
               closed = asym_raw_is_closed(the_socket, 3000);
    asym_process_signal(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    close(the_socket);
    end_asymd();
    assert_false(handed);
    assert_true(closed);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define ALONE(f)                                                                                                       \
    {                                                                                                                  \
        "on an older kernel: " #f, f, set_up_alone, tear_down, NULL                                                    \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_file_that_lingers_holds_up_nobody),
        T(many_files_that_linger_hold_up_nobody),
        T(a_file_that_lingers_in_a_refused_connection_holds_up_nobody),
        T(a_file_that_lingers_does_not_hold_up_the_end),
        T(a_file_whose_flush_is_never_answered_holds_up_nobody),
        T(an_eventfd_whose_close_waits_holds_up_nobody),
        T(an_eventfd_whose_close_waits_does_not_hold_up_a_kill),
        T(a_flood_of_connections_keeps_nobody_out),
        T(four_floods_of_connections_keep_nobody_out),
        T(four_users_with_all_places_keep_nobody_out),
        T(a_successor_is_not_spoken_for),
        ALONE(a_file_that_lingers_holds_up_nobody),
        ALONE(many_files_that_linger_hold_up_nobody),
        ALONE(a_file_that_lingers_in_a_refused_connection_holds_up_nobody),
        ALONE(a_file_that_lingers_does_not_hold_up_the_end),
        ALONE(a_file_whose_flush_is_never_answered_holds_up_nobody),
        ALONE(an_eventfd_whose_close_waits_holds_up_nobody),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
