/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads machines from files of sysfs or from hwloc XML, and knows virtual ones. tests/hosts.py has the speeds of real machines. */
#include <fcntl.h>
#include <hwloc.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/mask.h"
#include "linux/topology/topology.h"
#include "support/engine-fixture.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"
#define HYBRID_XML ASYM_TEST_DATA "/topology/hybrid.xml"
#define CPU_DIR    "sys/devices/system/cpu/"

/* hwloc 2.9 leaks the current object when an XML ends inside it. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:hwloc_alloc_setup_object\nleak:hwloc__xml_import\n";
}

struct fixture {
    struct tree tree;
    struct asym_machine m;
    struct asym_topology_notes notes;
    struct asym_error err;
};

static void set_up(struct fixture *f)
{
    tree_make(&f->tree);
}

static void tear_down(struct fixture *f)
{
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

static int read_tree(struct fixture *f)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    f->err.text[0] = '\0';
    assert_int_equal(asym_root_open(f->tree.path, &root, &f->err), 0);
    int r = asym_topology_read(&root, NULL, &f->m, &f->notes, &f->err);
    return r;
}

static int read_xml(struct fixture *f, const char *xml)
{
    f->err.text[0] = '\0';
    return asym_topology_read(NULL, xml, &f->m, &f->notes, &f->err);
}

static void expect_error(const struct fixture *f, const char *part)
{
    if (!strstr(f->err.text, part))
        fail_msg("'%s' is not in '%s'", part, f->err.text);
    assert_null(strchr(f->err.text, '\n'));
}

static const struct asym_speed_note *note_of(const struct fixture *f, enum asym_origin origin)
{
    for (size_t i = 0; i < f->notes.n; i++)
        if (f->notes.note[i].origin == origin)
            return &f->notes.note[i];
    fail_msg("no note of origin %d", (int)origin);
    return NULL;
}

static void expect_note(const struct fixture *f, enum asym_origin origin, bool used, const char *text)
{
    const struct asym_speed_note *n = note_of(f, origin);
    assert_string_equal(n->text, text);
    assert_int_equal(n->used, used);
}

static void expect_speed(const struct fixture *f, unsigned cpu, double speed)
{
    assert_true(f->m.cpus[cpu].speed > speed * 0.999 && f->m.cpus[cpu].speed < speed * 1.001);
}

/* value for each CPU of the list. */
static void write_each(struct fixture *f, const char *list, const char *file, const char *value)
{
    struct asym_mask cpus;
    assert_int_equal(asym_mask_parse_list(list, strlen(list), &cpus), 0);
    ASYM_MASK_FOREACH (cpu, &cpus)
        tree_write_cpu(&f->tree, (unsigned)cpu, file, "%s\n", value);
}

/* Two P cores of two threads (0-3), four E cores (4-7) that share an L2, one L3. */
static void build_hybrid(struct fixture *f)
{
    struct tree *t = &f->tree;
    tree_machine(t, "0-7", "0-7");
    for (unsigned c = 0; c < 4; c++)
        tree_cpu(t, c, c / 2 * 4, 0, c < 2 ? "0-1" : "2-3", "0-7");
    static const char *const own[] = {"4", "5", "6", "7"};
    for (unsigned c = 4; c < 8; c++)
        tree_cpu(t, c, c + 4, 0, own[c - 4], "0-7");
    tree_cache(t, 2, "0-1");
    tree_cache(t, 2, "2-3");
    tree_cache(t, 2, "4-7");
    tree_cache(t, 3, "0-7");
    write_each(f, "0-3", "cpufreq/cpuinfo_max_freq", "5000000");
    write_each(f, "4-7", "cpufreq/cpuinfo_max_freq", "3800000");
    for (unsigned c = 0; c < 8; c++)
        tree_write_cpu(t, c, "cpufreq/related_cpus", "%u\n", c);
}

TEST_F(intel_hybrid_is_recognised_by_cpufreq)
{
    build_hybrid(f);
    assert_int_equal(read_tree(f), 0);
    assert_int_equal(f->m.n_cpus, 8);
    engine_fixture_assert_mask(&f->m.online, "0-7");
    engine_fixture_assert_mask(&f->m.usable, "0-7");
    engine_fixture_assert_mask(&f->m.fast, "0-3");
    engine_fixture_assert_mask(&f->m.slow, "4-7");
    assert_int_equal(f->m.n_types, 2);
    expect_speed(f, 0, 5.0 / 3.8);
    expect_speed(f, 7, 1);
    assert_int_equal(f->m.cpus[0].origin, ASYM_ORIGIN_CPUFREQ);
    assert_int_equal(f->m.n_cores, 6);
    assert_int_equal(f->m.cpus[0].core, f->m.cpus[1].core);
    assert_int_not_equal(f->m.cpus[1].core, f->m.cpus[2].core);
    assert_int_equal(f->m.cpus[0].smt_rank, 0);
    assert_int_equal(f->m.cpus[1].smt_rank, 1);
    assert_int_equal(f->m.cpus[5].smt_rank, 0);
    assert_int_equal(f->m.n_llcs, 1);
    assert_int_not_equal(f->m.cpus[0].freq_domain, f->m.cpus[1].freq_domain);
    expect_note(f, ASYM_ORIGIN_CAPACITY, false, "cpu_capacity: none");
    expect_note(f, ASYM_ORIGIN_CPUFREQ, true, "cpuinfo_max_freq: 5000000 kHz on 0-3, 3800000 on 4-7");
    expect_note(f, ASYM_ORIGIN_CPUKINDS, false, "hwloc cpukinds: 5000 MHz on 0-3, 3800 on 4-7");
}

