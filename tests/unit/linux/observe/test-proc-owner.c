/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The users of a process: who owns it, and who is charged for reading it. */
#include <fcntl.h>
#include <signal.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "linux/observe/proc-owner.h"
#include "linux/sys/thread.h"
#include "support/limit-files.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

#define UNTOUCHED 77

static const struct {
    const char *status;
    int error;
    uint32_t owner;
} cases[] = {
    {"Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t5\t5\t5\t5\n", 0, 0},
    {"Uid:\t2002\t2003\t2004\t2005\n", 0, 2003},
    {"Uid:\t0\t4294967294\t0\t0\n", 0, 4294967294},
    {"Name:\tx\nGid:\t0\t0\t0\t0\n", -EINVAL, UNTOUCHED},
    {"Uid:\t2002\n", -EINVAL, UNTOUCHED},
    {"Uid:\t2002\t2002\n", -EINVAL, UNTOUCHED},
    {"Uid:\t\t\t\t\n", -EINVAL, UNTOUCHED},
    {"Uid:\tx\tx\tx\tx\n", -EINVAL, UNTOUCHED},
    {"Uid:\t0\t4294967296\t0\t0\n", -EINVAL, UNTOUCHED},
    {"Uid:", -EINVAL, UNTOUCHED},
    {"", -EINVAL, UNTOUCHED},
    {NULL, -ENOENT, UNTOUCHED},
};

TEST_IN(the_owner_is_the_effective_user, struct tree_root, f, tree_root_make, tree_root_remove)
{
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        uint32_t owner = UNTOUCHED;
        if (cases[i].status)
            tree_write(&f->tree, "proc/10/status", "%s", cases[i].status);
        else
            tree_unlink(&f->tree, "proc/10/status");
        assert_int_equal(asym_proc_owner(&f->root, 10, &owner), cases[i].error);
        assert_int_equal(owner, cases[i].owner);
    }
}

/* The live machine, and what asymd knows of its processes. */
struct live {
    struct asym_root root;
    struct asym_proc_owners owners;
    uint32_t uid;
};

static void open_live(struct live *f)
{
    f->uid = UNTOUCHED;
    assert_int_equal(asym_root_open(NULL, &f->root, NULL), 0);
}

static void close_live(struct live *f)
{
    asym_root_done(&f->root);
}

#define TEST_LIVE(name) TEST_IN(name, struct live, f, open_live, close_live)

TEST_LIVE(the_live_machine_reports_the_users_of_this_process)
{
    assert_int_equal(asym_proc_owner(&f->root, getpid(), &f->uid), 0);
    assert_int_equal(f->uid, geteuid());
    /* No process has so high a PID. */
    assert_int_equal(asym_proc_owner(&f->root, INT32_MAX, &f->uid), -ENOENT);
}

static pid_t start_as(uid_t real, uid_t effective)
{
    int changed[2];
    char byte;
    assert_int_equal(pipe2(changed, O_CLOEXEC), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        if (setresuid(real, effective, effective) < 0 || write(changed[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    /* It ends if it may not change its user. */
    close(changed[1]);
    assert_int_equal(read(changed[0], &byte, 1), 1);
    close(changed[0]);
    return pid;
}

static struct asym_taskid id_of(pid_t pid)
{
    struct asym_stat stat;
    assert_true(asym_thread_get_stat(pid, pid, &stat) >= 0);
    return (struct asym_taskid){.tid = pid, .tgid = pid, .start = stat.start};
}

static void end(pid_t pid)
{
    asym_process_signal(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Without a descriptor asymd cannot read a file, but it can read an inode. */
TEST_LIVE(a_known_process_costs_no_reading)
{
    const struct asym_taskid self = id_of(getpid());
    assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &self, &f->uid), 0);
    assert_int_equal(f->uid, geteuid());
    f->uid = UNTOUCHED;
    const rlim_t before = limit_descriptors(0);
    const int known = asym_proc_owner_known(&f->owners, &f->root, &self, &f->uid);
    const int unknown = asym_proc_owner_known(NULL, &f->root, &self, &(uint32_t){0});
    limit_descriptors(before);
    assert_int_equal(known, 0);
    assert_int_equal(f->uid, geteuid());
    assert_int_equal(unknown, -EMFILE);
}

TEST_LIVE(a_known_process_has_one_start_time)
{
    const struct asym_taskid self = id_of(getpid());
    const struct asym_taskid other = {.tid = self.tid, .tgid = self.tgid, .start = self.start + 1};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &self, &(uint32_t){0}), 0);
        assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &other, &f->uid), -ESRCH);
        assert_int_equal(f->uid, UNTOUCHED);
    }
}

/* The process changes its user when it gets a signal. */
static void become(int signal)
{
    if (setresuid(2003, 2003, 2003) < 0)
        _exit(1);
}

TEST_LIVE(a_known_process_that_changes_its_user_has_the_new_one)
{
    signal(SIGUSR1, become);
    const pid_t pid = start_as(2002, 0);
    const struct asym_taskid id = id_of(pid);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &id, &f->uid), 0);
    assert_int_equal(f->uid, 0);
    asym_process_signal(pid, SIGUSR1);
    for (unsigned i = 0; i < 1000 && f->uid == 0; i++) {
        assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &id, &f->uid), 0);
        usleep(10000);
    }
    assert_int_equal(f->uid, 2003);
    end(pid);
    assert_true(asym_proc_owner_known(&f->owners, &f->root, &id, &f->uid) < 0);
}

/* Returns a new process that has this number, and that belongs to UID 2004. */
static pid_t start_with_number(pid_t number)
{
    const struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    const pid_t parent = getpid(), pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) {
        if (setresuid(2004, 2004, 2004) < 0)
            _exit(1);
        asym_process_end_with(parent);
        for (;;)
            pause();
    }
    return pid;
}

TEST_LIVE(a_later_process_with_the_number_is_another_one)
{
    const pid_t pid = start_as(2002, 2002);
    const struct asym_taskid id = id_of(pid);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &id, &f->uid), 0);
    end(pid);
    usleep(20000); /* start times are in clock ticks of 10 ms */
    f->uid = UNTOUCHED;
    assert_int_equal(start_with_number(pid), pid);
    assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &id, &f->uid), -ESRCH);
    assert_int_equal(f->uid, UNTOUCHED);
    const struct asym_taskid later = id_of(pid);
    for (unsigned i = 0; i < 1000 && f->uid != 2004; i++) {
        assert_int_equal(asym_proc_owner_known(&f->owners, &f->root, &later, &f->uid), 0);
        usleep(10000);
    }
    assert_int_equal(f->uid, 2004);
    end(pid);
}

TEST_MAIN
