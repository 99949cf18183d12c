/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs of other users attack the socket of runtime extensions: they pass files whose last close blocks, connect without
 * end, take all places, or exit so that another process gets their PID. asymd must keep running, stop on request, and let
 * other users in. The first message of an attack is the one of the first protocol version. The test needs root, for
 * programs of several users.
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
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "linux/rtx/rtx-closer.h"
#include "linux/rtx/rtx-server.h"
#include "support/process.h"
#include "support/live.h"
#include "support/rtx-alone.h"
#include "support/rtx-raw.h"
#include "support/service.h"

enum {
    HONEST = 2001,
    ATTACKER = 2002,
    ANOTHER = 2011,      /* honest, too */
    PATIENCE_MS = 10000, /* asymd must stop, and let a program in, within this time */
    MANY = 200,
};

static char path[128];
static pid_t asymd, idle; /* idle: the program that asymd may steer */
static struct {
    pid_t server;          /* serves the attacker's file system; 0: none */
    atomic_bool is_locked; /* a thread of the attacker has the lock, and waits for a page of the file system */
    atomic_bool hangs;     /* a close of the attacker hangs from about now on */
    atomic_bool barred;    /* the kernel refused to pass a file, as from Linux 6.16 on */
    atomic_int places;     /* places that attackers have */
    atomic_long sent;      /* connections with a message in them */
    atomic_long connected; /* connections of a flood without messages */
} * shared;                /* with the attackers */
static pid_t attackers[8];
static bool alone; /* the helper runs without the rest of asymd, and messages may carry descriptors */

/* A process of this user, which ends with the test. */
static pid_t start(uid_t uid, void (*run)(void))
{
    fflush(NULL);
    const pid_t pid = asym_process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGPIPE, SIG_IGN);
        alarm(100);
        if (uid != 0 && asym_raw_become(uid) < 0)
            _exit(2);
        run();
        _exit(0);
    }
    return pid;
}

static void wait_for_the_end(void)
{
    for (;;)
        pause();
}

