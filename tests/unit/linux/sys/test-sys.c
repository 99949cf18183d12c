/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cgroup hierarchies, and the files of programs. test-machine-facts.c has the option hidepid of /proc. */
#include <sys/stat.h>

#include "linux/sys/cgroup-mounts.h"
#include "linux/sys/elf.h"
#include "support/tree.h"
#include "support/test.h"

static void set_up(struct tree *tree)
{
    tree_make(tree);
    tree_mkdir(tree, "proc");
}

#define TEST_F(name) TEST_IN(name, struct tree, tree, set_up, tree_remove)

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

/* -- how the file of a program is linked, whatever it holds -- */

TEST(programs_show_how_they_are_linked)
{
    struct asym_elf elf;
    char path[] = "/tmp/asym-elf-XXXXXX";
    assert_int_equal(asym_elf_read("/proc/self/exe", &elf), 0);
    assert_true(elf.is_elf && !elf.is_static && !elf.privileged && !elf.has_gomp && !elf.has_omp);
    assert_true(asym_elf_read("/nonexistent", &elf) < 0);
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
    assert_int_equal(asym_elf_read(path, &elf), 0);
    assert_false(elf.is_elf);
    assert_int_equal(fchmod(fd, 06755), 0);
    assert_int_equal(asym_elf_read(path, &elf), 0);
    assert_true(elf.privileged);
    close(fd);
    unlink(path);
}

/* The parser stays within the bounds of any file. */
TEST(files_that_are_spoilt_are_read_to_no_harm)
{
    static unsigned char program[65536], spoilt[sizeof program];
    char path[] = "/tmp/asym-elf-XXXXXX";
    FILE *in = fopen("/proc/self/exe", "r");
    const size_t n = fread(program, 1, sizeof program, in);
    fclose(in);
    int fd = mkstemp(path);
    uint32_t seed = 2010;
    for (int round = 0; round < 2000; round++) {
        struct asym_elf elf;
        memcpy(spoilt, program, n);
        for (int k = 0; k < 8; k++) {
            seed = seed * 1664525 + 1013904223;
            spoilt[(seed >> 8) % 1024] = (unsigned char)(seed >> 24);
        }
        const size_t size = round % 2 ? n : (size_t)(seed >> 8) % n;
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, spoilt, size, 0), size);
        assert_int_equal(asym_elf_read(path, &elf), 0);
    }
    close(fd);
    unlink(path);
}

TEST_MAIN