/* Four small CPUs (0-3), four big (4-7), an L2 for each cluster and no L3, one cpufreq policy for each cluster. */
static void build_big_little(struct fixture *f)
{
    struct tree *t = &f->tree;
    tree_plain(t, 8);
    tree_cache(t, 2, "0-3");
    tree_cache(t, 2, "4-7");
    write_each(f, "0-3", "cpu_capacity", "446");
    write_each(f, "4-7", "cpu_capacity", "1024");
    write_each(f, "0-3", "cpufreq/related_cpus", "0 1 2 3");
    write_each(f, "4-7", "cpufreq/related_cpus", "4 5 6 7");
}

TEST_F(source_missing_on_some_cpus_gives_way_to_the_next)
{
    tree_plain(&f->tree, 8);
    write_each(f, "0-3", "cpu_capacity", "446");
    write_each(f, "4,6-7", "cpu_capacity", "1024"); /* one cache for all: CPU 5 may be of either */
    write_each(f, "0-3", "cpufreq/cpuinfo_max_freq", "1000000");
    write_each(f, "4-7", "cpufreq/cpuinfo_max_freq", "3000000");
    assert_int_equal(read_tree(f), 0);
    engine_fixture_assert_mask(&f->m.fast, "4-7");
    expect_speed(f, 5, 3);
    expect_note(f, ASYM_ORIGIN_CAPACITY, false, "cpu_capacity: missing on 5");
    assert_true(note_of(f, ASYM_ORIGIN_CPUFREQ)->used);
}

/* One CPU without a rank does not hide which CPUs are favoured. */
TEST_F(a_cpu_without_a_rank_is_the_last)
{
    tree_plain(&f->tree, 8);
    for (unsigned c = 0; c < 8; c++)
        tree_write_cpu(&f->tree, c, "cpufreq/amd_pstate_prefcore_ranking", "%u\n", 236 - 10 * c);
    tree_unlink(&f->tree, CPU_DIR "cpu1/cpufreq/amd_pstate_prefcore_ranking");
    assert_int_equal(read_tree(f), 0);
    assert_string_equal(f->notes.favour, "amd_pstate_prefcore_ranking");
    assert_int_equal(f->m.cpus[0].rank, 0);
    assert_int_equal(f->m.cpus[1].rank, f->m.cpus[7].rank);
}

TEST_F(source_missing_on_a_cpu_outside_the_cpuset_is_still_used)
{
    build_big_little(f);
    tree_unlink(&f->tree, CPU_DIR "cpu5/cpu_capacity");
    tree_write(&f->tree, "sys/fs/cgroup/cpuset.cpus.effective", "0-4,6-7\n");
    assert_int_equal(read_tree(f), 0);
    engine_fixture_assert_mask(&f->m.fast, "4,6-7");
    expect_note(f, ASYM_ORIGIN_CAPACITY, true, "cpu_capacity: 1024 on 4,6-7, 446 on 0-3");
}

/* Alder Lake as Linux shows it: the PMUs name the kinds. */
static void build_intel(struct fixture *f)
{
    build_hybrid(f);
    tree_write(&f->tree, "sys/devices/cpu_core/cpus", "0-3\n");
    tree_write(&f->tree, "sys/devices/cpu_atom/cpus", "4-7\n");
    tree_write(&f->tree, "proc/cpuinfo", "vendor_id\t: GenuineIntel\n");
}

TEST_F(a_source_that_differs_between_the_threads_of_a_core_is_dropped)
{
    build_intel(f);
    tree_write_cpu(&f->tree, 1, "cpufreq/cpuinfo_max_freq", "3000000\n");
    write_each(f, "0-3", "cpufreq/base_frequency", "3200000");
    write_each(f, "4-7", "cpufreq/base_frequency", "2400000");
    assert_int_equal(read_tree(f), 0);
    expect_note(f, ASYM_ORIGIN_CPUFREQ, false, "cpuinfo_max_freq: the threads of a core differ (CPU 1)");
    expect_note(f, ASYM_ORIGIN_BASE, true, "base_frequency: 3200000 kHz on 0-3, 2400000 on 4-7");
    expect_speed(f, 1, 1.25 * 3200 / 2400); /* a P core does 1.25 times the work of an E core per cycle */
}

TEST_F(cpus_of_one_pmu_are_one_type_however_far_apart)
{
    build_intel(f);
    write_each(f, "2-3", "cpufreq/cpuinfo_max_freq", "3900000"); /* 78 % of the other P core */
    assert_int_equal(read_tree(f), 0);
    assert_int_equal(f->m.n_types, 2);
    engine_fixture_assert_mask(&f->m.fast, "0-3");
    assert_int_equal(f->m.cpus[2].rank, 1);
}

/* CPUs without a named kind split only at gaps: preferred cores are above 80 %, Zen c cores below. */
TEST_F(cores_of_no_kind_are_one_type_from_80_percent_up)
{
    static const struct {
        const char *slower;
        unsigned types;
    } rows[] = {{"4400000", 1}, {"4000000", 1}, {"3990000", 2}, {"3500000", 2}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        tree_plain(&f->tree, 8);
        write_each(f, "0-3", "cpufreq/cpuinfo_max_freq", "5000000");
        write_each(f, "4-7", "cpufreq/cpuinfo_max_freq", rows[i].slower);
        assert_int_equal(read_tree(f), 0);
        assert_int_equal(f->m.n_types, rows[i].types);
        assert_int_equal(f->m.cpus[4].rank, rows[i].types == 1);
        assert_false(f->notes.unordered);
    }
    write_each(f, "4-7", "cpufreq/cpuinfo_max_freq", "4400000");
    assert_int_equal(read_tree(f), 0);
    assert_int_equal(f->m.n_types, 1);
    assert_true(asym_mask_empty(&f->m.slow));
    assert_true(asym_mask_equal(&f->m.fast, &f->m.usable));
    ASYM_MASK_FOREACH (cpu, &f->m.usable) {
        assert_int_equal(f->m.cpus[cpu].origin, ASYM_ORIGIN_NONE);
        assert_true(f->m.cpus[cpu].speed == 1.0);
    }
    for (size_t i = 0; i < f->notes.n; i++)
        assert_false(f->notes.note[i].used);
    expect_note(f, ASYM_ORIGIN_CPUFREQ, false,
                "cpuinfo_max_freq: 4400000 to 5000000 kHz within one kind: asymd counts them as equal");
}

