/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process whose memory is locked for ever: a second process that shares it waits in mmap for a file system of the attacker's
 * own. What reads its maps or its command line waits, too. It takes FUSE and a user namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"

#define SECONDS    60
#define FILE_SIZE  65536
#define STACK_SIZE 65536
#define FUSE_MAJOR 10
#define FUSE_MINOR 229

struct file_system {
    int device, n_opened;
};

static void reply(const struct file_system *fs, uint64_t unique, int error, const void *data, size_t size)
{
    char buf[4096];
    const struct fuse_out_header head = {.len = (uint32_t)(sizeof head + size), .error = error, .unique = unique};
    memcpy(buf, &head, sizeof head);
    if (size > 0)
        memcpy(buf + sizeof head, data, size);
    if (write(fs->device, buf, sizeof head + size) < 0)
        perror("write to /dev/fuse");
}

static struct fuse_attr attributes(uint64_t inode)
{
    return (struct fuse_attr){.ino = inode,
                              .mode = inode == 1 ? S_IFDIR | 0777 : S_IFREG | 0666,
                              .nlink = 1,
                              .size = FILE_SIZE,
                              .blksize = 4096};
}

/* A read is never answered, and the page that it is for stays locked. The second to open the file maps it without a cache. */
static void serve_one(struct file_system *fs, const struct fuse_in_header *in)
{
    const struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = 4096, .max_write = 4096};
    const struct fuse_attr_out attr = {.attr_valid = 100, .attr = attributes(in->nodeid)};
    const struct fuse_entry_out entry = {.nodeid = 2, .entry_valid = 100, .attr_valid = 100, .attr = attributes(2)};
    const struct fuse_open_out open = {.fh = 1, .open_flags = fs->n_opened > 0 ? FOPEN_DIRECT_IO : 0};
    switch (in->opcode) {
    case FUSE_INIT:
        reply(fs, in->unique, 0, &init, sizeof init);
        break;
    case FUSE_GETATTR:
        reply(fs, in->unique, 0, &attr, sizeof attr);
        break;
    case FUSE_LOOKUP:
        reply(fs, in->unique, 0, &entry, sizeof entry);
        break;
    case FUSE_OPEN:
        fs->n_opened++;
        reply(fs, in->unique, 0, &open, sizeof open);
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        reply(fs, in->unique, 0, NULL, 0);
        break;
    case FUSE_READ:
    case FUSE_INTERRUPT:
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
        break;
    default:
        reply(fs, in->unique, -ENOSYS, NULL, 0);
    }
}

static void serve(int device)
{
    static _Alignas(struct fuse_in_header) char buf[1 << 20];
    struct file_system fs = {.device = device};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        ssize_t n = read(device, buf, sizeof buf);
        if (n >= (ssize_t)sizeof(struct fuse_in_header))
            serve_one(&fs, (const struct fuse_in_header *)(const void *)buf);
        else if (errno != EINTR && errno != ENOENT)
            _exit(1);
    }
}

static void fail_of(const char *call)
{
    fprintf(stderr, "%s: %s\n", call, strerror(errno));
    _exit(1);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        fail_of(path);
    close(fd);
}

/* Mounts a file system of its own on dir/mount. Returns the device. */
static int mount_own(const char *dir)
{
    char node[160], point[160], text[160];
    const int uid = (int)getuid(), gid = (int)getgid();
    snprintf(node, sizeof node, "%s/fuse", dir);
    snprintf(point, sizeof point, "%s/mount", dir);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        fail_of("unshare(CLONE_NEWUSER | CLONE_NEWNS)");
    write_text("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %d 1", uid);
    write_text("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "0 %d 1", gid);
    write_text("/proc/self/gid_map", text);
    int device = open(access(node, F_OK) == 0 ? node : "/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        fail_of("open /dev/fuse");
    snprintf(text, sizeof text, "fd=%d,rootmode=40777,user_id=0,group_id=0", device);
    if (mount("fuse", point, "fuse", MS_NOSUID | MS_NODEV, text) < 0)
        fail_of("mount fuse");
    return device;
}

static int mapped_file;

static int hold_lock(void *none)
{
    (void)none;
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, mapped_file, 0);
    for (;;)
        pause();
    return 0;
}

/* told: a pipe; a byte says that it is ready, and one from the other side that it is to lock its memory. */
static void attack(const char *dir, int ready, int go)
{
    char path[160], byte = 0, name[16];
    static char stack[STACK_SIZE];
    asym_attack_become_stranger(SECONDS);
    int device = mount_own(dir);
    if (fork() == 0)
        serve(device);
    snprintf(path, sizeof path, "%s/mount/file", dir);
    const int cached = open(path, O_RDONLY | O_CLOEXEC);
    mapped_file = open(path, O_RDONLY | O_CLOEXEC);
    MUST(cached >= 0 && mapped_file >= 0);
    close(device);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        MUST(pread(cached, &byte, 1, 0) == 1);
        _exit(0);
    }
    usleep(300000);
    MUST(write(ready, "", 1) == 1);
    MUST(fcntl(go, F_SETFL, O_NONBLOCK) == 0);
    /* A new name now and then makes asymd read the command line anew. */
    for (unsigned i = 0;; i++) {
        asym_attack_run(5000);
        snprintf(name, sizeof name, "a%u", i % 1000);
        prctl(PR_SET_NAME, name);
        if (read(go, &byte, 1) == 1)
            MUST(clone(hold_lock, stack + STACK_SIZE, CLONE_VM | SIGCHLD, NULL) > 0);
    }
}

