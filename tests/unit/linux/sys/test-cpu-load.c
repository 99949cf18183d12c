/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The load of CPUs, from /proc/stat as the test writes it. */

#include "linux/sys/proc-parse.h"
#include "support/tree.h"
#include "support/test.h"

TEST(the_load_is_that_between_two_readings)
{
    static struct asym_cpu_load load;
    /* The second reading; CPU 1 is offline in it, and its idle time went back by a tick on CPU 3. */
    static const struct {
        unsigned cpu;
        double share;
    } rows[] = {{0, 0.25}, {1, 0}, {2, 1}, {3, 1}, {4, 0}, {ASYM_MAX_CPUS - 1, 0}};
    struct tree tree;
    struct asym_root root;
    tree_make(&tree);
    tree_plain(&tree, 1);
    tree_write(&tree, "proc/stat",
               "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 50 1000 10 1 1 0 0 0\ncpu1 5 5 5 5 5 5 5 5 0 0\n"
               "cpu2 0 0 0 500 0 0 0 0 0 0\ncpu3 0 0 0 500 0 0 0 0 0 0\nintr 1 2 3\n");
    assert_int_equal(asym_root_open(tree.path, &root, NULL), 0);
    assert_int_equal(asym_cpu_load_update(&load, &root), 0);
    tree_write(&tree, "proc/stat",
               "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 110 15 55 1070 15 3 2 2 7 7\n"
               "cpu2 50 10 10 500 0 10 10 10 0 0\ncpu3 7 0 0 499 0 0 0 0 0 0\nintr 1 2 3\ncpu9x\n");
    assert_int_equal(asym_cpu_load_update(&load, &root), 0);
    assert_int_equal(load.n, 2);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        assert_true(load.share[rows[i].cpu] > rows[i].share - 0.001 && load.share[rows[i].cpu] < rows[i].share + 0.001);
    tree_unlink(&tree, "proc/stat");
    assert_true(asym_cpu_load_update(&load, &root) < 0);
    assert_int_equal(load.n, 2);
    asym_root_done(&root);
    tree_remove(&tree);
}

TEST_MAIN