/* The laboratory's machine of eight speeds: no step is a gap, but all CPUs together are no one type. */
TEST_F(a_staircase_of_speeds_keeps_its_steps)
{
    tree_plain(&f->tree, 8);
    for (unsigned c = 0; c < 8; c++)
        tree_write_cpu(&f->tree, c, "cpufreq/cpuinfo_max_freq", "%u\n", 275000 * (c + 1));
    assert_int_equal(read_tree(f), 0);
    assert_int_equal(f->m.n_types, 8);
    engine_fixture_assert_mask(&f->m.fast, "6-7");
    for (unsigned c = 0; c < 8; c++)
        expect_speed(f, c, c + 1);
}

TEST_F(arm_cores_are_of_the_kind_that_their_midr_names)
{
    tree_plain(&f->tree, 8);
    /* Two designs: Cortex-A720 (0-3, of two clocks) and X4. */
    write_each(f, "0-3", "regs/identification/midr_el1", "0x00000000411fd811");
    write_each(f, "2", "regs/identification/midr_el1", "0x00000000410fd810"); /* an older revision of the same */
    write_each(f, "4-7", "regs/identification/midr_el1", "0x00000000411fd821");
    write_each(f, "0-1", "cpu_capacity", "880");
    write_each(f, "2-3", "cpu_capacity", "939");
    write_each(f, "4-7", "cpu_capacity", "1024");
    assert_int_equal(read_tree(f), 0);
    assert_int_equal(f->m.n_types, 2);
    assert_string_equal(f->m.types[0].name, "Cortex-X4");
    assert_string_equal(f->m.types[1].name, "Cortex-A720");
    engine_fixture_assert_mask(&f->m.types[1].cpus, "0-3");
    engine_fixture_assert_mask(&f->m.fast, "0-7"); /* 92 % of an X4 */
    /* Without one MIDR, figures alone decide. */
    tree_unlink(&f->tree, CPU_DIR "cpu5/regs/identification/midr_el1");
    assert_int_equal(read_tree(f), 0);
    assert_int_equal(f->m.n_types, 1);
}

TEST_F(the_midr_of_older_kernels_is_in_cpuinfo)
{
    tree_plain(&f->tree, 2);
    tree_write(&f->tree, "proc/cpuinfo",
               "processor\t: 0\nFeatures\t: fp\nCPU implementer\t: 0x41\nCPU variant\t: 0x1\nCPU part\t: 0xd05\n\n"
               "processor\t: 1\nFeatures\t: fp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n");
    write_each(f, "0", "cpu_capacity", "400");
    write_each(f, "1", "cpu_capacity", "1024");
    assert_int_equal(read_tree(f), 0);
    assert_string_equal(f->m.types[0].name, "Cortex-A76");
    assert_string_equal(f->m.types[1].name, "Cortex-A55");
    static const char *const junk[] = {"", "0x", "zz\n", "0x00000000410fd0b0 and more\n",
                                       "0xffffffffffffffffffffffffffff\n"};
    tree_write(&f->tree, "proc/cpuinfo", "processor : 9999\nCPU part : 0xd05\nCPU part\n: 1\n");
    for (size_t i = 0; i < ASYM_LENGTH(junk); i++) {
        tree_write_cpu(&f->tree, 0, "regs/identification/midr_el1", "%s", junk[i]);
        assert_int_equal(read_tree(f), 0);
        assert_string_equal(f->m.types[0].name, "fast"); /* no kind is known, but the figures remain */
    }
}

/* A machine with the designs of an M1 whose kernel shows clocks only. tests/hosts.py has those of others. */
TEST_F(a_clock_counts_for_what_an_arm_design_does_in_a_cycle)
{
    tree_plain(&f->tree, 4);
    write_each(f, "0-1", "regs/identification/midr_el1", "0x00000000610f0230");
    write_each(f, "2-3", "regs/identification/midr_el1", "0x00000000610f0220");
    write_each(f, "0-1", "cpufreq/cpuinfo_max_freq", "3204000");
    write_each(f, "2-3", "cpufreq/cpuinfo_max_freq", "2064000");
    assert_int_equal(read_tree(f), 0);
    assert_non_null(strstr(note_of(f, ASYM_ORIGIN_CPUFREQ)->text, "(times the work"));
    engine_fixture_assert_mask(&f->m.fast, "0-1");
    expect_speed(f, 0, 3204.0 / 2064 / 0.7);
    expect_speed(f, 2, 1);
    assert_string_equal(f->m.types[0].name, "Firestorm");
    assert_string_equal(f->m.types[1].name, "Icestorm");
}

