/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loop-rtx [--seconds=N] [--seed=N] [--server]: programs of many users (the strangers) use and misuse asymd's socket at random,
 * and die. Meanwhile an honest program joins, reports phases and leaves, and the test kills or stops the helper now and then.
 * asymd must keep running its loop and admit the honest program. Whenever the strangers have ended, asymd and its helper must
 * have freed everything they held for them.
 *
 * --server: replaces asymd by the server of this build in its own process, as on a kernel without SO_PASSRIGHTS, which cannot
 * refuse descriptors in messages. The programs have different users only if root runs the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "base/macro.h"
#include "support/process.h"
#include "support/rounds.h"
#include "support/rtx-alone.h"
#include "support/rtx-raw.h"

enum {
    STRANGERS = 6,
    USERS = 40,
    FIRST_USER = 3000,
    HONEST_USER = 2001,
    CONNECTIONS = 16,
    PERIOD_MS = 8000,     /* from one pause to the next */
    GOES_ROUND_MS = 5000, /* maximum time between two heartbeats of asymd, on a busy machine */
    LET_IN_MS = 20000,    /* maximum time to join: asymd replaces a stopped helper after some seconds */
    CLEAN_MS = 15000,     /* maximum time to free what the strangers used */
    HAS_CUT = 77,         /* exit status of a stranger that could truncate its page */
    FDS_MORE = 2,
    KILOBYTES_MORE = 4096,
};

#define ASYMD ASYM_TEST_BIN "/daemon/asymd"

/* Memory shared by all processes. */
struct shared {
    atomic_bool quiet, end;
    atomic_llong waits_since; /* start of the honest program's wait for its page; 0: it does not wait */
    atomic_long joins, lives, longest_join;
    atomic_int away; /* programs that have paused, the honest one included */
};

static struct {
    struct shared *shared;
    char dir[64], path[96];
    bool server, is_root;
    unsigned long seed, seconds;
    pid_t asymd, target, honest, strangers[STRANGERS];
    int notify;
    long long last_sign;
    bool checks_memory;
    long fds, asymd_kb; /* before the first program, and at the first pause */
} w;

static _Noreturn void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "loop-rtx: seed %lu: ", w.seed);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- Strangers. ---- */

struct connection {
    int fd, memfd, event; /* -1: none */
};

struct life {
    uint64_t random;
    struct connection connections[CONNECTIONS];
};