static void start_asymd(void)
{
    const char *const options[] = {"--interval=100ms", NULL};
    snprintf(path, sizeof path, "%s/rtx", asym_service_dir());
    assert_int_equal(chmod(asym_service_dir(), 0755), 0);
    if (alone) {
        asymd = asym_rtx_alone_start(asym_service_dir(), -1);
    } else {
        idle = start(0, wait_for_the_end);
        asymd = asym_service_start(idle, options);
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
    asymd = idle = 0;
    memset(attackers, 0, sizeof attackers);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
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

static void end_attackers(void)
{
    if (shared->server > 1)
        asym_process_signal(shared->server, SIGKILL);
    shared->server = 0;
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

/* Runs whatever the result of the test is. */
static int tear_down(void **state)
{
    end_attackers();
    munmap(shared, sizeof *shared);
    if (asymd > 1) {
        asym_process_signal(asymd, SIGCONT);
        asym_process_signal(asymd, SIGKILL);
        waitpid(asymd, NULL, 0);
    }
    if (idle > 1)
        asym_live_end(idle, SIGKILL);
    return asym_service_tear_down(state);
}

/*
 * Acts like an honest program that polls once a second. Makes n independent tries. The exit status is the number of failed
 * tries. A try polls three times: on a busy machine an answer may come after the program has stopped waiting for it.
 */
enum { RETRY_MS = 950, TRY_MS = 3 * RETRY_MS };

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
        while (asym_raw_ms() < begun + RETRY_MS)
            usleep(10000);
    }
    _exit(failed);
}

/* Two users make n tries each at the same time. Returns the number of failed tries. */
static int count_failed_of(uid_t a, uid_t b, int n)
{
    int status, failed = 0;
    tries = n;
    const pid_t pids[] = {start(a, join), start(b, join)};
    for (size_t i = 0; i < ASYM_LENGTH(pids); i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        failed += WEXITSTATUS(status);
    }
    return failed;
}

static int count_failed(int n)
{
    return count_failed_of(HONEST, ANOTHER, n);
}

/* The message of the first version of the protocol, with these files. */
static int send_first(int fd, const int *fds, size_t n)
{
    const uint32_t handshake[4] = {ASYM_RTX_MAGIC, 1, sizeof handshake, 0};
    return asym_raw_send(fd, handshake, sizeof handshake, fds, n);
}

/* The attacker passes files. It fails unless asymd gets them, or the kernel does not let them pass. */
static void send_files(int fd, const int *fds, size_t n)
{
    const int r = send_first(fd, fds, n);
    shared->barred = r == -EPERM && !alone;
    if (r < 0 && !shared->barred) {
        fprintf(stderr, "sendmsg: %s\n", strerror(-r));
        _exit(3);
    }
}

static void pass_files(int fd, const int *fds, size_t n)
{
    send_files(fd, fds, n);
    shared->sent++;
}

/* ---- Processes of asymd. ---- */

static pid_t first_child(pid_t pid)
{
    pid_t child;
    return asym_process_children(pid, &child, 1) == 1 ? child : 0;
}

static pid_t helper_of(pid_t pid)
{
    pid_t helper;
    return asym_process_helpers(pid, "rtx", &helper, 1) == 1 ? helper : 0;
}

/* The closers of the helper. One that hangs is there for as long as the attacker wants, and others for milliseconds. */
struct closers {
    pid_t pids[ASYM_RTXD_MAX_CLOSERS];
    size_t n;
};

static struct closers list_closers(void)
{
    struct closers c;
    c.n = asym_process_children(helper_of(asymd), c.pids, ASYM_LENGTH(c.pids));
    return c;
}

/* One of them waits in its exit: for a lock in state D, for the answer of a file system in state S. */
static bool one_hangs(const struct closers *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const char now = asym_process_state(c->pids[i]);
        if (now == 'D' || now == 'S')
            return true;
    }
    return false;
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
    send_files(fd, fds, (size_t)n_fds);
    /* The receiver's close has to be the last one. Where the kernel did not pass the file, this one is, and blocks. */
    if (!shared->barred)
        close(tcp);
    shared->sent++;
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

/* A process may have four places. asymd refuses the fifth connection with its message unread. */
static void linger_in_refusal(void)
{
    for (int i = 0; i < 4; i++)
        asym_raw_connect(path);
    linger(1);
}

/* Waits until the attackers have sent n messages. */
static void await_sent(long n)
{
    for (int i = 0; i < PATIENCE_MS && shared->sent < n; i++)
        usleep(1000);
    assert_true(shared->sent >= n);
}

/* In a message, in one with many of them, and in a connection that asymd refuses: three users do it at the same time. */
static void files_that_linger_delay_no_other_program(void **state)
{
    static void (*const attacks[])(void) = {linger_with_two, linger_with_twenty, linger_in_refusal};
    (void)state;
    /* asymd decides on each connection: none is refused before the message is in it. */
    asym_process_signal(asymd, SIGSTOP);
    for (size_t i = 0; i < ASYM_LENGTH(attacks); i++)
        attack_as(i, ATTACKER + (uid_t)i, attacks[i]);
    await_sent(ASYM_LENGTH(attacks));
    assert_int_equal(shared->sent, ASYM_LENGTH(attacks));
    asym_process_signal(asymd, SIGCONT);
    sleep(1);
    for (size_t i = 0; i < ASYM_LENGTH(attacks); i++)
        assert_true(is_attacking(i));
    const int failed = count_failed(3);
    end_asymd();
    assert_int_equal(failed, 0);
}

/* The message has arrived, but is not read, when asymd gets the signal to stop. */
static void a_file_that_lingers_does_not_delay_the_end(void **state)
{
    (void)state;
    asym_process_signal(asymd, SIGSTOP);
    attack_as(0, ATTACKER, linger_with_two);
    await_sent(1);
    asym_process_signal(asymd, SIGTERM);
    asym_process_signal(asymd, SIGCONT);
    end_asymd();
}

/* ---- FUSE: a file system that only answers the requests that open a file. ---- */

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
        if (h->opcode == FUSE_READ)
            shared->is_locked = true;
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
 * Opens a file on it. The process is root until then, in its own mount namespace. The server is another process: when the
 * server exits, all requests that wait for an answer end.
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
    const pid_t pid = must(asym_process_fork(), "fork");
    if (pid == 0)
        answer_some();
    shared->server = pid;
    close(fuse.device);
    snprintf(file, sizeof file, "%s/f", fuse.dir);
    return must(open(file, O_RDWR | O_CLOEXEC), "open");
}

