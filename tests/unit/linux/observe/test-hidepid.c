/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount option hidepid, by the line of mountinfo of the file system that is at /proc. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "linux/observe/hidepid.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

/* @ stands for the number of the file system that is at proc. */
static const struct {
    const char *mountinfo;
    int result;
} rows[] = {
    {"22 27 @ / /proc rw,relatime - proc proc rw\n", 0},
    {"22 27 @ / /proc rw,relatime shared:5 - proc proc rw,hidepid=2\n", 1},
    {"22 27 @ / /proc rw,relatime shared:5 master:1 - proc proc rw,gid=5,hidepid=invisible,subset=pid\n", 1},
    {"22 27 @ / /proc rw - proc  rw,hidepid=1\n", 1},
    {"22 27 @ / /proc rw - proc proc rw,hidepid=noaccess", 1},
    {"22 27 @ / /proc rw - proc proc rw,hidepid=ptraceable\n", 1},
    {"22 27 @ / /proc rw - proc proc rw,hidepid=0\n", 0},
    {"22 27 @ / /proc rw - proc proc rw,hidepid=off,gid=5\n", 0},
    {"22 27 @ / /proc rw - proc hidepid=2 rw\n", 0},
    {"22 27 @ / /proc rw - proc proc rw,nohidepid=2\n", 0},
    {"21 27 9999:77 / /proc rw - proc proc rw,hidepid=2\n22 27 @ / /proc rw - proc proc rw\n", 0},
    {"21 27 9999:77 / /proc rw - proc proc rw\n22 27 @ / /proc rw - proc proc rw,hidepid=2\n", 1},
    {"21 27 9999:77 / /proc rw - proc proc rw,hidepid=2\n", -ENOENT},
    {"22 27 @ / /proc rw - tmpfs proc rw,hidepid=2\n", -ENOENT},
    {"22 27 @ / /proc rw - proc proc\n", -ENOENT},
    {"x\n\n", -ENOENT},
    {"", -ENOENT},
};

static void write_mountinfo(const struct tree *tree, const struct asym_root *root, const char *text)
{
    char full[512];
    struct stat st;
    size_t n = 0;
    assert_int_equal(fstatat(root->fd, "proc", &st, 0), 0);
    for (; *text; text++)
        if (*text == '@')
            n += (size_t)snprintf(full + n, sizeof full - n, "%u:%u", major(st.st_dev), minor(st.st_dev));
        else
            full[n++] = *text;
    tree_write_bytes(tree, "proc/self/mountinfo", full, n);
}

TEST(the_file_system_that_is_at_proc_counts)
{
    struct tree tree;
    struct asym_root root;
    tree_make(&tree);
    tree_machine(&tree, "0", "0");
    assert_int_equal(asym_root_open(tree.path, &root, NULL), 0);
    assert_int_equal(asym_hidepid_read(&root), -ENOENT);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        write_mountinfo(&tree, &root, rows[i].mountinfo);
        if (asym_hidepid_read(&root) != rows[i].result)
            fail_msg("row %zu: %d", i, asym_hidepid_read(&root));
    }
    asym_root_done(&root);
    tree_remove(&tree);
}

/* The tests do not rely on how this machine has mounted /proc, but there is an answer. */
TEST(the_live_machine_has_an_answer)
{
    struct asym_root root;
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    assert_in_range(asym_hidepid_read(&root), 0, 1);
    asym_root_done(&root);
}

#define HELPER ASYM_TEST_BIN "/daemon/asymd-helper"

/* Updates until there is an answer or an error; -EAGAIN: none has come in most milliseconds. */
static int await_answer(struct asym_hidepid_watch *w, int most, asym_usec now)
{
    int r = -EAGAIN;
    for (int i = 0; i < most && (r == -EAGAIN || r == -ETIMEDOUT); i++) {
        r = asym_hidepid_watch_update(w, now);
        usleep(1000);
    }
    return r;
}

/* Returns what the machine says. */
static bool is_hiding(void)
{
    struct asym_root root;
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    const int r = asym_hidepid_read(&root);
    asym_root_done(&root);
    assert_in_range(r, 0, 1);
    return r;
}

/* As if the machine did not hide processes at the time 0, which is that of the last answer. */
static void begin_visible(struct asym_hidepid_watch *w)
{
    asym_hidepid_watch_init(w, HELPER, 0);
    assert_int_equal(asym_hidepid_watch_update(w, 0), -EAGAIN);
    assert_true(w->hides);
    assert_int_equal(await_answer(w, 20000, 0), 0);
    assert_true(w->hides == is_hiding());
    w->hides = false;
}

/* A stopped helper stands for one that waits for the kernel's lock. */
TEST(a_helper_that_waits_is_not_waited_for)
{
    struct asym_hidepid_watch w;
    begin_visible(&w);
    const pid_t pid = w.helper.pid;
    assert_int_equal(asym_process_signal(pid, SIGSTOP), 0);
    while (asym_process_state(pid) != 'T')
        usleep(1000);
    /* It may have answered one more request before it stopped. */
    await_answer(&w, 50, 0);
    assert_int_equal(await_answer(&w, 50, 0), -EAGAIN);
    assert_int_equal(w.helper.pid, pid);
    w.hides = false;
    assert_int_equal(asym_hidepid_watch_update(&w, ASYM_HIDEPID_WITHIN), -EAGAIN);
    assert_false(w.hides);
    assert_int_equal(asym_hidepid_watch_update(&w, ASYM_HIDEPID_WITHIN + 1), -ETIMEDOUT);
    assert_true(w.hides);
    /* Another one takes its place, and also when it has ended by itself. */
    const pid_t second = w.helper.pid;
    assert_int_not_equal(second, pid);
    assert_int_equal(await_answer(&w, 20000, ASYM_HIDEPID_WITHIN + 1), 0);
    assert_true(w.hides == is_hiding());
    assert_int_equal(asym_process_signal(second, SIGKILL), 0);
    int r = 0;
    for (int i = 0; i < 20000 && (w.helper.pid == second || r < 0); i++)
        r = await_answer(&w, 1, ASYM_HIDEPID_WITHIN + 1);
    assert_int_equal(r, 0);
    asym_hidepid_watch_done(&w);
}

/* Whatever the reason is, the last answer holds for a bounded time. */
TEST(without_a_helper_processes_are_hidden_after_a_while)
{
    struct asym_hidepid_watch w;
    begin_visible(&w);
    asym_helper_kill(&w.helper);
    w.helper.program = "/nonexistent";
    await_answer(&w, 50, 0); /* an answer that was sent before the end */
    w.hides = false;
    assert_int_equal(asym_hidepid_watch_update(&w, ASYM_HIDEPID_WITHIN), -ENOENT);
    assert_false(w.hides);
    assert_int_equal(asym_hidepid_watch_update(&w, ASYM_HIDEPID_WITHIN + 1), -ENOENT);
    assert_true(w.hides);
    /* A program that can be started again answers again. */
    w.helper.program = HELPER;
    assert_int_equal(await_answer(&w, 20000, ASYM_HIDEPID_WITHIN + 1), 0);
    assert_true(w.hides == is_hiding());
    asym_hidepid_watch_done(&w);
}

TEST(a_machine_without_a_helper_hides_processes_from_the_start)
{
    struct asym_hidepid_watch w;
    asym_hidepid_watch_init(&w, "/nonexistent", 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(asym_hidepid_watch_update(&w, 0), -ENOENT);
        assert_true(w.hides);
    }
    asym_hidepid_watch_done(&w);
}

TEST_MAIN