static uint32_t next(struct life *l, uint32_t below)
{
    l->random += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = l->random;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void close_connection(struct connection *c)
{
    asym_close_p(&c->fd);
    asym_close_p(&c->memfd);
    asym_close_p(&c->event);
    *c = (struct connection){-1, -1, -1};
}

static void do_connect(struct life *l, struct connection *c)
{
    (void)l;
    close_connection(c);
    const int fd = asym_raw_connect(w.path);
    c->fd = fd < 0 ? -1 : fd;
}

static void do_receive(struct life *l, struct connection *c)
{
    if (c->memfd < 0 && c->fd >= 0)
        asym_raw_receive(c->fd, (int)next(l, 20), &c->memfd, &c->event);
}

static void do_join(struct life *l, struct connection *c)
{
    do_connect(l, c);
    do_receive(l, c);
    if (c->memfd >= 0)
        asym_raw_fill(c->memfd, c->event, getpid());
}

static void do_send(struct life *l, struct connection *c)
{
    char text[512];
    memset(text, (int)next(l, 256), sizeof text);
    asym_raw_send(c->fd, text, next(l, 4) == 0 ? 0 : next(l, sizeof text), NULL, 0);
}

/* Files of all kinds, some of them last references. */
static void do_pass(struct life *l, struct connection *c)
{
    int fds[64], pipes[2] = {-1, -1};
    const uint32_t n = 1 + next(l, ASYM_LENGTH(fds));
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    const int kinds[] = {pipes[next(l, 2)], c->fd, c->memfd, c->event, open("/dev/null", O_RDWR | O_CLOEXEC)};
    for (uint32_t i = 0; i < n; i++) {
        fds[i] = kinds[next(l, ASYM_LENGTH(kinds))];
        if (fds[i] < 0)
            fds[i] = pipes[0];
    }
    asym_raw_send(c->fd, "", next(l, 2), fds, n);
    close(pipes[0]);
    close(pipes[1]);
    close(kinds[4]);
}

static void do_linger(struct life *l, struct connection *c)
{
    const int fd = next(l, 4) == 0 ? asym_raw_lingering() : -1;
    if (fd < 0)
        return;
    asym_raw_send(c->fd, "", next(l, 2), &fd, 1);
    close(fd);
}

static void do_wake(struct life *l, struct connection *c)
{
    for (uint32_t i = next(l, 200); c->event >= 0 && i > 0; i--)
        eventfd_write(c->event, 1 + next(l, 1000));
}

static void do_lie(struct life *l, struct connection *c)
{
    uint32_t words[32];
    for (size_t i = 0; i < ASYM_LENGTH(words); i++)
        words[i] = next(l, 4) == 0 ? next(l, UINT32_MAX) : next(l, 200);
    if (next(l, 2) == 0)
        words[0] = ASYM_RTX_MAGIC;
    if (next(l, 2) == 0)
        words[1] = ASYM_RTX_VERSION;
    if (c->memfd >= 0 && pwrite(c->memfd, words, sizeof words, next(l, 2) * 64) > 0)
        do_wake(l, c);
}

static void do_phases(struct life *l, struct connection *c)
{
    for (uint32_t i = next(l, 50); c->memfd >= 0 && i > 0; i--) {
        const uint64_t word = ASYM_RTX_WORKING | ASYM_RTX_MASTER | ASYM_RTX_PHASES | (i % 2 ? ASYM_RTX_SERIAL : 0) |
                              i * ASYM_RTX_CHANGE;
        if (pwrite(c->memfd, &word, sizeof word, sizeof(struct asym_rtx_header)) > 0)
            eventfd_write(c->event, 1);
    }
}

static void do_harm_memory(struct life *l, struct connection *c)
{
    const off_t at = next(l, 70) * 4096;
    if (c->memfd < 0)
        return;
    fallocate(c->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 4096 * (1 + next(l, 70)));
    if (ftruncate(c->memfd, at) == 0)
        _exit(HAS_CUT);
    fcntl(c->memfd, F_ADD_SEALS, F_SEAL_WRITE);
    fcntl(c->memfd, F_SETFL, next(l, 2) ? O_APPEND | O_NONBLOCK : 0);
}

/* The epoll instances outlive the stranger's own reference to the eventfd. */
static void do_harm_event(struct life *l, struct connection *c)
{
    struct epoll_event event = {.events = EPOLLIN | (next(l, 2) ? EPOLLET : 0)};
    if (c->event < 0)
        return;
    fcntl(c->event, F_SETFL, next(l, 2) ? O_NONBLOCK : 0);
    fcntl(c->event, F_SETOWN, getpid());
    for (uint32_t i = next(l, 20); i > 0; i--) {
        const int epoll = epoll_create1(EPOLL_CLOEXEC);
        if (epoll >= 0)
            epoll_ctl(epoll, EPOLL_CTL_ADD, c->event, &event);
    }
    if (next(l, 2)) {
        close(c->event);
        c->event = -1;
    }
}

static void do_half_close(struct life *l, struct connection *c)
{
    shutdown(c->fd, (int)next(l, 3));
}

static void do_close(struct life *l, struct connection *c)
{
    (void)l;
    close_connection(c);
}

static void do_rest(struct life *l, struct connection *c)
{
    (void)c;
    usleep(next(l, 5000));
}

/* A child that holds all these files for a while longer. */
static void do_fork(struct life *l, struct connection *c)
{
    (void)c;
    const useconds_t us = next(l, 200000);
    if (asym_process_fork_orphan(20) == 0) {
        usleep(us);
        _exit(0);
    }
}

static void do_flood(struct life *l, struct connection *c)
{
    (void)c;
    for (uint32_t i = next(l, 300); i > 0; i--) {
        const int fd = asym_raw_connect(w.path);
        if (fd >= 0)
            close(fd);
    }
}

static void (*const actions[])(struct life *, struct connection *) = {
    do_connect,     do_join,       do_join,       do_receive, do_send,  do_pass, do_linger, do_wake, do_lie,  do_phases,
    do_harm_memory, do_harm_event, do_half_close, do_close,   do_close, do_rest, do_rest,   do_fork, do_flood};

static _Noreturn void live(uint64_t random)
{
    struct life l = {.random = random};
    signal(SIGPIPE, SIG_IGN);
    alarm(20);
    for (size_t i = 0; i < CONNECTIONS; i++)
        l.connections[i] = (struct connection){-1, -1, -1};
    if (w.is_root)
        asym_raw_become(FIRST_USER + next(&l, USERS));
    for (uint32_t n = 1 + next(&l, 60); n > 0 && !w.shared->quiet; n--)
        actions[next(&l, ASYM_LENGTH(actions))](&l, &l.connections[next(&l, CONNECTIONS)]);
    if (next(&l, 3) == 0)
        asym_process_signal(getpid(), SIGKILL);
    _exit(0);
}

/* Each stranger lives several lives in sequence. */
static _Noreturn void be_stranger(unsigned number)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setpriority(PRIO_PROCESS, 0, 10);
    for (uint64_t i = 0;; i++) {
        while (w.shared->quiet) {
            w.shared->away++;
            while (w.shared->quiet)
                usleep(1000);
            w.shared->away--;
        }
        const pid_t pid = asym_process_fork();
        if (pid == 0)
            live(w.seed * UINT64_C(1000003) + number * UINT64_C(10000019) + i * UINT64_C(0x9E3779B97F4A7C15));
        for (int status; wait(&status) >= 0 || errno == EINTR;)
            if (WIFEXITED(status) && WEXITSTATUS(status) == HAS_CUT)
                _exit(HAS_CUT);
        w.shared->lives++;
    }
}

