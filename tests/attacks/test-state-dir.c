/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state directory is full or read-only, or has a directory or a link with the name of a ledger file. asymd must restore
 * the recorded threads nevertheless, and must not write through a link. If the ledger is removed while asymd runs, asymd
 * writes it again. Each test mounts a small tmpfs in its own mount namespace, and so needs root.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "support/live.h"
#include "support/service.h"
#include "support/test.h"
#include "support/tree.h"

#define TMPFS_SIZE "64k"

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

static struct tree removed_directory(void)
{
    struct tree ret;
    assert_true((size_t)snprintf(ret.path, sizeof ret.path, "%s.removed", asym_service_dir()) < sizeof ret.path);
    return ret;
}

static int tear_down(void **state)
{
    struct tree removed = removed_directory();
    umount2(asym_service_dir(), MNT_DETACH);
    if (access(removed.path, F_OK) == 0)
        tree_remove(&removed);
    return asym_service_tear_down(state);
}

static pid_t steer(pid_t *ret_load)
{
    *ret_load = asym_service_spin("4");
    pid_t asymd = asym_service_start(*ret_load, NULL);
    assert_true(asym_live_await(asym_live_narrow_threads, *ret_load, asym_live_cpus(), 4, ASYM_LIVE_PATIENCE));
    return asymd;
}

/* Leaves four steered threads after asymd was killed. */
static pid_t leave_steered(void)
{
    pid_t load;
    asym_live_end(steer(&load), SIGKILL);
    assert_int_equal(asym_live_narrow_threads(load, asym_live_cpus()), 4);
    return load;
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

static void append_to_ledger(const char *text)
{
    int fd = open(in_dir("ledger"), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void put_folders(void)
{
    assert_int_equal(mkdir(in_dir("ledger.bad"), 0700), 0);
    assert_int_equal(mkdir(in_dir("ledger.bad/full"), 0700), 0);
    assert_int_equal(mkdir(in_dir("ledger.new"), 0700), 0);
    assert_int_equal(mkdir(in_dir("ledger.new/full"), 0700), 0);
    append_to_ledger("junk\n");
}

static void put_link(void)
{
    int fd = open(in_dir("precious"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "as it was", 9), 9);
    close(fd);
    assert_int_equal(symlink("precious", in_dir("ledger.new")), 0);
}

static void fill_without_lock(void)
{
    assert_int_equal(unlink(in_dir("lock")), 0);
    fill();
    /* Then uses up the names, too. */
    char name[32];
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    assert_int_equal(errno, ENOSPC);
}

static void (*const obstacles[])(void) = {fill, make_read_only, put_folders, put_link, fill_without_lock};
static const char *const names[] = {"full", "read-only", "folders ledger.bad and ledger.new", "link ledger.new",
                                    "full, and its lock removed"};

static void assert_given_back(pid_t load, const char *what, int status, const char *said)
{
    const int narrow = asym_live_narrow_threads(load, asym_live_cpus());
    print_message("%s: status %d, %d of 4 still narrow: %s", what, status, narrow, said);
    asym_live_end(load, SIGKILL);
    assert_int_equal(narrow, 0);
    assert_int_equal(status, 0);
}

static void restore_behind(size_t i)
{
    char text[2048] = "";
    pid_t load = leave_steered();
    obstacles[i]();
    const int status = asym_service_restore(text, sizeof text);
    assert_given_back(load, names[i], status, text);
}

TEST_WITH(a_full_one, set_up, tear_down)
{
    restore_behind(0);
}

TEST_WITH(a_read_only_one, set_up, tear_down)
{
    restore_behind(1);
}

TEST_WITH(folders_at_the_names_of_files_do_no_harm, set_up, tear_down)
{
    restore_behind(2);
    /* asymd kept the damaged file under the next name. */
    assert_int_equal(access(in_dir("ledger.bad.1"), F_OK), 0);
}

TEST_WITH(a_link_at_the_name_of_a_file_does_no_harm, set_up, tear_down)
{
    char text[32] = "";
    restore_behind(3);
    int fd = open(in_dir("precious"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof text - 1), 9);
    close(fd);
    assert_string_equal(text, "as it was");
}

TEST_WITH(a_full_one_without_a_lock, set_up, tear_down)
{
    restore_behind(4);
}

/* The next asymd restores what the last one left, and steers nothing until there is room. */
TEST_WITH(a_service_starts_on_a_full_one_and_steers_when_there_is_room, set_up, tear_down)
{
    const int cpus = asym_live_cpus();
    pid_t load = leave_steered();
    fill();
    pid_t asymd = asym_service_start(load, NULL);
    double end = asym_live_now() + ASYM_LIVE_PATIENCE;
    while (asym_live_narrow_threads(load, cpus) > 0 && asym_live_now() < end)
        asym_live_sleep(0.01);
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
    asym_live_sleep(0.5);
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
    assert_int_equal(unlink(in_dir("fill")), 0);
    assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, 4, ASYM_LIVE_PATIENCE));
    asym_live_end(asymd, SIGTERM);
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
}

static void remove_file(void)
{
    assert_int_equal(unlink(in_dir("ledger")), 0);
}

static void cut_file(void)
{
    assert_int_equal(truncate(in_dir("ledger"), 20), 0);
}

static void replace_file(void)
{
    int fd = open(in_dir("other"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(rename(in_dir("other"), in_dir("ledger")), 0);
}

static void remove_lock(void)
{
    remove_file();
    assert_int_equal(unlink(in_dir("lock")), 0);
}

/*
 * The mount is the directory that asymd has open. Removes the mount, and takes the directory away: asymd may have written its
 * ledger there since the mount is gone.
 */
static void remove_directory(void)
{
    const struct tree removed = removed_directory();
    assert_int_equal(umount2(asym_service_dir(), MNT_DETACH), 0);
    assert_int_equal(rename(asym_service_dir(), removed.path), 0);
}

static bool holds_four(void)
{
    char line[512];
    int n = 0;
    FILE *f = fopen(in_dir("ledger"), "r");
    while (f && fgets(line, sizeof line, f))
        n += line[0] == 'T';
    if (f)
        fclose(f);
    return n >= 4;
}

TEST_WITH(what_was_removed_under_a_service_comes_back, set_up, tear_down)
{
    static void (*const deeds[])(void) = {remove_file, cut_file, replace_file, remove_lock, remove_directory};
    static const char *const what[] = {"ledger removed", "ledger cut", "ledger replaced", "ledger and lock removed",
                                       "directory removed"};
    for (size_t i = 0; i < ASYM_LENGTH(deeds); i++) {
        char text[2048] = "";
        pid_t load, asymd = steer(&load);
        deeds[i]();
        double end = asym_live_now() + ASYM_LIVE_PATIENCE;
        while (!holds_four() && asym_live_now() < end)
            asym_live_sleep(0.01);
        const bool there = holds_four();
        /* A second asymd cannot start meanwhile. */
        const int second = asym_service_restore(text, sizeof text);
        asym_live_end(asymd, SIGKILL);
        const int status = asym_service_restore(text, sizeof text);
        print_message("%s: on record again %d, a second asymd got %d; ", what[i], there, second);
        assert_given_back(load, "after a kill -9", status, text);
        assert_true(there);
        assert_int_equal(second, 1);
    }
}

TEST_MAIN