TEST_F(a_midr_that_cannot_be_read_is_that_of_its_cpufreq_policy)
{
    tree_plain(&f->tree, 4);
    write_each(f, "0-1", "regs/identification/midr_el1", "0x00000000411fd050");
    write_each(f, "2-3", "regs/identification/midr_el1", "0x00000000511f2052");
    write_each(f, "0-1", "cpufreq/cpuinfo_max_freq", "1593600");
    write_each(f, "2-3", "cpufreq/cpuinfo_max_freq", "2150400");
    write_each(f, "0-1", "cpufreq/related_cpus", "0 1");
    tree_unlink(&f->tree, CPU_DIR "cpu1/regs/identification/midr_el1");
    assert_int_equal(read_tree(f), 0);
    assert_string_equal(f->m.types[1].name, "Cortex-A55");
    engine_fixture_assert_mask(&f->m.types[1].cpus, "0-1");
}

TEST_F(a_clock_that_was_rejected_favours_no_cpu)
{
    build_intel(f);
    write_each(f, "0-3", "cpufreq/cpuinfo_max_freq", "3000000"); /* slower P than E cores: the figures are wrong */
    write_each(f, "4-5", "cpufreq/cpuinfo_max_freq", "4800000");
    write_each(f, "6-7", "cpufreq/cpuinfo_max_freq", "4300000");
    assert_int_equal(read_tree(f), 0);
    assert_non_null(strstr(note_of(f, ASYM_ORIGIN_CPUFREQ)->text, "slower cores of a faster kind"));
    assert_true(!f->notes.favour || strcmp(f->notes.favour, "cpuinfo_max_freq") != 0);
    for (unsigned c = 0; c < 8; c++)
        assert_int_equal(f->m.cpus[c].rank, 0);
}

TEST_F(offline_cpus_and_gaps_in_the_numbering_are_kept)
{
    struct tree *t = &f->tree;
    static const unsigned online[] = {0, 1, 6, 300};
    static const char *const own[] = {"0", "1", "6", "300"};
    tree_machine(t, "0-1,5-6,300-301", "0-1,6,300");
    for (size_t i = 0; i < 4; i++)
        tree_cpu(t, online[i], online[i], 0, own[i], "0-1,6,300");
    tree_write_cpu(t, 5, "online", "0\n");
    tree_write_cpu(t, 301, "online", "0\n");
    write_each(f, "0-1,6", "cpu_capacity", "500");
    write_each(f, "300", "cpu_capacity", "1000");
    assert_int_equal(read_tree(f), 0);
    assert_in_range(f->m.n_cpus, 301, 302);
    engine_fixture_assert_mask(&f->m.online, "0-1,6,300");
    engine_fixture_assert_mask(&f->m.usable, "0-1,6,300");
    engine_fixture_assert_mask(&f->m.fast, "300");
    expect_speed(f, 300, 2);
    assert_int_equal(f->m.cpus[5].core, -1);
    assert_int_equal(f->m.cpus[5].type, -1);
}

static int cpus_of(struct fixture *f, struct asym_mask *online, struct asym_mask *usable)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    assert_int_equal(asym_root_open(f->tree.path, &root, &f->err), 0);
    int r = asym_topology_cpus(&root, online, usable);
    return r;
}

TEST_F(effective_cpuset_bounds_what_is_usable)
{
    static const struct {
        const char *file, *list, *usable;
    } rows[] = {
        {"sys/fs/cgroup/cpuset/cpuset.effective_cpus", "2-3,9\n", "2-3"},
        {"sys/fs/cgroup/cpuset.cpus.effective", "0,2\n", "0,2"}, /* version 2 comes before version 1 */
        {"sys/fs/cgroup/cpuset.cpus.effective", "8-9\n", "2-3"}, /* no CPU of it is online: not used */
        {"sys/fs/cgroup/cpuset.cpus.effective", "junk\n", "2-3"},
        {"sys/fs/cgroup/cpuset/cpuset.effective_cpus", "\n", "0-3"},
    };
    tree_plain(&f->tree, 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_write(&f->tree, rows[i].file, "%s", rows[i].list);
        assert_int_equal(read_tree(f), 0);
        engine_fixture_assert_mask(&f->m.online, "0-3");
        engine_fixture_assert_mask(&f->m.usable, rows[i].usable);
        struct asym_mask online, usable;
        assert_int_equal(cpus_of(f, &online, &usable), 0);
        assert_true(asym_mask_equal(&online, &f->m.online) && asym_mask_equal(&usable, &f->m.usable));
    }
}

/* Without either parameter the kernel writes an empty list, or "(null)" in place of that of nohz_full. */
TEST_F(isolated_cpus_are_those_of_isolcpus_and_of_nohz_full)
{
    static const struct {
        const char *isolated, *nohz_full, *expected;
    } rows[] = {
        {"\n", "  (null)\n", ""}, {"2-3\n", "(null)\n", "2-3"}, {"2\n", "1\n", "1-2"},    {"", "2-3\n", "2-3"},
        {"", "1-3\n", ""}, /* one CPU keeps the tick: this is about the tick */
        {"3\n", "1-3\n", "3"},    {"1-3,9\n", "", "1-3"},       {"junk\n", "junk\n", ""},
    };
    tree_plain(&f->tree, 4);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        tree_write(&f->tree, "sys/devices/system/cpu/isolated", "%s", rows[i].isolated);
        tree_write(&f->tree, "sys/devices/system/cpu/nohz_full", "%s", rows[i].nohz_full);
        assert_int_equal(read_tree(f), 0);
        engine_fixture_assert_mask(&f->m.isolated, rows[i].expected);
        engine_fixture_assert_mask(&f->m.usable, "0-3");
    }
}