/* ---- The honest program. ---- */

static void wait_until_joined(void)
{
    const long long begun = asym_raw_ms();
    w.shared->waits_since = begun;
    while (asym_rtx_join(NULL) == 0 && !asym_rtx_is_joined())
        usleep(10000);
    w.shared->waits_since = 0;
    const long took = (long)(asym_raw_ms() - begun);
    w.shared->longest_join = ASYM_MAX(w.shared->longest_join, took);
    w.shared->joins++;
}

static _Noreturn void be_honest(void)
{
    setenv(ASYM_RTX_SOCKET_ENV, w.path, 1);
    if (w.is_root)
        asym_raw_become(HONEST_USER);
    for (;;) {
        if (w.shared->quiet) {
            asym_rtx_leave();
            w.shared->away++;
            while (w.shared->quiet)
                usleep(1000);
            w.shared->away--;
        }
        wait_until_joined();
        asym_rtx_thread();
        asym_rtx_master(1);
        for (int i = 0; i < 50 && asym_rtx_is_joined() && !w.shared->quiet; i++) {
            asym_rtx_serial_begin();
            usleep(5000);
            asym_rtx_serial_end();
            usleep(5000);
            asym_rtx_join(NULL);
        }
        asym_rtx_leave();
    }
}

/* ---- asymd, or the server alone. ---- */

static void be_asymd(void)
{
    char dir[128], target[32];
    snprintf(dir, sizeof dir, "--set=asymd.state_dir=%s", w.dir);
    snprintf(target, sizeof target, "--pid=%d", (int)w.target);
    setenv("WATCHDOG_USEC", "1000000", 1);
    execl(ASYMD, ASYMD, "--service", dir, target, "--slow=1", "--interval=100ms", (char *)NULL);
    _exit(127);
}