static void pass_fuse_file(void)
{
    const int file = open_fuse_file(), fds[] = {file, file};
    const int fd = must(asym_raw_connect(path), "connect");
    pass_files(fd, fds, 2);
    for (;;)
        pause();
}

static void check_fuse(void (*attack)(void), bool must_hang)
{
    attack_as(0, 0, attack);
    for (int i = 0; i < PATIENCE_MS && shared->sent == 0 && !shared->hangs; i++)
        usleep(1000);
    /* In the seconds of the tries the closers of the first moment come and go. One that hangs is there before and after. */
    int failed = count_failed(1);
    const struct closers closers = must_hang ? list_closers() : (struct closers){.n = 0};
    failed += count_failed(2);
    assert_true(is_attacking(0));
    const bool hangs = one_hangs(&closers);
    end_asymd();
    assert_int_equal(hangs, must_hang);
    assert_int_equal(failed, 0);
}

/* asymd never installs a file that was passed, and the kernel flushes only installed ones. */
static void a_file_whose_flush_is_never_answered_delays_no_other_program(void **state)
{
    (void)state;
    check_fuse(pass_fuse_file, false);
}

/*
 * Puts the eventfd from asymd into an epoll instance. A thread holds the lock of the instance, because it writes an event
 * to memory that never becomes available. The last close of the eventfd waits for that lock.
 */
static int held_epoll;
static void *blocked_memory;

static void *hold_lock(void *arg)
{
    (void)arg;
    while (epoll_wait(held_epoll, blocked_memory, 1, -1) >= 0)
        ;
    return NULL;
}

/* asymd reads the eventfd, too: the attacker writes to it until the thread waits for the memory. */
static int take_epoll_lock(void)
{
    int memfd, event;
    pthread_t thread;
    struct epoll_event in = {.events = EPOLLIN};
    const int file = open_fuse_file(), fd = must(asym_raw_connect(path), "connect");
    blocked_memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    held_epoll = must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    if (blocked_memory == MAP_FAILED || !asym_raw_receive(fd, PATIENCE_MS, &memfd, &event))
        _exit(6);
    must(asym_raw_fill(memfd, event, getpid()), "fill");
    must(epoll_ctl(held_epoll, EPOLL_CTL_ADD, event, &in), "epoll_ctl");
    pthread_create(&thread, NULL, hold_lock, NULL);
    while (!shared->is_locked) {
        must(eventfd_write(event, 1), "write to the eventfd");
        usleep(1000);
    }
    close(event);
    return fd;
}

static void hold_epoll_lock(void)
{
    close(take_epoll_lock());
    shared->hangs = true;
    for (;;)
        pause();
}

static void an_eventfd_whose_close_waits_delays_no_other_program(void **state)
{
    (void)state;
    check_fuse(hold_epoll_lock, true);
}

/* asymd is killed while it has that eventfd. Its exit must not wait for the lock, or --restore could not run. */
static void keep_epoll_lock(void)
{
    take_epoll_lock();
    for (;;)
        pause();
}

static void an_eventfd_whose_close_waits_does_not_delay_a_kill(void **state)
{
    (void)state;
    attack_as(0, 0, keep_epoll_lock);
    for (int i = 0; i < PATIENCE_MS && !shared->is_locked; i++)
        usleep(1000);
    assert_true(shared->is_locked && is_attacking(0));
    asym_process_signal(asymd, SIGKILL);
    assert_true(has_ended(asymd, PATIENCE_MS));
    asymd = 0;
}

/* ---- Floods and places. ---- */

static void flood(void)
{
    for (;;) {
        const int fd = asym_raw_connect(path);
        if (fd < 0) {
            usleep(MANY);
            continue;
        }
        shared->connected++;
        close(fd);
    }
}

static void check_flood(int n)
{
    for (int i = 0; i < n; i++)
        attack_as((size_t)i, ATTACKER, flood);
    sleep(1);
    const int failed = count_failed(5);
    end_attackers();
    print_message("%d flooders, %ld connections: two other users were let in %d of 10 times\n", n, shared->connected,
                  10 - failed);
    end_asymd();
    assert_true(shared->connected > 0);
    assert_int_equal(failed, 0);
}