TEST_F(cpus_that_come_and_go_are_noticed_without_a_full_read)
{
    struct asym_mask online, usable;
    tree_plain(&f->tree, 8);
    assert_int_equal(read_tree(f), 0);
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-4,6-7\n");
    assert_int_equal(cpus_of(f, &online, &usable), 0);
    engine_fixture_assert_mask(&online, "0-4,6-7");
    engine_fixture_assert_mask(&usable, "0-4,6-7");
    tree_write(&f->tree, "sys/fs/cgroup/cpuset.cpus.effective", "4-7\n");
    assert_int_equal(cpus_of(f, &online, &usable), 0);
    engine_fixture_assert_mask(&usable, "4,6-7");
    tree_write(&f->tree, "sys/devices/system/cpu/online", "junk\n");
    assert_int_equal(cpus_of(f, &online, &usable), -EINVAL);
    engine_fixture_assert_mask(&online, "0-4,6-7");
    tree_unlink(&f->tree, "sys/devices/system/cpu/online");
    assert_int_equal(cpus_of(f, &online, &usable), -ENOENT);
}

TEST_F(without_caches_the_package_is_the_llc)
{
    struct tree *t = &f->tree;
    static const char *const own[] = {"0", "1", "2", "3"};
    tree_machine(t, "0-3", "0-3");
    for (unsigned c = 0; c < 4; c++) {
        tree_cpu(t, c, c % 2, c / 2, own[c], c < 2 ? "0-1" : "2-3");
        tree_cache(t, 2, own[c]); /* one core each: not shared */
    }
    assert_int_equal(read_tree(f), 0);
    assert_int_equal(f->m.n_llcs, 2);
    assert_int_equal(f->m.cpus[0].llc, f->m.cpus[1].llc);
    assert_int_not_equal(f->m.cpus[1].llc, f->m.cpus[2].llc);
    assert_int_equal(f->m.n_cores, 4);
}

TEST_F(bad_figures_are_taken_for_missing_ones)
{
    static char huge[100000];
    static const struct {
        const char *bytes;
        size_t len;
    } junk[] = {{"", 0}, {"\xff\x00\x01\n", 4}, {"-5\n", 3}, {"0\n", 2}, {"1024 MHz\n", 9}, {huge, sizeof huge}};
    memset(huge, '9', sizeof huge);
    build_big_little(f);
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        tree_write_bytes(&f->tree, CPU_DIR "cpu3/cpu_capacity", junk[i].bytes, junk[i].len);
        tree_write_bytes(&f->tree, CPU_DIR "cpu3/cpufreq/related_cpus", junk[i].bytes, junk[i].len);
        tree_write_bytes(&f->tree, CPU_DIR "cpu2/cpufreq/cpuinfo_max_freq", junk[i].bytes, junk[i].len);
        tree_write_bytes(&f->tree, "sys/devices/cpu_core/cpus", junk[i].bytes, junk[i].len);
        tree_write_bytes(&f->tree, "sys/fs/cgroup/cpuset.cpus.effective", junk[i].bytes, i == 3 ? 0 : junk[i].len);
        assert_int_equal(read_tree(f), 0);
        expect_note(f, ASYM_ORIGIN_CAPACITY, true, "cpu_capacity: 1024 on 4-7, 446 on 0-3; missing on 3");
        engine_fixture_assert_mask(&f->m.usable, "0-7");
        assert_true(f->m.cpus[3].freq_domain == -1 || f->m.cpus[3].freq_domain != f->m.cpus[0].freq_domain);
    }
}

TEST_F(frequency_domains_are_read_whatever_blanks_are_between)
{
    build_big_little(f);
    write_each(f, "0-3", "cpufreq/related_cpus", " \n  3 2 1  0 \n");
    write_each(f, "4-7", "cpufreq/related_cpus", "4 5 6 7");
    write_each(f, "6", "cpufreq/related_cpus", " 4 5 7");
    assert_int_equal(read_tree(f), 0);
    /* CPU 6 is not in its own list, so it has its own domain. */
    static const int domains[] = {0, 0, 0, 0, 1, 1, 2, 1};
    for (int c = 0; c < 8; c++)
        assert_int_equal(f->m.cpus[c].freq_domain, domains[c]);
}

TEST_F(bad_list_of_online_cpus_is_refused_in_words)
{
    tree_plain(&f->tree, 4);
    struct asym_machine before = f->m;
    tree_write_bytes(&f->tree, CPU_DIR "online", "0-\xff\0\n", 5);
    assert_int_equal(read_tree(f), -EINVAL);
    expect_error(f, "sys/devices/system/cpu/online: not a list of CPUs");
    tree_write(&f->tree, CPU_DIR "online", "\n");
    assert_int_equal(read_tree(f), -ENODEV);
    expect_error(f, "no CPU is online");
    tree_write(&f->tree, CPU_DIR "online", "0-1024\n");
    assert_int_equal(read_tree(f), -E2BIG);
    expect_error(f, "which asymd does not support");
    assert_memory_equal(&before, &f->m, sizeof before);
}

