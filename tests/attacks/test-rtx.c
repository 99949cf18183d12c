/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs of other users attack the directory of runtime extensions: they hold the locks of their files and directories, fill
 * the file system, mount over names, put their files where they may not, and name processes of others. The server must go on,
 * and let other users in. The test is the daemon, and needs root, for programs of several users.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <asym/rtx.h>

#include "base/clock.h"
#include "linux/rtx/rtx-server-internal.h"
#include "linux/rtx/rtx-server.h"
#include "support/fuse.h"
#include "support/limit-files.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/rtx-raw.h"
#include "support/test.h"

enum {
    HONEST = 2001,
    ATTACKER = 2002,
    LATER = 2004,
    HOLD_SEC = 40, /* a lock is held so long at most */
};

static char dir[64], path[96], its[160], honests[160]; /* directories: the attacker's, the honest user's */
static struct asym_rtxd_server *server;
static size_t refused[ASYM_RTXD_N_REFUSALS];
static struct {
    atomic_bool is_joined, end;
    atomic_int stage;
    pid_t fuse, named;
} * shared; /* with the programs */

static void on_refused(void *ctx, enum asym_rtxd_refusal refusal, pid_t pid, uid_t uid)
{
    ((size_t *)ctx)[refusal]++;
}

static int mount_pages(const char *options)
{
    return mount("asym-rtx", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0 ? -errno : 0;
}

/*
 * The server has the capabilities that the unit leaves to asymd, and no right to ignore modes (CAP_DAC_OVERRIDE). The test has all
 * that root has.
 */
static void become_unit(bool unit)
{
    const uint64_t kept = UINT64_C(1) << CAP_SYS_NICE | UINT64_C(1) << CAP_NET_ADMIN | UINT64_C(1) << CAP_SYS_PTRACE |
                          UINT64_C(1) << CAP_PERFMON;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    assert_int_equal(syscall(SYS_capget, &header, sets), 0);
    for (size_t i = 0; i < 2; i++)
        sets[i].effective = sets[i].permitted & (unit ? (uint32_t)(kept >> (32 * i)) : UINT32_MAX);
    assert_int_equal(syscall(SYS_capset, &header, sets), 0);
}

static void open_server(void)
{
    become_unit(true);
    const struct asym_rtxd_server_config config = {.dir = dir,
                                                   .spin_notify = 20,
                                                   .cpu_budget = 100,
                                                   .now = asym_clock_now(),
                                                   .refused = on_refused,
                                                   .ctx = refused};
    assert_int_equal(asym_rtxd_server_open(&config, &server, NULL), 0);
    assert_true(asym_rtxd_server_is_for_all(server));
    assert_int_equal(asym_rtxd_add_user(server, HONEST), 0);
    assert_int_equal(asym_rtxd_add_user(server, ATTACKER), 0);
    become_unit(false);
    assert_true(asym_raw_home(path, ATTACKER, its, sizeof its));
    assert_true(asym_raw_home(path, HONEST, honests, sizeof honests));
}

static int set_up(void **state)
{
    if (geteuid() != 0)
        fail_msg("%s", "setresuid: Operation not permitted (run as root)");
    alarm(2 * HOLD_SEC);
    memset(refused, 0, sizeof refused);
    shared = asym_live_share(sizeof *shared);
    snprintf(dir, sizeof dir, "/tmp/asym-rtx-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chmod(dir, 0755), 0);
    snprintf(path, sizeof path, "%s/rtx", dir);
    assert_int_equal(mkdir(path, 0711), 0);
    assert_int_equal(setenv(ASYM_RTX_DIR_ENV, path, 1), 0);
    return mount_pages("mode=700,size=1m,nr_inodes=512");
}

static int tear_down(void **state)
{
    static const char *const left[] = {"mount", "fuse", "sleep"};
    char name[96];
    asym_rtxd_server_close(server);
    server = NULL;
    umount2(path, MNT_DETACH);
    rmdir(path);
    for (size_t i = 0; i < ASYM_LENGTH(left); i++) {
        snprintf(name, sizeof name, "%s/%s", dir, left[i]);
        remove(name);
    }
    return rmdir(dir);
}

/* A process of this user, which ends with the test. */
static pid_t start(uid_t uid, void (*run)(void))
{
    fflush(NULL);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        alarm(2 * HOLD_SEC);
        MUST(asym_process_become(uid) == 0);
        run();
        _exit(0);
    }
    return pid;
}

static void end(pid_t pid)
{
    asym_process_signal(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void go_round(void)
{
    static asym_usec kept_house;
    const asym_usec now = asym_clock_now();
    struct pollfd ready = {.fd = asym_rtxd_server_fd(server), .events = POLLIN};
    const struct asym_rtxd_program_report *program_reports;
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    poll(&ready, 1, 5);
    become_unit(true);
    asym_rtxd_server_receive(server, now);
    asym_rtxd_server_serve(server, now);
    asym_rtxd_server_charge(server, 50);
    provider->ask(provider, now, ASYM_ASK_FINAL, &program_reports);
    if (now - kept_house >= ASYM_SEC) {
        kept_house = now;
        asym_rtxd_server_housekeeping(server, now);
    }
    become_unit(false);
}

static void meet(pid_t pid)
{
    become_unit(true);
    asym_rtxd_meet(&server->provider, pid, 1);
    become_unit(false);
}

/* Returns whether the server reads a page of this user. */
static bool has_client_of(uid_t uid)
{
    for (size_t i = 0; i < server->n; i++)
        if (server->clients[i]->uid == uid && !server->clients[i]->ended)
            return true;
    return false;
}

static void serve_until_client_of(uid_t uid)
{
    while (!has_client_of(uid))
        go_round();
}

static void joins_and_reports(void)
{
    while (!asym_rtx_is_joined()) {
        MUST(asym_rtx_join(NULL) == 0);
        usleep(10000);
    }
    shared->is_joined = true;
    asym_rtx_master(1);
    for (;;) {
        asym_rtx_serial_begin();
        usleep(2000);
        asym_rtx_serial_end();
        usleep(2000);
    }
}

static char locked[160];

/*
 * The write holds the lock of the file for as long as its memory does not come, and the unlink holds the lock of the directory for
 * as long as it waits for that of the file.
 */
static void holds_locks(void)
{
    char name[256], own[256];
    /* A process that has changed its user may not write its maps of users. */
    MUST(prctl(PR_SET_DUMPABLE, 1) == 0);
    const int device = asym_fuse_mount(dir);
    const pid_t fuse = asym_process_fork();
    if (fuse == 0) {
        alarm(HOLD_SEC);
        asym_fuse_serve(device, FUSE_READ, getppid());
    }
    shared->fuse = fuse;
    close(device);
    snprintf(name, sizeof name, "%s/mount/file", dir);
    const int source = open(name, O_RDONLY | O_CLOEXEC);
    const char *memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, source, 0);
    MUST(source >= 0 && memory != MAP_FAILED);
    snprintf(own, sizeof own, "%s/" ASYM_RTX_FILE "%d.1", its, (int)getpid());
    const int file = open(own, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    MUST(file >= 0 && asym_raw_fill(file, getpid(), 0) == 0 && asym_raw_announce(file) == 0);
    while (shared->stage < 1)
        usleep(1000);
    snprintf(name, sizeof name, "%s/" ASYM_RTX_FILE "%d.2", its, (int)getpid());
    const int gone = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    MUST(gone >= 0 && unlink(name) == 0);
    const pid_t writer = asym_process_fork();
    if (writer == 0) {
        _exit(write(file, memory, 4096) < 0);
    }
    while (asym_process_state(writer) == 'R')
        usleep(1000);
    usleep(50000);
    if (asym_process_fork() == 0) {
        unlink(own);
        _exit(0);
    }
    usleep(50000);
    /* This holds the lock of a common directory, to which the user may not write. */
    if (asym_process_fork() == 0) {
        snprintf(name, sizeof name, "%s/" ASYM_RTX_FILE "%d.3", its, (int)getpid());
        snprintf(own, sizeof own, "%s/x", locked);
        rename(name, own);
        _exit(0);
    }
    usleep(50000);
    shared->stage = 2;
    /* The kernel reports the name that the file had. To look for it needs the lock of the directory. */
    for (;;) {
        MUST(asym_raw_announce(gone) == 0);
        usleep(1000);
    }
}

static void creates_a_file_of_the_attacker(void)
{
    char name[256];
    snprintf(name, sizeof name, "%s/new", its);
    const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    MUST(fd >= 0);
}

/* Without the lock the kernel would refuse it at once. */
static void makes_a_common_directory(void)
{
    char name[272];
    snprintf(name, sizeof name, "%s/new", locked);
    mkdir(name, 0700);
}

static pid_t start_probe(uid_t uid, void (*run)(void))
{
    const pid_t pid = start(uid, run);
    while (asym_process_state(pid) != 'D')
        go_round();
    return pid;
}

/* The start would need the lock of the common directory. */
static void check_that_another_server_is_refused(void)
{
    struct asym_rtxd_server *another = NULL;
    struct asym_error err = {""};
    const struct asym_rtxd_server_config config = {.dir = dir};
    assert_int_equal(asym_rtxd_server_open(&config, &another, &err), -ENOTEMPTY);
    assert_non_null(strstr(err.text, "mount it anew"));
    assert_null(another);
}

/* Another program of the attacker hangs, and one of another user: so the locks are held. */
static void check_locks(void)
{
    asym_fuse_prepare(dir);
    const pid_t attacker = start(ATTACKER, holds_locks);
    serve_until_client_of(ATTACKER);
    shared->stage = 1;
    while (shared->stage < 2)
        go_round();
    const pid_t probes[] = {start_probe(ATTACKER, creates_a_file_of_the_attacker),
                            start_probe(HONEST, makes_a_common_directory)};
    const pid_t honest = start(HONEST, joins_and_reports), later = start(LATER, joins_and_reports);
    serve_until_client_of(HONEST);
    while (!has_client_of(LATER)) {
        meet(later);
        go_round();
    }
    /* More users than one pool has places. */
    for (uid_t uid = 5000; uid < 5000 + ASYM_RTXD_OF_POOL; uid++)
        assert_int_equal(asym_rtxd_add_user(server, uid), 0);
    for (int i = 0; i < 300; i++)
        go_round();
    asym_rtxd_server_close(server);
    server = NULL;
    check_that_another_server_is_refused();
    for (size_t i = 0; i < ASYM_LENGTH(probes); i++)
        assert_int_equal(asym_process_state(probes[i]), 'D');
    asym_process_signal(shared->fuse, SIGKILL);
    end(honest);
    end(later);
    end(attacker);
    for (size_t i = 0; i < ASYM_LENGTH(probes); i++)
        end(probes[i]);
}

TEST_WITH(the_lock_of_the_directory_of_all_delays_no_other_program, set_up, tear_down)
{
    open_server();
    snprintf(locked, sizeof locked, "%s", path);
    check_locks();
}

/* The pool of the directories that are lent. */
TEST_WITH(the_lock_of_a_pool_delays_no_other_program, set_up, tear_down)
{
    open_server();
    snprintf(locked, sizeof locked, "%s", honests);
    for (int i = 0; i < 2; i++)
        *strrchr(locked, '/') = '\0';
    check_locks();
}

static void fills_with_files(void)
{
    static char zeroes[65536];
    char name[256];
    for (int i = 0;; i++) {
        snprintf(name, sizeof name, "%s/%d", its, i);
        const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
            break;
        while (write(fd, zeroes, sizeof zeroes) > 0)
            ;
    }
    shared->stage = 1;
    pause();
}

/* From Linux 6.6 on. They take the room of inodes, and no quota counts them. */
static void fills_with_attributes(void)
{
    static char value[4096];
    char name[256];
    snprintf(name, sizeof name, "%s/0", its);
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    MUST(fd >= 0);
    for (size_t size = sizeof value, i = 0; size > 0; i++) {
        snprintf(name, sizeof name, "user.%zu", i);
        if (fsetxattr(fd, name, value, size, 0) < 0)
            size /= 2;
    }
    MUST(errno == ENOSPC || errno == EOPNOTSUPP);
    shared->stage = errno == ENOSPC ? 1 : 2;
    pause();
}

/* The file system is full: the program goes on, and reports when there is room. */
static void check_full(void (*fill)(void))
{
    char name[256];
    open_server();
    const pid_t attacker = start(ATTACKER, fill);
    while (shared->stage < 1)
        go_round();
    const pid_t honest = start(HONEST, joins_and_reports);
    for (int i = 0; i < 100 && shared->stage == 1; i++) {
        go_round();
        assert_false(shared->is_joined);
    }
    assert_int_equal(waitpid(honest, NULL, WNOHANG), 0);
    end(attacker);
    for (int i = 0; i < 512; i++) {
        snprintf(name, sizeof name, "%s/%d", its, i);
        unlink(name);
    }
    serve_until_client_of(HONEST);
    end(honest);
}

TEST_WITH(a_file_system_full_of_files_ends_no_program, set_up, tear_down)
{
    check_full(fills_with_files);
}

TEST_WITH(a_file_system_full_of_attributes_ends_no_program, set_up, tear_down)
{
    check_full(fills_with_attributes);
}

/* From Linux 6.6 on a kernel can have quotas of users there. */
TEST_WITH(under_quotas_a_user_fills_nothing_of_others, set_up, tear_down)
{
    assert_int_equal(umount(path), 0);
    const int r = mount_pages(
        "mode=700,size=1m,nr_inodes=512,usrquota_block_hardlimit=256k,usrquota_inode_hardlimit=16");
    if (r == -EINVAL) {
        print_message("this kernel has no quotas on a tmpfs: before Linux 6.6, or built without\n");
        assert_int_equal(mount_pages("mode=700"), 0);
        open_server();
        return;
    }
    assert_int_equal(r, 0);
    open_server();
    const pid_t attacker = start(ATTACKER, fills_with_files);
    while (shared->stage < 1)
        go_round();
    const pid_t honest = start(HONEST, joins_and_reports);
    serve_until_client_of(HONEST);
    end(honest);
    end(attacker);
}

static char page_of_another[256];

static void tries_what_it_may_not(void)
{
    char name[256], own[256];
    snprintf(name, sizeof name, "%s/" ASYM_RTX_FILE "1.1", honests);
    snprintf(own, sizeof own, "%s/mine", its);
    MUST(open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644) < 0 && errno == EACCES);
    MUST(open(page_of_another, O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
    MUST(unlink(page_of_another) < 0 && errno == EACCES);
    MUST(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES);
    close(open(own, O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    MUST(rename(own, name) < 0 && errno == EACCES && link(own, name) < 0 && errno == EACCES);
    MUST(unlink(own) == 0);
    snprintf(name, sizeof name, "%s/2003", path);
    MUST(mkdir(name, 0755) < 0 && errno == EACCES);
    snprintf(own, sizeof own, "%s/2003", path);
    MUST(rename(its, own) < 0 && errno == EACCES && chmod(its, 0777) < 0 && errno == EPERM);
    snprintf(name, sizeof name, "%s/" ASYM_RTX_USERS, path);
    MUST(open(name, O_RDWR | O_CLOEXEC) < 0 && errno == EACCES && truncate(name, 0) < 0 && errno == EACCES);
    /* It names a process of another user, by a file of its own. */
    const int file = asym_raw_create(path, getppid(), 1);
    MUST(file >= 0 && asym_raw_fill(file, getppid(), 0) == 0 && asym_raw_announce(file) == 0);
    shared->stage = 1;
    pause();
}

static void waits(void)
{
    const int file = asym_raw_create(path, getpid(), 1);
    MUST(file >= 0 && asym_raw_fill(file, getpid(), 0) == 0 && asym_raw_announce(file) == 0);
    pause();
}

TEST_WITH(a_user_speaks_for_its_own_processes_only, set_up, tear_down)
{
    open_server();
    const pid_t honest = start(HONEST, waits);
    serve_until_client_of(HONEST);
    snprintf(page_of_another, sizeof page_of_another, "%s/" ASYM_RTX_FILE "%d.1", honests, (int)honest);
    assert_int_equal(access(page_of_another, F_OK), 0);
    const pid_t attacker = start(ATTACKER, tries_what_it_may_not);
    while (shared->stage < 1 || refused[ASYM_RTXD_REFUSED_OTHER] == 0) {
        go_round();
        assert_int_equal(waitpid(attacker, NULL, WNOHANG), 0);
    }
    assert_false(has_client_of(ATTACKER));
    assert_true(has_client_of(HONEST));
    end(attacker);
    end(honest);
}

/* It is a daemon of root that reads a file with the rights of a user. */
static void acts_for_the_attacker(void)
{
    MUST(seteuid(ATTACKER) == 0);
    shared->stage = 1;
    pause();
}

static void names_the_daemon(void)
{
    const int file = asym_raw_create(path, shared->named, 1);
    MUST(file >= 0 && asym_raw_fill(file, shared->named, 0) == 0 && asym_raw_announce(file) == 0);
    pause();
}

TEST_WITH(a_user_speaks_for_no_daemon_that_acts_for_the_user, set_up, tear_down)
{
    open_server();
    shared->named = start(0, acts_for_the_attacker);
    while (shared->stage < 1)
        go_round();
    const pid_t attacker = start(ATTACKER, names_the_daemon);
    while (refused[ASYM_RTXD_REFUSED_OTHER] == 0)
        go_round();
    assert_false(has_client_of(ATTACKER));
    end(attacker);
    end(shared->named);
}

/* A user may mount there by fusermount(1), and a file system that answers nothing. */
TEST_WITH(a_mount_over_a_page_is_not_entered, set_up, tear_down)
{
    char page[256];
    open_server();
    const pid_t attacker = start(ATTACKER, waits);
    snprintf(page, sizeof page, "%s/" ASYM_RTX_FILE "%d.1", its, (int)attacker);
    while (access(page, F_OK) < 0)
        usleep(1000);
    assert_int_equal(mount("/proc/version", page, NULL, MS_BIND, NULL), 0);
    const int file = open(page, O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 20; i++)
        go_round();
    assert_false(has_client_of(ATTACKER));
    close(file);
    end(attacker);
    assert_int_equal(umount2(page, MNT_DETACH), 0);
}

/* A user namespace lets a user call mount(2), which holds the lock of the directory that it mounts over. */
static void become_mounter(void)
{
    char map[64];
    MUST(prctl(PR_SET_DUMPABLE, 1) == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
    snprintf(map, sizeof map, "0 %u 1", (unsigned)ATTACKER);
    const char *const texts[][2] = {
        {"/proc/self/setgroups", "deny"}, {"/proc/self/uid_map", map}, {"/proc/self/gid_map", map}};
    for (size_t i = 0; i < ASYM_LENGTH(texts); i++) {
        const int fd = open(texts[i][0], O_WRONLY | O_CLOEXEC);
        MUST(fd >= 0 && write(fd, texts[i][1], strlen(texts[i][1])) > 0);
        close(fd);
    }
    MUST(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("t", "/mnt", "tmpfs", 0, "") == 0);
    MUST(mkdir("/mnt/a", 0755) == 0 && mkdir("/mnt/b", 0755) == 0);
}

/* One that no program needs to lock any more. */
static void locks_what_it_can(void)
{
    char name[160];
    become_mounter();
    MUST(mount("/mnt/a", honests, NULL, MS_BIND, NULL) < 0 && errno == EACCES);
    snprintf(name, sizeof name, "%s", honests);
    *strrchr(name, '/') = '\0';
    MUST(mount("/mnt/a", name, NULL, MS_BIND, NULL) == 0);
    shared->stage = 1;
    pause();
}

TEST_WITH(a_stranger_finds_no_directory_in_which_programs_create_files, set_up, tear_down)
{
    open_server();
    const pid_t attacker = start(ATTACKER, locks_what_it_can);
    while (shared->stage < 1) {
        go_round();
        assert_int_equal(waitpid(attacker, NULL, WNOHANG), 0);
    }
    end(attacker);
}

static void mounts_all_the_time(void)
{
    become_mounter();
    for (;;) {
        MUST(mount("/mnt/a", "/mnt/b", NULL, MS_BIND, NULL) == 0 && umount2("/mnt/b", MNT_DETACH) == 0);
        shared->stage = 1;
    }
}

static uint64_t client_of(uid_t uid)
{
    for (size_t i = 0; i < server->n; i++)
        if (server->clients[i]->uid == uid && !server->clients[i]->ended)
            return server->clients[i]->order;
    return 0;
}

/* Each mount makes lookups fail that may not wait. */
TEST_WITH(a_flood_of_mounts_costs_no_program_its_page, set_up, tear_down)
{
    open_server();
    const pid_t attackers[] = {start(ATTACKER, mounts_all_the_time), start(ATTACKER, mounts_all_the_time)};
    while (shared->stage < 1)
        go_round();
    const pid_t honest = start(HONEST, joins_and_reports), later = start(LATER, joins_and_reports);
    while (!has_client_of(HONEST) || !has_client_of(LATER)) {
        meet(later);
        go_round();
    }
    const uint64_t its_client = client_of(HONEST);
    for (const asym_usec until = asym_clock_now() + 4 * ASYM_SEC; asym_clock_now() < until;) {
        go_round();
        assert_int_equal(client_of(HONEST), its_client);
    }
    end(honest);
    end(later);
    for (size_t i = 0; i < ASYM_LENGTH(attackers); i++)
        end(attackers[i]);
}

/* The child keeps the file open, and goes on reporting. */
static void becomes_root(void)
{
    char name[128];
    const int file = asym_raw_create(path, getpid(), 1);
    MUST(file >= 0 && asym_raw_fill(file, getpid(), 0) == 0 && asym_raw_announce(file) == 0);
    if (asym_process_fork() == 0)
        for (int i = 0;; i++) {
            asym_raw_set_phase(file, i % 2);
            asym_raw_wake(file);
            usleep(1000);
        }
    while (shared->stage < 1)
        usleep(1000);
    snprintf(name, sizeof name, "%s/sleep", dir);
    execl(name, name, "40", (char *)NULL);
}

TEST_WITH(a_user_speaks_for_no_set_user_id_program, set_up, tear_down)
{
    char command[256];
    open_server();
    snprintf(command, sizeof command, "cp \"$(command -v sleep)\" %s/sleep && chmod 4755 %s/sleep", dir, dir);
    assert_int_equal(system(command), 0);
    const pid_t attacker = start(ATTACKER, becomes_root);
    serve_until_client_of(ATTACKER);
    shared->stage = 1;
    while (has_client_of(ATTACKER))
        go_round();
    for (int i = 0; i < 100; i++)
        go_round();
    assert_false(has_client_of(ATTACKER));
    assert_int_equal(waitpid(attacker, NULL, WNOHANG), 0);
    end(attacker);
}

static void is_there(void)
{
    shared->stage = 1;
    pause();
}

/* asymd keeps a descriptor for each user, and raises its limit at the start; a login session has 1,024. */
/* Subordinate user IDs. The 1,025th user is refused, and asymd logs it. */
TEST_WITH(many_users_have_a_directory_each, set_up, tear_down)
{
    limit_descriptors(RLIM_INFINITY);
    assert_int_equal(umount(path), 0);
    assert_int_equal(mount_pages("mode=700,size=1m,nr_inodes=8192"), 0);
    open_server();
    for (uid_t uid = 100000; server->n_users < ASYM_RTX_MAX_USERS; uid++)
        assert_int_equal(asym_rtxd_add_user(server, uid), 0);
    const pid_t late = start(LATER, is_there);
    while (shared->stage < 1)
        usleep(1000);
    meet(late);
    assert_int_equal(refused[ASYM_RTXD_REFUSED_FULL], 1);
    assert_int_equal(asym_rtxd_add_user(server, 100000), 0);
    end(late);
}

/* A child keeps the file open, so asymd hears of no end. */
static void leaves_a_child(void)
{
    const int file = asym_raw_create(path, getpid(), 1);
    MUST(file >= 0 && asym_raw_fill(file, getpid(), 0) == 0 && asym_raw_announce(file) == 0);
    while (shared->stage < 1)
        usleep(1000);
    if (asym_process_fork_orphan(HOLD_SEC) == 0) {
        /* The number of a process group is in use. */
        setpgid(0, 0);
        shared->stage = 2;
        while (!shared->end)
            usleep(1000);
        _exit(0);
    }
    while (shared->stage < 2)
        usleep(1000);
}

static pid_t start_as(pid_t number)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    fflush(NULL);
    const pid_t parent = getpid(), pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        asym_process_end_with(parent);
        alarm(HOLD_SEC);
        asym_process_become(HONEST);
        for (;;)
            pause();
    }
    return pid;
}

/* asymd keeps the directory of the process in /proc, which is never that of a successor. */
TEST_WITH(a_page_counts_for_no_successor_with_the_same_pid, set_up, tear_down)
{
    const struct asym_rtxd_program_report *program_reports;
    open_server();
    const pid_t dead = start(ATTACKER, leaves_a_child);
    serve_until_client_of(ATTACKER);
    shared->stage = 1;
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    const pid_t victim = start_as(dead);
    assert_int_equal(victim, dead);
    struct asym_rtxd_provider *provider = asym_rtxd_server_provider(server);
    assert_int_equal(provider->ask(provider, asym_clock_now(), ASYM_ASK_FINAL, &program_reports), 0);
    assert_int_equal(asym_rtxd_server_count(server), 0);
    end(victim);
    shared->end = true;
}

TEST_MAIN
