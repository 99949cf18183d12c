/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process whose mmap lock is held for ever: a second process shares its memory, and waits in mmap for the attacker's own
 * file system. Every reader of its maps or command line waits, too. The test needs FUSE and a user namespace.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "support/attack.h"
#include "support/fuse.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

#define SECONDS    100
#define STACK_SIZE 65536
#define LOCKED     'l' /* so the name of the attacker begins when its memory is locked */

static int mapped_file;
static pid_t creator; /* of the process that holds the lock */

static int hold_lock(void *none)
{
    asym_process_end_with(creator);
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, mapped_file, 0);
    for (;;)
        pause();
    return 0;
}

/* A byte from pipe lets the process lock its memory. */
static void attack(void *pipe, int ready)
{
    const char *dir = asym_service_dir();
    const int go = *(int *)pipe;
    char path[160], byte = 0, name[16];
    static char stack[STACK_SIZE];
    const pid_t test = getppid();
    pid_t holder = 0;
    asym_attack_become_stranger(SECONDS);
    int device = asym_fuse_mount(dir);
    /* The file system never answers this read, and the page stays locked. */
    if (asym_process_fork_orphan(SECONDS) == 0)
        asym_fuse_serve(device, FUSE_READ, test);
    snprintf(path, sizeof path, "%s/mount/file", dir);
    const int cached = open(path, O_RDONLY | O_CLOEXEC);
    mapped_file = open(path, O_RDONLY | O_CLOEXEC);
    MUST(cached >= 0 && mapped_file >= 0);
    close(device);
    const pid_t reader = asym_process_fork();
    if (reader == 0) {
        MUST(pread(cached, &byte, 1, 0) == 1);
        _exit(0);
    }
    while (asym_process_state(reader) == 'R')
        usleep(1000);
    MUST(write(ready, "", 1) == 1);
    MUST(fcntl(go, F_SETFL, O_NONBLOCK) == 0);
    /* A new name from time to time makes asymd read the command line again. */
    creator = getpid();
    for (unsigned i = 0;; i++) {
        asym_attack_run(5000);
        snprintf(name, sizeof name, "%c%u", holder && asym_process_state(holder) == 'D' ? LOCKED : 'a', i % 1000);
        prctl(PR_SET_NAME, name);
        if (read(go, &byte, 1) == 1)
            MUST((holder = clone(hold_lock, stack + STACK_SIZE, CLONE_VM | SIGCHLD, NULL)) > 0);
    }
}

/* Reads all of these files, then exits with 0. */
static pid_t start_reader(pid_t pid, const char *const *names)
{
    pid_t child = asym_process_fork();
    if (child > 0)
        return child;
    alarm(SECONDS);
    for (; *names; names++) {
        char path[64], text[4096];
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, *names);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (strcmp(*names, "exe") == 0 || strcmp(*names, "ns/pid") == 0)
            MUST(readlink(path, text, sizeof text) > 0);
        else if (strcmp(*names, "task") == 0)
            MUST(syscall(SYS_getdents64, fd, text, sizeof text) > 0);
        else
            MUST(fd >= 0 && read(fd, text, sizeof text) > 0);
        close(fd);
    }
    cpu_set_t set;
    MUST(sched_getaffinity(pid, sizeof set, &set) == 0);
    _exit(0);
}

static int has_ended(pid_t pid, int none)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static int is_locked(pid_t attacker, int none)
{
    char path[64], text[16];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)attacker);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool is = read(fd, text, sizeof text) > 0 && *text == LOCKED;
    close(fd);
    return is;
}

static int is_blocked(pid_t pid, int none)
{
    return asym_process_state(pid) == 'D';
}

/*
 * The files that asymd itself reads do not take the lock. The command line, which its helper reads, does: returns a process that
 * waits for it. The helper also reads maps, for which newer kernels need no lock.
 */
static pid_t check_what_waits(pid_t attacker)
{
    static const char *const own[] = {"stat", "status", "schedstat", "cgroup", "exe", "ns/pid", "task", "comm", NULL},
                             *const helpers[] = {"cmdline", NULL};
    pid_t readers[] = {start_reader(attacker, own), start_reader(attacker, helpers)};
    assert_true(asym_live_await(has_ended, readers[0], 0, 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(asym_live_wait(readers[0]), 0);
    assert_true(asym_live_await(is_blocked, readers[1], 0, 1, ASYM_LIVE_PATIENCE));
    return readers[1];
}

/* Before the fix asymd was in D state, in proc_pid_cmdline_read, for as long as the attacker wanted. */
TEST(a_locked_memory_delays_nothing)
{
    char conf[160], option[192];
    int go[2];
    snprintf(conf, sizeof conf, "%s/conf", asym_service_dir());
    file_write(conf, "[asymd]\npolicy = pa\n[rule \"y\"]\nmatch_cmdline = *nothing*\naction = slow\n");
    snprintf(option, sizeof option, "--config=%s", conf);
    const char *const more[] = {option, NULL};
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    asym_fuse_prepare(asym_service_dir());
    pid_t attacker = asym_attack_start(attack, go);
    close(go[0]);
    /* Another program of the same tree. asymd must steer it while the first one hangs. */
    pid_t asymd = asym_service_start(getpid(), more);
    asym_live_sleep(1.5);
    assert_int_equal(write(go[1], "", 1), 1);
    assert_true(asym_live_await(is_locked, attacker, 0, 1, ASYM_LIVE_PATIENCE));
    pid_t reader = check_what_waits(attacker);
    pid_t spin = asym_service_spin("2");
    const int steered = asym_live_await(asym_live_narrow_threads, spin, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE);
    const double stop = asym_attack_stop(asymd, 5);
    printf("%s, stopped in %.2f s\n", steered ? "others are steered" : "others are not steered", stop);
    /* asymd has ended before the attack does. */
    const int still_locked = is_blocked(reader, 0);
    close(go[1]);
    /* Kill all at once: a process that shares the memory cannot end before the server has. */
    assert_int_equal(asym_process_signal_group(attacker, SIGKILL), 0);
    asym_live_wait(attacker);
    asym_live_end(reader, SIGKILL);
    assert_true(still_locked);
    assert_true(stop >= 0);
    assert_true(steered);
}

TEST_MAIN_WITH(asym_service_set_up, asym_service_tear_down)
