/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state directory is full or read-only. asymd must restore the recorded threads nevertheless. Each test mounts a small tmpfs in
 * its own mount namespace, and so needs root. What else may be in the directory is in unit/linux/enforce/test-ledger.c.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include "support/live.h"
#include "support/service.h"
#include "support/test.h"

/* With few names, so that they are soon used up. */
#define TMPFS_SIZE "64k,nr_inodes=256"

static const char *in_dir(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = 1 - turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", asym_service_dir(), name);
    return path[turn];
}

static int set_up(void **state)
{
    if (unshare(CLONE_NEWNS) < 0)
        fail_msg("unshare(CLONE_NEWNS): %s (run as root)", strerror(errno));
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        fail_msg("mount(MS_PRIVATE): %s", strerror(errno));
    asym_service_set_up(state);
    if (mount("none", asym_service_dir(), "tmpfs", 0, "size=" TMPFS_SIZE ",mode=755") < 0)
        fail_msg("mount(tmpfs): %s", strerror(errno));
    return 0;
}

static int tear_down(void **state)
{
    umount2(asym_service_dir(), MNT_DETACH);
    return asym_service_tear_down(state);
}

/* Fills the file system to the last byte. */
static void fill(void)
{
    char block[1024] = {0};
    int fd = open(in_dir("fill"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t n = sizeof block; n > 0; n /= 2)
        while (write(fd, block, n) == (ssize_t)n)
            ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void make_read_only(void)
{
    assert_int_equal(mount(NULL, asym_service_dir(), NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
}

static void fill_without_lock(void)
{
    assert_int_equal(unlink(in_dir("lock")), 0);
    fill();
    /* Then uses up the names, too. */
    char name[32];
    errno = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    assert_int_equal(errno, ENOSPC);
}

static void restore_behind(void (*obstacle)(void))
{
    char text[2048] = "";
    pid_t load = asym_service_leave_steered(NULL);
    obstacle();
    const int status = asym_service_restore(text, sizeof text);
    const int narrow = asym_live_narrow_threads(load, asym_live_cpus());
    if (status != 0 || narrow != 0)
        fail_msg("status %d, %d of 4 still narrow: %s", status, narrow, text);
}

TEST_WITH(a_full_one, set_up, tear_down)
{
    restore_behind(fill);
}

TEST_WITH(a_read_only_one, set_up, tear_down)
{
    restore_behind(make_read_only);
}

TEST_WITH(a_full_one_without_a_lock, set_up, tear_down)
{
    restore_behind(fill_without_lock);
}

/* The next asymd restores what the last one left, and steers nothing until there is room. */
TEST_WITH(a_service_starts_on_a_full_one_and_steers_when_there_is_room, set_up, tear_down)
{
    const int cpus = asym_live_cpus();
    pid_t load = asym_service_leave_steered(NULL);
    fill();
    pid_t asymd = asym_service_start(load, NULL);
    ASYM_LIVE_AWAIT(asym_live_narrow_threads(load, cpus) == 0);
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
    asym_live_sleep(0.5);
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
    assert_int_equal(unlink(in_dir("fill")), 0);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 4, ASYM_LIVE_PATIENCE));
    asym_live_end(asymd, SIGTERM);
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
}

TEST_MAIN