static void a_flood_of_connections_keeps_no_other_user_out(void **state)
{
    (void)state;
    check_flood(1);
}

static void four_floods_of_connections_keep_no_user_out(void **state)
{
    (void)state;
    check_flood(4);
}

/* ---- A close that hangs, and a flood of connections that wait for it. ---- */

enum {
    FLOOD = 600,           /* connections; more than 512 descriptors, at which the helper once stopped to accept */
    MOST_HELD = 8192,      /* descriptors of one user that the helper may hold */
    MOST_HELD_EMPTY = 100, /* the same, if the user passed no file */
};

static void flood_with(const int *fds, size_t n)
{
    for (;;) {
        const int fd = asym_raw_connect(path);
        if (fd < 0) {
            usleep(MANY);
            continue;
        }
        shared->sent += send_first(fd, fds, n) == 0;
        close(fd);
    }
}

static void flood_with_messages(void)
{
    flood_with(NULL, 0);
}

static void flood_with_files(void)
{
    const int file = must(open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
    flood_with(&file, 1);
}

/* The flood begins before the helper can know that the close hangs. */
static pid_t hang_and_flood(pid_t helper, void (*flood_of)(void))
{
    attack_as(0, 0, hold_epoll_lock);
    for (int i = 0; i < PATIENCE_MS && !shared->hangs; i++)
        usleep(1000);
    attack_as(1, ATTACKER, flood_of);
    attack_as(2, ATTACKER, flood_of);
    sleep(3);
    await_sent(FLOOD + 1); /* a slow machine takes longer */
    assert_true(is_attacking(0) && is_attacking(1) && is_attacking(2));
    assert_true(helper > 1);
    const pid_t closer = first_child(helper);
    assert_true(closer > 1);
    return closer;
}

static void check_others_get_in(pid_t helper, pid_t closer, size_t most_held)
{
    const int failed = count_failed_of(HONEST, 0, 3);
    const size_t held = (size_t)asym_process_descriptors(helper);
    print_message(
        "%ld connections with a message behind a close that hangs: another user and root were let in %d of 6 times; "
        "the helper has %zu descriptors\n",
        shared->sent, 6 - failed, held);
    const bool hangs = first_child(helper) == closer;
    end_asymd();
    assert_true(hangs);
    assert_true(shared->sent > FLOOD);
    assert_int_equal(failed, 0);
    assert_true(held < most_held);
}

/* Acts like a file system without ACLs, where the kernel does not refuse the attacker's connections. */
static void messages_behind_a_close_that_hangs_keep_no_user_out(void **state)
{
    (void)state;
    const pid_t helper = helper_of(asymd), closer = hang_and_flood(helper, flood_with_messages);
    assert_true(removexattr(path, "system.posix_acl_access") == 0 || errno == ENODATA || errno == EOPNOTSUPP);
    check_others_get_in(helper, closer, MOST_HELD_EMPTY);
}

static void files_behind_a_close_that_hangs_keep_no_user_out(void **state)
{
    (void)state;
    const pid_t helper = helper_of(asymd), closer = hang_and_flood(helper, flood_with_files);
    check_others_get_in(helper, closer, MOST_HELD);
}

enum { PROCESSES = 16, USERS = 4 };

/* Takes a place: an open connection on which a page has arrived. Returns -1 if there is none. */
static int take_place(void)
{
    int memfd, event;
    const int fd = asym_raw_connect(path);
    if (fd >= 0 && asym_raw_receive(fd, 500, &memfd, &event) && asym_raw_fill(memfd, event, getpid()) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int count_held(int fds[], size_t n)
{
    int held = 0;
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0 && asym_raw_is_closed(fds[i], 0)) {
            close(fds[i]);
            fds[i] = -1;
        }
        held += fds[i] >= 0;
    }
    return held;
}

/*
 * The attacker tries again about once a second, as often as its user may connect. It counts its places in shared memory.
 */
static _Noreturn void take_places_of_process(void)
{
    int fds[ASYM_RTXD_MAX_OF_PID] = {-1, -1, -1, -1}, counted = 0;
    for (;;) {
        for (size_t i = 0; i < ASYM_LENGTH(fds); i++) {
            fds[i] = fds[i] >= 0 ? fds[i] : take_place();
            if (fds[i] < 0)
                break;
        }
        for (int i = 0; i < 20; i++, usleep(50000)) {
            const int held = count_held(fds, ASYM_LENGTH(fds));
            shared->places += held - counted;
            counted = held;
        }
    }
}

static void take_places(void)
{
    for (int i = 0; i < PROCESSES; i++)
        if (asym_process_fork() == 0)
            take_places_of_process();
    for (;;)
        pause();
}

static void four_users_with_all_places_keep_no_user_out(void **state)
{
    (void)state;
    _Static_assert(USERS * PROCESSES * ASYM_RTXD_MAX_OF_PID >= ASYM_RTXD_MAX_OF_USERS, "enough for all places");
    for (unsigned i = 0; i < USERS; i++)
        attack_as(i, 3001 + i, take_places);
    for (int i = 0; i < 2 * PATIENCE_MS / 10 && shared->places < ASYM_RTXD_MAX_OF_USERS; i++)
        usleep(10000);
    const int taken = shared->places;
    const int failed = count_failed_of(HONEST, 0, 3), left = shared->places;
    end_asymd();
    print_message("four users had %d places, and have %d\n", taken, left);
    /* A place that asymd has just taken back counts until its process polls again. */
    assert_true(taken >= ASYM_RTXD_MAX_OF_USERS);
    /* The honest user took at most one of their places each time. */
    assert_true(left >= ASYM_RTXD_MAX_OF_USERS - 3);
    assert_int_equal(failed, 0);
}

/* ---- A PID that another process has by then. ---- */

/* The process of a connection exits before asymd checks it, and a process of another user gets its PID. */
static pid_t start_as(pid_t number)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    fflush(NULL);
    const pid_t parent = getpid(), pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        asym_process_end_with(parent);
        alarm(60);
        asym_raw_become(HONEST);
        for (;;)
            pause();
    }
    return pid;
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
    pass_files(the_socket, fds, 2);
}