/* Android kernels show the topology of some online CPUs only, or of none. hwloc leaves these CPUs out. */
TEST_F(online_cpus_without_topology_are_cpus)
{
    static const char *const files[] = {
        "core_id",   "physical_package_id", "thread_siblings",    "core_siblings",
        "core_cpus", "package_cpus",        "core_siblings_list", "thread_siblings_list"};
    for (unsigned first = 1; first != UINT_MAX; first--) {
        tree_plain(&f->tree, 4);
        write_each(f, "0-1", "cpu_capacity", "400");
        write_each(f, "2-3", "cpu_capacity", "1024");
        for (unsigned c = first; c < 4; c++) {
            for (size_t i = 0; i < ASYM_LENGTH(files); i++) {
                char path[128];
                snprintf(path, sizeof path, "%s/" CPU_DIR "cpu%u/topology/%s", f->tree.path, c, files[i]);
                unlink(path);
            }
            char dir[128];
            snprintf(dir, sizeof dir, "%s/" CPU_DIR "cpu%u/topology", f->tree.path, c);
            assert_int_equal(rmdir(dir), 0);
        }
        assert_int_equal(read_tree(f), 0);
        engine_fixture_assert_mask(&f->m.usable, "0-3");
        engine_fixture_assert_mask(&f->m.fast, "2-3");
        assert_int_equal(f->m.n_cores, 4);
        assert_int_equal(f->m.n_llcs, 1);
        assert_int_equal(f->m.n_nodes, 1);
        engine_fixture_assert_mask(&f->notes.unplaced, first == 1 ? "1-3" : "0-3");
    }
}

TEST_F(bad_root_without_cpus_is_refused_in_words)
{
    tree_mkdir(&f->tree, "proc");
    tree_mkdir(&f->tree, "sys");
    assert_int_equal(read_tree(f), -ENODEV);
    expect_error(f, "no CPUs in sys/devices/system/cpu");
    tree_mkdir(&f->tree, "sys/devices/system/cpu");
    assert_int_equal(read_tree(f), -ENODEV);
    expect_error(f, "no CPUs in sys/devices/system/cpu");
    tree_machine(&f->tree, "0-3", "0-3"); /* lists of CPUs, none of which exists */
    assert_int_equal(read_tree(f), -ENODEV);
}

TEST_F(generation_counts_up_and_notes_may_be_left_out)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    tree_plain(&f->tree, 2);
    assert_int_equal(asym_root_open(f->tree.path, &root, NULL), 0);
    f->m.generation = 41;
    assert_int_equal(asym_topology_read(&root, NULL, &f->m, NULL, NULL), 0);
    assert_int_equal(f->m.generation, 42);
}

TEST_F(root_is_read_by_its_descriptor_after_chdir)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    char cwd[512];
    tree_plain(&f->tree, 3);
    assert_non_null(getcwd(cwd, sizeof cwd));
    assert_int_equal(chdir(f->tree.path), 0);
    assert_int_equal(asym_root_open(".", &root, NULL), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(asym_topology_read(&root, NULL, &f->m, NULL, &f->err), 0);
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(f->m.n_cpus, 3);
}

TEST_F(environment_leads_nowhere_and_stays_as_it_was)
{
    static const char *const env[][2] = {{"HWLOC_SYNTHETIC", "core:64 pu:1"}, {"HWLOC_XMLFILE", HYBRID_XML},
                                         {"HWLOC_FSROOT", "/nonexistent"},    {"HWLOC_COMPONENTS", "-linux"},
                                         {"HWLOC_THISSYSTEM", "1"},           {"HWLOC_CPUKINDS_RANKING", "none"}};
    build_hybrid(f);
    assert_null(getenv("HWLOC_HIDE_ERRORS"));
    for (size_t i = 0; i < sizeof env / sizeof *env; i++)
        setenv(env[i][0], env[i][1], 1);
    int r = read_tree(f);
    int x = read_xml(f, "/nonexistent.xml");
    for (size_t i = 0; i < sizeof env / sizeof *env; i++) {
        assert_string_equal(getenv(env[i][0]), env[i][1]);
        unsetenv(env[i][0]);
    }
    assert_null(getenv("HWLOC_HIDE_ERRORS"));
    assert_int_equal(r, 0);
    assert_int_equal(x, -ENOENT);
    engine_fixture_assert_mask(&f->m.online, "0-7");
    engine_fixture_assert_mask(&f->m.fast, "0-3");
}

TEST_F(live_machine_is_sane)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    char text[8192];
    struct asym_mask online;
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    assert_int_equal(asym_topology_read(&root, NULL, &f->m, &f->notes, &f->err), 0);
    ssize_t n = asym_root_read(&root, CPU_DIR "online", text, sizeof text);
    assert_true(n > 0);
    assert_int_equal(asym_mask_parse_list(text, (size_t)n, &online), 0);
    assert_true(asym_mask_equal(&f->m.online, &online));
    assert_true(asym_mask_within(&f->m.usable, &f->m.online));
    assert_false(asym_mask_empty(&f->m.fast));
    assert_int_equal(f->notes.n, ASYM_N_ORIGINS - 3); /* all but none, configuration and caps */
    ASYM_MASK_FOREACH (cpu, &f->m.usable) {
        assert_true(f->m.cpus[cpu].speed >= 1);
        assert_in_range(f->m.cpus[cpu].core, 0, f->m.n_cores - 1);
        assert_in_range(f->m.cpus[cpu].llc, 0, f->m.n_llcs - 1);
        assert_in_range(f->m.cpus[cpu].type, 0, f->m.n_types - 1);
    }
}

/* XML. */

TEST_F(xml_alone_gives_the_machine)
{
    assert_int_equal(read_xml(f, HYBRID_XML), 0);
    assert_int_equal(f->m.n_cpus, 6);
    engine_fixture_assert_mask(&f->m.usable, "0-5");
    engine_fixture_assert_mask(&f->m.fast, "0-1");
    expect_speed(f, 0, 1.25 * 5.0 / 3.8);
    assert_int_equal(f->m.n_llcs, 1);
    assert_int_equal(f->m.n_cores, 6);
    /* XML has no cpufreq, so no two CPUs are known to share a domain. */
    assert_true(f->m.cpus[0].freq_domain == -1 || f->m.cpus[0].freq_domain != f->m.cpus[1].freq_domain);
    assert_int_equal(f->notes.n, 1);
    expect_note(f, ASYM_ORIGIN_CPUKINDS, true, "hwloc cpukinds: 5000 MHz on 0-1, 3800 on 2-5");
}