static void open_notify(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", w.dir);
    w.notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(w.notify, (struct sockaddr *)&address, sizeof address) < 0)
        fail("%s: %s", address.sun_path, strerror(errno));
    if (w.server && connect(w.notify, (struct sockaddr *)&address, sizeof address) < 0)
        fail("%s: %s", address.sun_path, strerror(errno));
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

/* ---- Checks. ---- */

static long resident_kb(pid_t pid)
{
    char path[64], line[256];
    long kb = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmRSS: %ld", &kb);
    if (f)
        fclose(f);
    return kb;
}

/* Returns the helper that accepts programs; *ret_n: the number of its kind, with the closers that earlier ones have left. */
static pid_t helper_of_asymd(int *ret_n)
{
    pid_t helpers[64] = {0};
    *ret_n = (int)asym_process_helpers(w.asymd, "rtx", helpers, sizeof helpers / sizeof helpers[0]);
    return helpers[0];
}

static pid_t start(void (*program)(void))
{
    fflush(NULL);
    const pid_t pid = asym_process_fork();
    if (pid < 0)
        fail("fork: %s", strerror(errno));
    if (pid == 0) {
        program();
        _exit(0);
    }
    return pid;
}

static void be_target(void)
{
    for (;;)
        pause();
}

/* Check the heartbeats, the exits and the honest program. */
static void watch(void)
{
    char text[1024];
    const long long now = asym_raw_ms(), waits = w.shared->waits_since;
    while (recv(w.notify, text, sizeof text, MSG_DONTWAIT) > 0)
        w.last_sign = now;
    if (now - w.last_sign > GOES_ROUND_MS)
        fail("asymd gives no sign of life for %lld ms", now - w.last_sign);
    if (waits > 0 && now - waits > LET_IN_MS && w.is_root)
        fail("an honest program is not let in for %lld ms", now - waits);
    int status;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid > 0)
        fail("%s has ended: status %#x",
             pid == w.asymd    ? "asymd"
             : pid == w.honest ? "the honest program"
                               : "a stranger",
             (unsigned)status);
}

static bool is_clean(char *why, size_t size)
{
    int n_helpers;
    pid_t closers[64];
    size_t n_closers = 0;
    const pid_t helper = helper_of_asymd(&n_helpers);
    const long fds = asym_process_descriptors(w.asymd), helper_fds = asym_process_descriptors(helper),
               kb = resident_kb(w.asymd);
    if (helper > 0)
        n_closers = asym_process_children(helper, closers, sizeof closers / sizeof closers[0]);
    snprintf(why, size,
             "asymd has %ld descriptors, %ld at first, %ld kB, %ld before, and %d helpers; the helper has %ld "
             "descriptors and %zu closers",
             fds, w.fds, kb, w.asymd_kb, n_helpers, helper_fds, n_closers);
    return n_helpers == 1 && n_closers == 0 && fds <= w.fds + FDS_MORE && helper_fds <= 12 &&
           (w.asymd_kb == 0 || kb <= w.asymd_kb + KILOBYTES_MORE);
}

static void watch_until_clean(void)
{
    const long long begun = asym_raw_ms();
    char why[512];
    while (!is_clean(why, sizeof why)) {
        if (asym_raw_ms() - begun > CLEAN_MS)
            fail("%s", why);
        watch();
        usleep(20000);
    }
    if (w.asymd_kb == 0)
        w.asymd_kb = resident_kb(w.asymd);
}

static void have_quiet(void)
{
    const long long begun = asym_raw_ms();
    w.shared->quiet = true;
    while (w.shared->away < STRANGERS + 1) {
        if (asym_raw_ms() - begun > 2 * LET_IN_MS)
            fail("%d of %d have come to rest", w.shared->away, STRANGERS + 1);
        watch();
        usleep(10000);
    }
    watch_until_clean();
    w.shared->quiet = false;
}

