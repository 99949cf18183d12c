/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading below a root descriptor. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "linux/sys/root.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

#define TEST_F(name) TEST_IN(name, struct tree_root, f, tree_root_make, tree_root_remove)

TEST(root_null_and_slash_are_the_live_machine)
{
    static const char *const names[] = {NULL, "/", "//"};
    for (size_t i = 0; i < 3; i++) {
        struct asym_root root;
        assert_int_equal(asym_root_open(names[i], &root, NULL), 0);
        assert_true(root.live);
        char buf[64];
        assert_true(asym_root_read(&root, "proc/self/comm", buf, sizeof buf) > 1);
        asym_root_done(&root);
        assert_int_equal(root.fd, -1);
    }
}

TEST_F(captured_root_is_not_live)
{
    char buf[64];
    assert_false(f->root.live);
    assert_int_equal(asym_root_read(&f->root, "proc/stat", buf, sizeof buf), 10);
    assert_string_equal(buf, "cpu 1 2 3\n");
    assert_int_equal(asym_root_read(&f->root, "proc/uptime", buf, sizeof buf), -ENOENT);
}

TEST(bad_root_without_proc_and_sys_is_refused_in_words)
{
    ASYM_CLEANUP(tree_remove) struct tree t;
    struct asym_error err = {""};
    struct asym_root root = {.fd = 77};
    tree_make(&t);
    assert_int_equal(asym_root_open(t.path, &root, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, t.path));
    assert_non_null(strstr(err.text, "it has neither a proc nor a sys directory"));
    assert_int_equal(root.fd, 77);
    tree_write(&t, "proc", "a file of that name\n");
    tree_link(&t, "sys", "/sys");
    assert_int_equal(asym_root_open(t.path, &root, &err), -ENOTDIR);
}

TEST_F(bad_root_that_is_missing_or_a_file_is_refused_in_words)
{
    char path[128];
    struct asym_error err = {""};
    struct asym_root root;
    assert_int_equal(asym_root_open("/nonexistent/root", &root, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/root: No such file"));
    snprintf(path, sizeof path, "%s/proc/stat", f->tree.path);
    assert_int_equal(asym_root_open(path, &root, &err), -ENOTDIR);
}

TEST(capture_with_sys_alone_is_accepted)
{
    ASYM_CLEANUP(tree_remove) struct tree t;
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    tree_make(&t);
    tree_mkdir(&t, "sys");
    char buf[8];
    tree_write(&t, "sys/x", "1\n");
    assert_int_equal(asym_root_open(t.path, &root, NULL), 0);
    assert_false(root.live);
    assert_int_equal(asym_root_read(&root, "sys/x", buf, sizeof buf), 2);
}

static void check_links(struct tree_root *f)
{
    char buf[64];
    assert_int_equal(asym_root_read(&f->root, "sys/inside", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "sys/absolute", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "sys/dir/stat", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "sys/chain", buf, sizeof buf), 10);
    /* ".." of the root is the root, so that this is proc/stat of the capture, not of the live machine. */
    assert_int_equal(asym_root_read(&f->root, "sys/above", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "../../../../../proc/stat", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "sys/outside", buf, sizeof buf), -ENOENT);
    assert_int_equal(asym_root_read(&f->root, "/etc/passwd", buf, sizeof buf), -ENOENT);
    assert_int_equal(asym_root_read(&f->root, "sys/loop", buf, sizeof buf), -ELOOP);
    assert_int_equal(asym_root_read(&f->root, "sys/dangling", buf, sizeof buf), -ENOENT);
    assert_int_equal(asym_root_read(&f->root, "proc/stat/x", buf, sizeof buf), -ENOTDIR);
}

static void make_links(const struct tree *t)
{
    tree_link(t, "sys/inside", "../proc/stat");
    tree_link(t, "sys/absolute", "/proc/stat");
    tree_link(t, "sys/dir", "./..//proc/.");
    tree_link(t, "sys/chain", "dir/../sys/inside");
    tree_link(t, "sys/above", "../../../../../../proc/stat");
    tree_link(t, "sys/outside", "/etc/passwd");
    tree_link(t, "sys/loop", "loop");
    tree_link(t, "sys/dangling", "nowhere");
}

TEST_F(links_never_lead_out_of_a_captured_root)
{
    make_links(&f->tree);
    check_links(f);
}

/* Directories that change names all the time, as on a machine at work, until the parent ends this process. n: how often so far. */
static _Noreturn void rename_for_ever(const struct tree *t, atomic_uint *n)
{
    char from[128], to[128];
    snprintf(from, sizeof from, "%s/a", t->path);
    snprintf(to, sizeof to, "%s/b", t->path);
    for (;; ++*n)
        if (rename(from, to) < 0 || rename(to, from) < 0)
            _exit(1);
}

TEST_F(links_lead_to_the_same_file_while_directories_are_renamed)
{
    atomic_uint *n = mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(n, MAP_FAILED);
    make_links(&f->tree);
    tree_mkdir(&f->tree, "a");
    const pid_t child = asym_process_fork();
    if (child == 0)
        rename_for_ever(&f->tree, n);
    while (*n < 50000) {
        assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
        check_links(f);
    }
    assert_int_equal(asym_process_signal(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    munmap(n, sizeof *n);
}

TEST_F(bad_file_that_is_a_fifo_or_a_directory_is_refused_without_waiting)
{
    char path[128], buf[16];
    snprintf(path, sizeof path, "%s/proc/fifo", f->tree.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(asym_root_read(&f->root, "proc/fifo", buf, sizeof buf), -EINVAL);
    assert_int_equal(asym_root_read(&f->root, "proc", buf, sizeof buf), -EINVAL);
}

TEST_F(huge_file_is_read_as_far_as_the_buffer_goes)
{
    static char big[100000];
    char buf[16];
    memset(big, 'x', sizeof big);
    tree_write_bytes(&f->tree, "proc/big", big, sizeof big);
    memset(buf, 'y', sizeof buf);
    assert_int_equal(asym_root_read(&f->root, "proc/big", buf, 8), 7);
    assert_string_equal(buf, "xxxxxxx");
    assert_int_equal(buf[8], 'y');
    assert_int_equal(asym_root_read(&f->root, "proc/big", buf, 1), 0);
    assert_int_equal(asym_root_read(&f->root, "proc/big", buf, 0), -EINVAL);
}

TEST_F(bad_permission_is_reported)
{
    char buf[16], path[128];
    tree_write(&f->tree, "proc/secret", "1\n");
    snprintf(path, sizeof path, "%s/proc/secret", f->tree.path);
    assert_int_equal(chmod(path, 0), 0);
    pid_t child = asym_process_fork(); /* root may read every file: the child changes its user */
    if (child == 0) {
        if (geteuid() == 0 && (chmod(f->tree.path, 0755) < 0 || setuid(65534) < 0))
            _exit(1);
        _exit(asym_root_read(&f->root, "proc/secret", buf, sizeof buf) == -EACCES ? 42 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

TEST_MAIN