static char *slurp(const char *path, size_t *ret_len)
{
    static char text[65536];
    const ssize_t n = file_read(path, text, sizeof text);
    assert_true(n > 0);
    *ret_len = (size_t)n;
    return text;
}

/* Returns the output to stderr meanwhile: hwloc's own messages are for its developers. */
static int hush_begin(void)
{
    int saved = dup(2), fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    assert_true(saved >= 0 && fd >= 0);
    assert_int_equal(dup2(fd, 2), 2);
    close(fd);
    return saved;
}

static off_t hush_end(int saved)
{
    off_t written = lseek(2, 0, SEEK_END);
    assert_int_equal(dup2(saved, 2), 2);
    close(saved);
    return written;
}

static void expect_bad_xml(struct fixture *f, const void *bytes, size_t len, const char *part)
{
    char path[128];
    struct asym_machine before = f->m;
    tree_write_bytes(&f->tree, "bad.xml", bytes, len);
    snprintf(path, sizeof path, "%s/bad.xml", f->tree.path);
    int saved = hush_begin();
    int r = read_xml(f, path);
    assert_int_equal(hush_end(saved), 0);
    assert_int_equal(r, -EINVAL);
    expect_error(f, "bad.xml: ");
    expect_error(f, part);
    assert_memory_equal(&before, &f->m, sizeof before);
}

TEST_F(bad_xml_of_a_newer_hwloc_says_how_to_export_it)
{
    size_t len;
    char *text = slurp(HYBRID_XML, &len), *at = strstr(text, "version=\"2.0\"");
    assert_non_null(at);
    at[strlen("version=\"")] = '3';
    expect_bad_xml(f, text, len, "a newer hwloc wrote this");
    expect_error(f, "lstopo --export-xml-flags v2");
    memcpy(at, "version=\"x.0\"", 13);
    expect_bad_xml(f, text, len, "newer hwloc");
}

TEST_F(bad_xml_that_is_not_hwlocs_is_refused_in_words)
{
    static const char junk[] = "\x7f"
                               "ELF\0<topology version=\"2.0\"></topology>";
    static const char html[] = "<html><topologydiff/></html>\n";
    static const char hollow[] = "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n</topology>\n";
    expect_bad_xml(f, "", 0, "empty");
    expect_bad_xml(f, junk, sizeof junk - 1, "not hwloc XML");
    expect_bad_xml(f, html, sizeof html - 1, "not hwloc XML");
    expect_bad_xml(f, hollow, sizeof hollow - 1, "damaged");
    assert_int_equal(read_xml(f, "/tmp"), -EINVAL);
    expect_error(f, "no regular file");
    assert_int_equal(read_xml(f, "/nonexistent.xml"), -ENOENT);
    expect_error(f, "/nonexistent.xml: No such file");
}

/* hwloc 2.9 crashes on this file with a segmentation fault; a later hwloc may refuse or read it. */
TEST_F(bad_xml_that_hwloc_crashes_over_harms_nothing)
{
    int r = read_xml(f, ASYM_TEST_DATA "/topology/crashes-hwloc.xml");
    assert_true(r == -EINVAL || r == 0);
    if (r < 0)
        expect_error(f, "crashes-hwloc.xml: ");
}

static bool hwloc_crashes;

/* hwloc 2.9 crashes so at about 20 of its allocations. */
WRAPPED(int, hwloc_topology_init, hwloc_topology_t *t)
{
    if (hwloc_crashes)
        raise(SIGSEGV);
    return __real_hwloc_topology_init(t);
}

TEST_F(a_crash_of_hwloc_is_an_error_of_the_machine)
{
    build_hybrid(f);
    hwloc_crashes = true;
    const int r = read_tree(f);
    hwloc_crashes = false;
    assert_int_equal(r, -EINVAL);
    expect_error(f, ": hwloc crashes when it reads it (Segmentation fault)");
    assert_int_equal(read_tree(f), 0);
}

TEST_F(bad_xml_that_breaks_off_is_refused_wherever_it_does)
{
    size_t len;
    static char text[65536];
    memcpy(text, slurp(HYBRID_XML, &len), sizeof text);
    const char *element = strstr(text, "<topology");
    assert_non_null(element);
    for (size_t cut = (size_t)(element - text) + 25; cut < len - 13; cut += 83)
        expect_bad_xml(f, text, cut, "incomplete");
    /* With an end tag after the cut, hwloc must detect the fault; some cuts leave a complete machine. */
    for (size_t cut = (size_t)(element - text) + 25; cut < len - 13; cut += 83) {
        char path[128];
        tree_write(&f->tree, "cut.xml", "%.*s</topology>\n", (int)ASYM_MIN(cut, 16000), text);
        snprintf(path, sizeof path, "%s/cut.xml", f->tree.path);
        int saved = hush_begin();
        int r = read_xml(f, path);
        assert_int_equal(hush_end(saved), 0);
        assert_true(r == 0 || (r == -EINVAL && f->err.text[0]));
    }
}