static void a_connection_counts_for_no_successor_with_the_same_pid(void **state)
{
    (void)state;
    const pid_t helper = helper_of(asymd);
    int status, memfd, event;
    the_socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    assert_true(helper > 1);
    assert_int_equal(asym_process_stop(asymd), 0);
    assert_int_equal(asym_process_stop(helper), 0);
    const pid_t dead = start(ATTACKER, connect_and_die);
    assert_int_equal(waitpid(dead, &status, 0), dead);
    assert_int_equal(status, 0);
    const pid_t victim = start_as(dead);
    assert_int_equal(victim, dead);
    /* The helper was stopped, so it has not checked the connection while the attacker lived. */
    assert_int_equal(asym_process_state(helper), 'T');
    assert_int_equal(asym_process_state(asymd), 'T');
    asym_process_signal(asymd, SIGCONT);
    asym_process_signal(helper, SIGCONT);
    const bool handed = asym_raw_receive(the_socket, 1000, &memfd, &event),
               closed = asym_raw_is_closed(the_socket, PATIENCE_MS);
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
        "on_an_older_kernel_" #f, f, set_up_alone, tear_down, NULL                                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(files_that_linger_delay_no_other_program),
        T(a_file_that_lingers_does_not_delay_the_end),
        T(a_file_whose_flush_is_never_answered_delays_no_other_program),
        T(an_eventfd_whose_close_waits_delays_no_other_program),
        T(an_eventfd_whose_close_waits_does_not_delay_a_kill),
        T(a_flood_of_connections_keeps_no_other_user_out),
        T(four_floods_of_connections_keep_no_user_out),
        T(four_users_with_all_places_keep_no_user_out),
        T(a_connection_counts_for_no_successor_with_the_same_pid),
        ALONE(files_that_linger_delay_no_other_program),
        ALONE(a_file_that_lingers_does_not_delay_the_end),
        ALONE(a_file_whose_flush_is_never_answered_delays_no_other_program),
        ALONE(an_eventfd_whose_close_waits_delays_no_other_program),
        ALONE(messages_behind_a_close_that_hangs_keep_no_user_out),
        ALONE(files_behind_a_close_that_hangs_keep_no_user_out),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