static pid_t start(int *ret_go)
{
    char path[160], byte;
    int ready[2], go[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    assert_int_equal(chmod(asym_service_dir(), 0755), 0);
    snprintf(path, sizeof path, "%s/mount", asym_service_dir());
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(chmod(path, 0777), 0);
    snprintf(path, sizeof path, "%s/fuse", asym_service_dir());
    /* For root, in case /dev/fuse is for root alone. */
    if (geteuid() == 0 && mknod(path, S_IFCHR | 0666, makedev(FUSE_MAJOR, FUSE_MINOR)) == 0)
        assert_int_equal(chmod(path, 0666), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        attack(asym_service_dir(), ready[1], go[0]);
    }
    setpgid(pid, pid);
    close(ready[1]);
    close(go[0]);
    if (read(ready[0], &byte, 1) != 1)
        fail_msg("the attack cannot be made here: the line above names the call");
    close(ready[0]);
    *ret_go = go[1];
    return pid;
}

static void write_config(char *ret, size_t size)
{
    snprintf(ret, size, "%s/conf", asym_service_dir());
    FILE *f = fopen(ret, "w");
    assert_non_null(f);
    fprintf(f, "[rule \"y\"]\nmatch_cmdline = *nothing*\naction = slow\n");
    assert_int_equal(fclose(f), 0);
}

/* Ends when it has read all of them: 0. */
static pid_t start_reader(pid_t pid, const char *const *names)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    asym_attack_begin(SECONDS);
    for (; *names; names++) {
        char path[64], text[4096];
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, *names);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        MUST(strcmp(*names, "exe") == 0 ? readlink(path, text, sizeof text) > 0
                                        : fd >= 0 && read(fd, text, sizeof text) > 0);
        close(fd);
    }
    cpu_set_t set;
    MUST(sched_getaffinity(pid, sizeof set, &set) == 0);
    _exit(0);
}

static int has_ended(pid_t pid, int none)
{
    siginfo_t info = {.si_pid = 0};
    (void)none;
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* What asymd reads by itself does not take the lock; what its helper reads does. */
static void check_what_waits(pid_t attacker)
{
    static const char *const own[] = {"stat", "status", "schedstat", "cgroup", "exe", "comm", NULL},
                             *const helpers[] = {"maps", NULL}, *const others[] = {"cmdline", NULL};
    pid_t readers[] = {start_reader(attacker, own), start_reader(attacker, helpers), start_reader(attacker, others)};
    assert_true(asym_live_await(has_ended, readers[0], 0, 1, 10));
    assert_int_equal(asym_live_wait(readers[0]), 0);
    assert_false(has_ended(readers[1], 0) && has_ended(readers[2], 0));
    asym_live_end(readers[1], SIGKILL);
    asym_live_end(readers[2], SIGKILL);
}

/* D state before, in proc_pid_cmdline_read, for as long as the attacker likes. */
static void a_locked_memory_holds_up_nothing(void **state)
{
    char conf[160], option[192];
    int go;
    (void)state;
    write_config(conf, sizeof conf);
    snprintf(option, sizeof option, "--config=%s", conf);
    const char *const more[] = {option, NULL};
    pid_t attacker = start(&go);
    /* Another program of the same tree, which is steered whatever becomes of the first. */
    pid_t asymd = asym_service_start(getpid(), more);
    asym_live_sleep(1.5);
    assert_int_equal(write(go, "", 1), 1);
    asym_live_sleep(1);
    check_what_waits(attacker);
    pid_t spin = asym_service_spin("2");
    const int steered = asym_live_await(asym_live_narrow_threads, spin, asym_live_cpus(), 1, 15);
    const double stop = asym_attack_stop(asymd, 10);
    printf("%s, stopped in %.2f s\n", steered ? "others are steered" : "others are not steered", stop);
    close(go);
    /* All of them at once: none of those that share the memory ends before the server has. */
    assert_int_equal(asym_process_signal_group(attacker, SIGKILL), 0);
    asym_live_wait(attacker);
    asym_live_end(spin, SIGKILL);
    assert_true(stop >= 0 && stop < 5);
    assert_true(steered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_locked_memory_holds_up_nothing)};
    return cmocka_run_group_tests(tests, asym_service_set_up, asym_service_tear_down);
}