static int read_one_cpu(struct fixture *f, const char *set, unsigned number)
{
    char path[128];
    tree_write(&f->tree, "one.xml",
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
               "<topology version=\"2.0\">\n"
               "  <object type=\"Machine\" os_index=\"0\" cpuset=\"%s\" complete_cpuset=\"%s\" allowed_cpuset=\"%s\" "
               "nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
               "    <object type=\"NUMANode\" os_index=\"0\" cpuset=\"%s\" complete_cpuset=\"%s\" nodeset=\"0x1\" "
               "complete_nodeset=\"0x1\" gp_index=\"2\"/>\n"
               "    <object type=\"PU\" os_index=\"%u\" cpuset=\"%s\" complete_cpuset=\"%s\" nodeset=\"0x1\" "
               "complete_nodeset=\"0x1\" gp_index=\"3\"/>\n  </object>\n</topology>\n",
               set, set, set, set, set, number, set, set);
    snprintf(path, sizeof path, "%s/one.xml", f->tree.path);
    return read_xml(f, path);
}

TEST_F(bad_xml_with_a_cpu_beyond_the_limit_is_refused_in_words)
{
    char set[1024] = "0x10000000"; /* CPU 1500 */
    for (int i = 0; i < 1500 / 32; i++)
        strcat(set, ",0x0");
    assert_int_equal(read_one_cpu(f, set, 1500), -E2BIG);
    expect_error(f, "CPU 1500");
    assert_int_equal(read_one_cpu(f, "0x1", 1500), -E2BIG); /* not in its own set */
    assert_int_equal(read_one_cpu(f, "0x1", 0), 0);
    assert_int_equal(f->m.n_cpus, 1);
}

TEST_F(xml_with_a_kind_without_end_is_cut_at_its_cpus)
{
    char path[128];
    size_t len;
    char *text = slurp(HYBRID_XML, &len), *at = strstr(text, "<cpukind cpuset=\"0x0000003c\"");
    assert_non_null(at);
    memcpy(at + strlen("<cpukind cpuset=\""), "0xf...f00c", 10);
    tree_write_bytes(&f->tree, "endless.xml", text, len);
    snprintf(path, sizeof path, "%s/endless.xml", f->tree.path);
    assert_int_equal(read_xml(f, path), 0);
    engine_fixture_assert_mask(&f->m.usable, "0-5");
}

TEST_F(bad_permission_on_xml_is_reported)
{
    char path[128];
    size_t len;
    const char *text = slurp(HYBRID_XML, &len);
    tree_write_bytes(&f->tree, "secret.xml", text, len);
    snprintf(path, sizeof path, "%s/secret.xml", f->tree.path);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(f->tree.path, 0755), 0);
    pid_t child = asym_process_fork(); /* root may read any file, so the child becomes another user */
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) < 0)
            _exit(1);
        _exit(read_xml(f, path) == -EACCES && strstr(f->err.text, "Permission denied") ? 42 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static bool is_virtual(const struct tree *t)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    assert_int_equal(asym_root_open(t->path, &root, NULL), 0);
    const bool result = asym_is_virtual(&root);
    return result;
}

TEST_F(each_sign_of_a_virtual_machine_counts_and_nothing_else_does)
{
    static const struct {
        const char *path, *text;
        bool is_virtual;
    } rows[] = {
        {"proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme hypervisor lahf_lm\n", true},
        {"proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme lahf_lm\n", false},
        {"sys/hypervisor/type", "xen\n", true},
        {"proc/device-tree/hypervisor/compatible", "linux,kvm", true},
        {"sys/class/dmi/id/sys_vendor", "QEMU\n", true},
        {"sys/class/dmi/id/sys_vendor", "LENOVO\n", false},
        {"sys/class/dmi/id/product_name", "VMware Virtual Platform\n", true},
        {"sys/class/dmi/id/product_name", "Virtual Machine\n", true},
        {"sys/class/dmi/id/product_name", "Apple Virtualization Generic Platform\n", true},
        {"sys/class/dmi/id/product_name", "Parallels ARM Virtual Machine\n", true},
        {"sys/class/dmi/id/product_name", "KVM\n", true},
        {"sys/class/dmi/id/product_name", "Google Compute Engine\n", true},
        {"sys/class/dmi/id/product_name", "MacBookPro18,3\n", false},
        {"sys/class/dmi/id/product_version", "Hyper-V UEFI Release v4.1\n", true},
        {"sys/class/dmi/id/product_version", "ThinkPad T14 Gen 2i\n", false},
        {"sys/class/dmi/id/sys_vendor", "Parallels Software International Inc.\n", true},
        {"sys/class/dmi/id/sys_vendor", "Xen\n", true},
        {"sys/class/dmi/id/sys_vendor", "Apple Inc.\n", false},
        {"sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n", false}, /* a Surface */
        {"sys/class/dmi/id/sys_vendor", "Oracle Corporation\n", false},    /* a SPARC or x86 server, too */
        {"sys/class/dmi/id/bios_vendor", "BHYVE\n", true},
        {"sys/class/dmi/id/bios_vendor", "American Megatrends Inc.\n", false},
        {"proc/device-tree/compatible", "linux,dummy-virt", true},
        {"proc/device-tree/compatible", "raspberrypi,5-model-b", false},
        {"proc/device-tree/model", "IBM pSeries (emulated by qemu)", true},
        {"proc/sysinfo", "VM00 Control Program:   KVM/Linux\n", true},
        {"proc/sysinfo", "LPAR Number:          7\n", false},
        {"proc/cpuinfo", "vendor_id\t: User Mode Linux\n", true},
        {"sys/class/dmi/id/product_name", "20XW00AAGE\n", false},
        {"sys/class/dmi/id/product_name", "", false},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        tree_write(&f->tree, "proc/version", "Linux\n");
        assert_false(is_virtual(&f->tree));
        tree_write(&f->tree, rows[i].path, "%s", rows[i].text);
        assert_int_equal(is_virtual(&f->tree), rows[i].is_virtual);
        tree_unlink(&f->tree, rows[i].path);
    }
}

TEST_MAIN
