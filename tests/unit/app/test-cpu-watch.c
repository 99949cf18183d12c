/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd looks at a few CPUs at a time for changes of their abilities, and acts on a bounded number of changes. */

#include "app/machine-setup.h"
#include "base/mask.h"
#include "support/tree.h"
#include "support/test.h"

#define N_CPUS 40

struct watch_fixture {
    struct tree tree;
    struct asym_root root;
    struct asym_mask cpus;
    struct asym_cpu_facts facts;
};

static void write_rank(struct watch_fixture *f, unsigned cpu, unsigned rank)
{
    tree_write_cpu(&f->tree, cpu, "cpufreq/amd_pstate_prefcore_ranking", "%u\n", rank);
}

static void set_up(struct watch_fixture *f)
{
    tree_make(&f->tree);
    for (unsigned c = 0; c < N_CPUS; c++) {
        asym_mask_set(&f->cpus, c);
        write_rank(f, c, 100);
    }
    assert_int_equal(asym_root_open(f->tree.path, &f->root, NULL), 0);
    asym_watch_read_facts(&f->facts, &f->root, &f->cpus, ASYM_SEC);
}

static void tear_down(struct watch_fixture *f)
{
    asym_root_done(&f->root);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct watch_fixture, f, set_up, tear_down)

static bool look(struct watch_fixture *f, unsigned second)
{
    return asym_watch_facts_changed(&f->facts, &f->root, &f->cpus, second * ASYM_SEC);
}

/* Three looks see all of 40 CPUs. */
TEST_F(a_change_of_any_cpu_is_seen_in_its_turn)
{
    static const unsigned cpus[] = {0, 15, 16, 31, 32, 39};
    unsigned second = 1;
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        unsigned seen = 0;
        for (unsigned n = 0; n < 3; n++)
            assert_false(look(f, ++second));
        write_rank(f, cpus[i], 200);
        for (unsigned n = 0; n < 3; n++)
            seen += look(f, ++second);
        assert_int_equal(seen, 1);
        second += 100;
    }
}

TEST_F(figures_that_keep_changing_are_acted_on_every_ten_seconds)
{
    unsigned seen = 0;
    for (unsigned second = 2; second < 122; second++) {
        for (unsigned c = 0; c < N_CPUS; c++)
            write_rank(f, c, second);
        seen += look(f, second);
    }
    assert_in_range(seen, 12, 15);
    for (unsigned second = 122; second < 142; second++) /* the last change is acted on, too */
        seen += look(f, second);
    assert_false(look(f, 500));
    assert_in_range(seen, 13, 16);
}

TEST_MAIN
