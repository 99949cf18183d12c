/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cgroup hierarchies in usual and in other places. test-machine-facts.c has the option hidepid of /proc. */

#include "linux/sys/cgroup-mounts.h"
#include "support/tree.h"
#include "support/test.h"

static void set_up(struct tree *tree)
{
    tree_make(tree);
    tree_mkdir(tree, "proc");
}

static void tear_down(struct tree *tree)
{
    tree_remove(tree);
}

#define TEST_F(name) TEST_IN(name, struct tree, tree, set_up, tear_down)

/* The CPUs of /job in that hierarchy; 0: it has no cpuset. */
static uint64_t cpus_of_job(const struct tree *tree, enum asym_cgroup_kind kind)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    struct asym_cgroup_mounts mounts;
    struct asym_mask cpus = {.w = {77}};
    assert_int_equal(asym_root_open(tree->path, &root, NULL), 0);
    asym_cgroup_mounts_read(&root, &mounts);
    const int r = asym_cgroup_cpus(&root, &mounts, kind, "/job/x", strlen("/job"), &cpus);
    assert_int_equal(r, cpus.w[0] == 77 ? -ENOENT : 0);
    return r < 0 ? 0 : cpus.w[0];
}

TEST_F(a_hierarchy_is_found_where_it_is_mounted)
{
    static const struct {
        const char *mounts, *file;
        enum asym_cgroup_kind kind;
    } rows[] = {
        {"none /dev/cpuset cgroup rw,relatime,cpuset,noprefix 0 0\n", "dev/cpuset/job/effective_cpus",
         ASYM_CGROUP_CPUSET},
        {"cpuset /dev/cpuset cpuset rw 0 0\n", "dev/cpuset/job/cpus", ASYM_CGROUP_CPUSET},
        {"a /x cgroup rw,cpu,cpuacct 0 0\nb /a\\040b cgroup rw,cpu,cpuset 0 0\n", "a b/job/cpuset.effective_cpus",
         ASYM_CGROUP_CPUSET},
        {"c /run/cg cgroup2 rw,nosuid 0 0\n", "run/cg/job/cpuset.cpus.effective", ASYM_CGROUP_UNIFIED},
        {"c /one cgroup2 rw 0 0\nc /two cgroup2 rw 0 0\n", "two/job/cpuset.cpus.effective", ASYM_CGROUP_UNIFIED},
        {"proc /proc proc rw 0 0\n", "sys/fs/cgroup/job/cpuset.cpus.effective", ASYM_CGROUP_UNIFIED},
        {"", "sys/fs/cgroup/unified/job/cpuset.cpus.effective", ASYM_CGROUP_UNIFIED},
        {NULL, "sys/fs/cgroup/cpuset/job/cpuset.cpus", ASYM_CGROUP_CPUSET},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        static char overlay[9000];
        memset(overlay, 'l', sizeof overlay - 1);
        if (rows[i].mounts)
            tree_write(tree, "proc/mounts", "overlay / overlay rw,lowerdir=%s 0 0\n%s", overlay, rows[i].mounts);
        assert_int_equal(cpus_of_job(tree, rows[i].kind), 0);
        tree_write(tree, rows[i].file, "1-2\n");
        if (cpus_of_job(tree, rows[i].kind) != 6)
            fail_msg("row %zu: %s", i, rows[i].file);
        tree_remove(tree);
        set_up(tree);
    }
}

/* A mount in another place hides what lies in the usual one, which may belong to another tree. */
TEST_F(a_mount_that_is_known_is_believed)
{
    tree_write(tree, "proc/mounts", "c /run/cg cgroup2 rw 0 0\n");
    tree_write(tree, "sys/fs/cgroup/job/cpuset.cpus.effective", "0\n");
    assert_int_equal(cpus_of_job(tree, ASYM_CGROUP_UNIFIED), 0);
    tree_write(tree, "run/cg/job/cpuset.cpus.effective", "junk\n");
    assert_int_equal(cpus_of_job(tree, ASYM_CGROUP_UNIFIED), 0);
    tree_write(tree, "run/cg/job/cpuset.cpus.effective", "3\n");
    assert_int_equal(cpus_of_job(tree, ASYM_CGROUP_UNIFIED), 8);
}

/* A user can make a read of the mounts wait: asymd reads them at its start only. */
TEST_F(mounts_that_are_kept_are_not_read_again)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    struct asym_cgroup_mounts mounts;
    assert_int_equal(asym_root_open(tree->path, &root, NULL), 0);
    for (int kept = 0; kept < 2; kept++) {
        tree_write(tree, "proc/mounts", "c /before cgroup2 rw 0 0\n");
        assert_int_equal(kept ? asym_cgroup_mounts_keep(&root) : 0, 0);
        tree_write(tree, "proc/mounts", "c /later cgroup2 rw 0 0\n");
        asym_cgroup_mounts_read(&root, &mounts);
        assert_string_equal(mounts.mount[0].path, kept ? "before" : "later");
    }
}

TEST_MAIN
