/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loop-rtx [--seconds=N] [--seed=N]: programs of many users (the strangers) use and misuse asymd's directory at random, and die.
 * Meanwhile an honest program joins, reports phases and leaves. asymd must keep running its loop and read the honest program's
 * page. Whenever the strangers have ended, asymd must have freed everything it held for them. The programs have different users
 * only if root runs the test.
 */
#include <dirent.h>
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
#include <sys/mman.h>
#include <sys/mount.h>
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
#include "support/rtx-raw.h"

enum {
    STRANGERS = 6,
    USERS = 40,
    FIRST_USER = 3000,
    HONEST_USER = 2001,
    PAGES = 16,
    PERIOD_MS = 8000,     /* from one pause to the next */
    GOES_ROUND_MS = 5000, /* maximum time between two heartbeats of asymd, on a busy machine */
    LET_IN_MS = 20000,    /* maximum time to join */
    CLEAN_MS = 15000,     /* maximum time to free what the strangers used */
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
    bool is_root;
    unsigned long seed, seconds;
    pid_t asymd, target, honest, strangers[STRANGERS];
    int notify;
    long long last_sign;
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

struct life {
    uint64_t random;
    int pages[PAGES]; /* -1: none */
    uint64_t number;
};

static uint32_t next(struct life *l, uint32_t below)
{
    l->random += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = l->random;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void do_close(struct life *l, int *page)
{
    asym_close_p(page);
    *page = -1;
}

/* Also for processes of others. */
static void do_create(struct life *l, int *page)
{
    const pid_t pid = next(l, 4) ? getpid() : (pid_t)next(l, 70000);
    do_close(l, page);
    const int file = asym_raw_create(w.path, pid, l->number++);
    *page = file < 0 ? -1 : file;
}

static void do_announce(struct life *l, int *page)
{
    for (uint32_t i = next(l, 3); i > 0; i--)
        asym_raw_announce(*page);
}

static void do_join(struct life *l, int *page)
{
    do_create(l, page);
    asym_raw_fill(*page, getpid(), next(l, 2000));
    asym_raw_announce(*page);
}

static void do_wake(struct life *l, int *page)
{
    for (uint32_t i = next(l, 2000); *page >= 0 && i > 0; i--)
        asym_raw_wake(*page);
}

static void do_lie(struct life *l, int *page)
{
    uint32_t words[32];
    for (size_t i = 0; i < ASYM_LENGTH(words); i++)
        words[i] = next(l, 4) == 0 ? next(l, UINT32_MAX) : next(l, 200);
    if (next(l, 2) == 0)
        words[0] = ASYM_RTX_MAGIC;
    if (next(l, 2) == 0)
        words[1] = ASYM_RTX_VERSION;
    if (*page >= 0 && pwrite(*page, words, sizeof words, next(l, 2) * 64) > 0)
        do_wake(l, page);
}

static void do_phases(struct life *l, int *page)
{
    for (uint32_t i = next(l, 50); *page >= 0 && i > 0; i--)
        if (asym_raw_set_phase(*page, i % 2) == 0)
            asym_raw_wake(*page);
}

static void do_cut(struct life *l, int *page)
{
    const off_t at = next(l, 80) * 4096;
    if (*page < 0)
        return;
    if (next(l, 2))
        fallocate(*page, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, 4096 * (1 + next(l, 70)));
    else if (ftruncate(*page, at) == 0 && next(l, 2))
        fallocate(*page, 0, 0, at + 4096);
}

/* It makes other kinds of files, links and other names, and takes names away. */
static void do_names(struct life *l, int *page)
{
    char from[256], to[256];
    asym_raw_path(w.path, getpid(), next(l, 20), from, sizeof from);
    asym_raw_path(w.path, getpid(), next(l, 20), to, sizeof to);
    switch (next(l, 7)) {
    case 0:
        rename(from, to);
        break;
    case 1:
        link(from, to);
        break;
    case 2:
        symlink(from, to);
        break;
    case 3:
        mkfifo(to, 0644);
        break;
    case 4:
        mkdir(to, 0755);
        break;
    default:
        remove(from);
    }
    chmod(to, 0644);
}

static void do_rest(struct life *l, int *page)
{
    usleep(next(l, 5000));
}

/* A child that holds all these files for a while longer. */
static void do_fork(struct life *l, int *page)
{
    const useconds_t us = next(l, 200000);
    if (asym_process_fork_orphan(20) == 0) {
        usleep(us);
        _exit(0);
    }
}

static void do_flood(struct life *l, int *page)
{
    char path[256];
    for (uint32_t i = next(l, 300); i > 0; i--) {
        do_create(l, page);
        do_announce(l, page);
        asym_raw_path(w.path, getpid(), l->number - 1, path, sizeof path);
        unlink(path);
    }
}

static void (*const actions[])(struct life *, int *) = {do_create, do_join, do_join,  do_announce, do_wake,  do_lie,
                                                        do_phases, do_cut,  do_names, do_names,    do_close, do_close,
                                                        do_rest,   do_rest, do_fork,  do_flood};

/* So that the file system does not fill: a life names processes of others, too, whose files the library would leave. */
static void empty_own(void)
{
    char path[256];
    asym_raw_path(w.path, getpid(), 0, path, sizeof path);
    *strrchr(path, '/') = '\0';
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        unlinkat(dirfd(dir), e->d_name, e->d_type == DT_DIR ? AT_REMOVEDIR : 0);
    if (dir)
        closedir(dir);
}

static _Noreturn void live(uint64_t random)
{
    struct life l = {.random = random};
    signal(SIGPIPE, SIG_IGN);
    alarm(20);
    for (size_t i = 0; i < PAGES; i++)
        l.pages[i] = -1;
    if (w.is_root)
        asym_process_become(FIRST_USER + next(&l, USERS));
    empty_own();
    for (uint32_t n = 1 + next(&l, 60); n > 0 && !w.shared->quiet; n--)
        actions[next(&l, ASYM_LENGTH(actions))](&l, &l.pages[next(&l, PAGES)]);
    empty_own();
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
        while (wait(NULL) >= 0 || errno == EINTR)
            ;
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
    setenv(ASYM_RTX_DIR_ENV, w.path, 1);
    if (w.is_root)
        asym_process_become(HONEST_USER);
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

/* ---- asymd. ---- */

static void be_asymd(void)
{
    char dir[128], target[32];
    snprintf(dir, sizeof dir, "--set=asymd.state_dir=%s", w.dir);
    snprintf(target, sizeof target, "--pid=%d", (int)w.target);
    setenv("WATCHDOG_USEC", "1000000", 1);
    /* The sanitizer keeps what asymd has freed; that must not count as in use. */
    setenv("ASAN_OPTIONS", "quarantine_size_mb=1", 0);
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

/* A process of each user: asymd lends directories to the users that it sees, and it sees this process and its children. */
static void be_target(void)
{
    for (uid_t i = 0; w.is_root && i <= USERS; i++) {
        if (asym_process_fork() != 0)
            continue;
        asym_process_become(i == USERS ? HONEST_USER : FIRST_USER + i);
        break;
    }
    for (;;)
        usleep(200000);
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
    const long fds = asym_process_descriptors(w.asymd), kb = resident_kb(w.asymd);
    snprintf(why, size, "asymd has %ld descriptors, %ld at first, %ld kB, %ld before", fds, w.fds, kb, w.asymd_kb);
    return fds <= w.fds + FDS_MORE && (w.asymd_kb == 0 || kb <= w.asymd_kb + KILOBYTES_MORE);
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

static void run(void)
{
    const long long end = asym_raw_ms() + (long long)w.seconds * 1000;
    while (asym_raw_ms() < end) {
        for (const long long begun = asym_raw_ms(); asym_raw_ms() < begun + PERIOD_MS; usleep(20000))
            watch();
        have_quiet();
    }
}

/* Without asymd, which has removed its other files. */
static void remove_all(void)
{
    static const char *const left[] = {"rtx", "lock", "notify", ""};
    char path[128];
    for (size_t i = 0; i < ASYM_LENGTH(left); i++) {
        snprintf(path, sizeof path, "%s/%s", w.dir, left[i]);
        remove(path);
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
    umount2(w.path, MNT_DETACH);
    remove_all();
}

static void read_arguments(int argc, char **argv)
{
    w.seconds = asym_rounds(100);
    w.seed = 1;
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "--seconds=%lu", &w.seconds) == 1 || sscanf(argv[i], "--seed=%lu", &w.seed) == 1)
            continue;
        fprintf(stderr, "usage: loop-rtx [--seconds=N] [--seed=N]\n");
        exit(2);
    }
}

/* asymd keeps a descriptor for the directory of each user. */
static bool all_users_are_let_in(void)
{
    char path[160];
    bool are = asym_raw_home(w.path, HONEST_USER, path, sizeof path);
    for (uid_t i = 0; i < USERS; i++)
        are = are && asym_raw_home(w.path, FIRST_USER + i, path, sizeof path);
    return are;
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
    if (w.is_root && (mkdir(w.path, 0711) < 0 || mount("asym-rtx", w.path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                                                       "mode=700,size=16m,nr_inodes=4096") < 0))
        fail("%s: %s", w.path, strerror(errno));
    w.asymd = start(be_asymd);
    /* Its loop runs from its first sign on. */
    struct pollfd sign = {.fd = w.notify, .events = POLLIN};
    if (poll(&sign, 1, LET_IN_MS) != 1)
        fail("asymd has not started in %d ms", LET_IN_MS);
    while (access(w.path, X_OK) < 0 || (w.is_root && !all_users_are_let_in())) {
        watch();
        usleep(10000);
    }
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
    printf("%lu s, seed %lu: %ld lives of strangers, %ld times the honest program had a page, after %ld ms at most\n",
           w.seconds, w.seed, (long)w.shared->lives, (long)w.shared->joins, (long)w.shared->longest_join);
    return 0;
}