/* asymd replaces the helper, and the next one takes over its work. */
static void harm_helper(struct life *l)
{
    int n;
    const pid_t helper = helper_of_asymd(&n);
    const uint32_t how = next(l, 4);
    if (helper > 1 && how < 2)
        asym_process_signal(helper, how == 0 ? SIGKILL : SIGSTOP);
}

static void run(void)
{
    struct life l = {.random = w.seed};
    const long long end = asym_raw_ms() + (long long)w.seconds * 1000;
    while (asym_raw_ms() < end) {
        const long long begun = asym_raw_ms(), harm = begun + next(&l, PERIOD_MS);
        for (bool harmed = false; asym_raw_ms() < begun + PERIOD_MS; usleep(20000)) {
            if (!harmed && asym_raw_ms() >= harm) {
                harm_helper(&l);
                harmed = true;
            }
            watch();
        }
        have_quiet();
    }
}

static void stop(void)
{
    int status;
    for (int i = 0; i < STRANGERS; i++)
        if (w.strangers[i] > 1)
            asym_process_signal(w.strangers[i], SIGKILL);
    if (w.honest > 1)
        asym_process_signal(w.honest, SIGKILL);
    if (w.target > 1)
        asym_process_signal(w.target, SIGKILL);
    if (w.asymd > 1)
        asym_process_signal(w.asymd, SIGTERM);
    for (int i = 0; i < 1000; i++) {
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == w.asymd && status != 0)
            fprintf(stderr, "loop-rtx: asymd ended with status %#x\n", (unsigned)status);
        if (pid == w.asymd)
            w.asymd = 0;
        if (pid < 0)
            break;
        usleep(10000);
    }
    if (w.asymd > 1) {
        fprintf(stderr, "loop-rtx: asymd does not end\n");
        asym_process_signal(w.asymd, SIGKILL);
    }
}

static void read_arguments(int argc, char **argv)
{
    w.seconds = asym_rounds(100);
    w.seed = 1;
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "--seconds=%lu", &w.seconds) == 1 || sscanf(argv[i], "--seed=%lu", &w.seed) == 1)
            continue;
        if (strcmp(argv[i], "--server") != 0) {
            fprintf(stderr, "usage: loop-rtx [--seconds=N] [--seed=N] [--server]\n");
            exit(2);
        }
        w.server = true;
    }
}

static void begin(void)
{
    w.is_root = geteuid() == 0;
    w.shared = mmap(NULL, sizeof *w.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(w.dir, sizeof w.dir, "/tmp/asym-loop-XXXXXX");
    if (w.shared == MAP_FAILED || !mkdtemp(w.dir) || chmod(w.dir, 0755) < 0)
        fail("cannot begin: %s", strerror(errno));
    snprintf(w.path, sizeof w.path, "%s/rtx", w.dir);
    atexit(stop);
    open_notify();
    w.target = start(be_target);
    w.last_sign = asym_raw_ms();
    w.asymd = w.server ? asym_rtx_alone_start(w.dir, w.notify) : start(be_asymd);
    if (w.asymd < 0)
        fail("fork: %s", strerror((int)-w.asymd));
    for (int fd = -1; (fd = asym_raw_connect(w.path)) < 0; usleep(10000))
        watch();
    sleep(2);
    w.fds = asym_process_descriptors(w.asymd);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    begin();
    w.honest = start(be_honest);
    for (unsigned i = 0; i < STRANGERS; i++) {
        fflush(NULL);
        w.strangers[i] = asym_process_fork();
        if (w.strangers[i] == 0)
            be_stranger(i);
    }
    run();
    printf("%lu s, seed %lu%s: %ld lives of strangers, %ld times the honest program was let in, after %ld ms at most\n",
           w.seconds, w.seed, w.server ? ", descriptors may be passed" : "", (long)w.shared->lives,
           (long)w.shared->joins, (long)w.shared->longest_join);
    return 0;
}
