/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The facts of a machine that asymd --check prints. */

#include "linux/check/machine-facts.h"
#include "linux/check/rivals.h"
#include "linux/sys/root.h"
#include "support/tree.h"
#include "support/test.h"

#define TEST_F(name) TEST_IN(name, struct tree_root, f, tree_root_make, tree_root_remove)

struct found {
    const char *name;
    struct asym_fact fact;
    int n;
};

static int find(void *ctx, const char *name, const struct asym_fact *fact)
{
    struct found *f = ctx;
    assert_true(fact->text[0] != '\0');
    assert_null(strchr(fact->text, '\n'));
    f->n++;
    if (strcmp(name, f->name) != 0)
        return 0;
    f->fact = *fact;
    return 1;
}

static bool fact(const struct asym_root *root, const char *name, struct asym_fact *ret)
{
    struct found f = {.name = name};
    bool there = asym_facts_each(root, find, &f) == 1;
    *ret = f.fact;
    return there;
}

static void expect_fact(const struct tree_root *f, const char *name, enum asym_fact_level level, const char *part)
{
    struct asym_fact got;
    if (!fact(&f->root, name, &got))
        fail_msg("no fact %s", name);
    if (got.level != level || !strstr(got.text, part))
        fail_msg("%s: level %d, text '%s'", name, (int)got.level, got.text);
    assert_true(level != ASYM_FACT_LACK || got.remedy[0]);
}

static int count_name(void *ctx, const char *name, const struct asym_fact *fact)
{
    struct found *f = ctx;
    f->n += strcmp(name, f->name) == 0;
    return 0;
}

TEST(facts_of_the_live_machine_can_all_be_read)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root;
    struct found all = {.name = "none of this name"};
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    assert_int_equal(asym_facts_each(&root, find, &all), 0);
    static const char *const always[] = {"kernel",    "cpufreq", "schedstat",     "counters",    "bpf",
                                         "autogroup", "hidepid", "pid namespace", "descriptors", "capabilities"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        struct found f = {.name = always[i]};
        assert_int_equal(asym_facts_each(&root, count_name, &f), 0);
        assert_int_equal(f.n, 1);
    }
}

TEST_F(facts_of_a_capture_say_nothing_of_files_left_out)
{
    struct found all = {.name = "none of this name"};
    assert_int_equal(asym_facts_each(&f->root, find, &all), 0);
    assert_int_equal(all.n, 0);
}

TEST_F(facts_of_a_live_machine_name_what_it_lacks)
{
    f->root.live = true; /* a live machine whose files the test writes */
    expect_fact(f, "cpufreq", ASYM_FACT_LACK, "no driver");
    expect_fact(f, "schedstat", ASYM_FACT_LACK, "sample");
    expect_fact(f, "counters", ASYM_FACT_LACK, "ipc");
    expect_fact(f, "bpf", ASYM_FACT_LACK, "sys/kernel/btf/vmlinux");
    expect_fact(f, "perf events", ASYM_FACT_LACK, "no performance events");
    expect_fact(f, "autogroup", ASYM_FACT_GOOD, "off");
}

TEST_F(capabilities_of_a_user_namespace_do_not_count)
{
    f->root.live = true;
    tree_write(&f->tree, "proc/sys/kernel/perf_event_paranoid", "2\n");
    tree_write(&f->tree, "proc/self/status", "Name:\ta\nCapEff:\t000001ffffffffff\n");
    expect_fact(f, "capabilities", ASYM_FACT_GOOD, "all that it uses");
    expect_fact(f, "perf events", ASYM_FACT_GOOD, "any process");
    assert_true(asym_facts_may_steer(&f->root));
    tree_write(&f->tree, "proc/self/ns/user", "x"); /* its inode is not that of the initial namespace */
    expect_fact(f, "capabilities", ASYM_FACT_LACK, "count only inside it");
    expect_fact(f, "perf events", ASYM_FACT_NOTE, "needs CAP_PERFMON");
    assert_false(asym_facts_may_steer(&f->root));
}

TEST_F(facts_name_what_is_there)
{
    const struct tree *t = &f->tree;
    tree_write(t, "proc/sys/kernel/osrelease", "6.1.0-13-amd64\n");
    tree_write_cpu(t, 0, "cpufreq/scaling_driver", "intel_pstate\n");
    tree_write_cpu(t, 0, "cpufreq/scaling_governor", "powersave\n");
    tree_write(t, "sys/devices/system/cpu/intel_pstate/status", "active\n");
    tree_write(t, "sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    tree_write(t, "proc/1/schedstat", "1 2 3\n");
    tree_write(t, "proc/sys/kernel/perf_event_paranoid", "4\n");
    tree_write(t, "sys/bus/event_source/devices/cpu_core/cpus", "0-3\n");
    tree_write(t, "sys/bus/event_source/devices/cpu_core/type", "4\n");
    tree_write(t, "sys/bus/event_source/devices/cpu_atom/cpus", "4-7\n");
    tree_write(t, "sys/bus/event_source/devices/cpu_atom/type", "10\n");
    tree_write(t, "sys/kernel/btf/vmlinux", "x");
    tree_write(t, "proc/sys/kernel/sched_autogroup_enabled", "1\n");
    expect_fact(f, "kernel", ASYM_FACT_NOTE, "6.1.0-13-amd64: any change of a cpuset");
    expect_fact(f, "cpufreq", ASYM_FACT_GOOD, "driver intel_pstate (active), governor powersave");
    expect_fact(f, "boost", ASYM_FACT_NOTE, "on");
    expect_fact(f, "schedstat", ASYM_FACT_GOOD, "each thread");
    expect_fact(f, "perf events", ASYM_FACT_NOTE, "perf_event_paranoid is 4");
    expect_fact(f, "counters", ASYM_FACT_GOOD, "cpu_core, cpu_atom");
    expect_fact(f, "bpf", ASYM_FACT_GOOD, "BPF");
    expect_fact(f, "autogroup", ASYM_FACT_NOTE, "inside a session");
}

TEST_F(cgroups_with_weights_of_their_own_are_counted)
{
    const struct tree *t = &f->tree;
    tree_write(t, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
    expect_fact(f, "cgroups", ASYM_FACT_GOOD, "version 2, none has the cpu controller");
    tree_write(t, "sys/fs/cgroup/system.slice/cpu.weight", "100\n");
    tree_write(t, "sys/fs/cgroup/system.slice/a.service/cpu.weight", "300\n");
    tree_write(t, "sys/fs/cgroup/user.slice/cpu.weight", "50\n");
    tree_write(t, "sys/fs/cgroup/user.slice/u/cgroup.procs", "1\n");
    expect_fact(f, "cgroups", ASYM_FACT_NOTE,
                "version 2, the cpu controller divides the CPUs between 3 cgroups (2 with");
}

/* Looks at so many processes and control groups at once. Returns how many times. */
static unsigned find_rivals(const struct tree_root *f, unsigned at_once, bool with_pids, struct found *ret)
{
    struct asym_rivals *rivals = asym_rivals_new();
    unsigned n = 1;
    assert_non_null(rivals);
    while (!asym_rivals_look(rivals, &f->root, at_once))
        n++;
    asym_rivals_each(rivals, with_pids, find, ret);
    asym_rivals_free(rivals);
    return n;
}

TEST_F(rivals_are_named_with_what_follows)
{
    static const struct {
        const char *name, *file, *text, *says;
    } rows[] = {
        {"sched_ext", "sys/kernel/sched_ext/root/ops", "lavd_1.0.6\n", "lavd_1.0.6: this sched_ext scheduler places"},
        {"intel_lpmd", "proc/31/comm", "intel_lpmd\n", "process 31: confines threads to slow CPUs"},
        {"gamemode", "proc/32/comm", "gamemoded\n", "process 32: renices games"},
        {"ananicy", "proc/33/comm", "ananicy\n", "process 33: renices programs"},
        {"ananicy-cpp", "proc/34/comm", "ananicy-cpp\n", "process 34: renices programs"},
        {"numad", "proc/35/comm", "numad\n", "process 35: binds processes to NUMA nodes"},
        {"system76-scheduler", "proc/36/comm", "system76-schedu\n", "process 36: renices the program"},
        {"tuned", "proc/37/comm", "tuned\n", "process 37: may set affinities"},
        {"uclamp", "sys/fs/cgroup/a.slice/b.service/cpu.uclamp.min", "20.00\n", "/a.slice/b.service: raises"},
        {"cpuset", "sys/fs/cgroup/a.slice/cpuset.cpus", "0-3\n", "/a.slice: has CPUs of its own"},
    };
    /* None of these is one. */
    tree_write(&f->tree, "proc/30/comm", "irqbalance\n");
    tree_write(&f->tree, "proc/sys/comm", "numad\n");
    tree_write(&f->tree, "sys/fs/cgroup/cpuset.cpus", "0-3\n");
    tree_write(&f->tree, "sys/fs/cgroup/z.slice/cpuset.cpus", "\n");
    tree_write(&f->tree, "sys/fs/cgroup/z.slice/cpu.uclamp.min", "0.00\n");
    tree_write(&f->tree, "sys/fs/cgroup/z.slice/cpu.uclamp.max", "max\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct found none = {.name = rows[i].name}, found = none, public = none;
        find_rivals(f, 1000, true, &none);
        assert_int_equal(none.n, i);
        tree_write(&f->tree, rows[i].file, "%s", rows[i].text);
        find_rivals(f, 1, true, &found);
        if (strncmp(found.fact.text, rows[i].says, strlen(rows[i].says)) != 0)
            fail_msg("%s: %s", rows[i].name, found.fact.text);
        /* A user whom hidepid keeps from seeing the process can read that it runs, but not its PID. */
        const char *effect = strchr(rows[i].says, ':') + 2;
        find_rivals(f, 1000, false, &public);
        if (strncmp(rows[i].says, "process ", 8) == 0 && strncmp(public.fact.text, effect, strlen(effect)) != 0)
            fail_msg("%s: %s", rows[i].name, public.fact.text);
    }
}

TEST_F(a_look_for_rivals_is_done_in_parts)
{
    struct found found = {.name = "none of this name"};
    char path[64];
    for (int i = 0; i < 30; i++) {
        snprintf(path, sizeof path, "proc/%d/comm", 100 + i);
        tree_write(&f->tree, path, "numad\n");
        snprintf(path, sizeof path, "sys/fs/cgroup/a%d.slice/b.service/cpuset.cpus", i);
        tree_write(&f->tree, path, "0\n");
    }
    /* 30 processes, 60 control groups, the end of 31 directories that have some and of 30 that have none */
    assert_in_range(find_rivals(f, 1, true, &found), 30 + 60, 30 + 60 + 31 + 30 + 1);
    assert_int_equal(found.n, 2);
    assert_in_range(find_rivals(f, 20, true, &found), 5, 8);
    /* one that has not ended */
    struct asym_rivals *rivals = asym_rivals_new();
    assert_false(asym_rivals_look(rivals, &f->root, 40));
    asym_rivals_free(rivals);
}

TEST_F(cgroups_of_version_1_are_counted)
{
    const struct tree *t = &f->tree;
    tree_write(t, "proc/mounts", "cgroup /cgroup/cpu cgroup rw,relatime,cpuacct,cpu 0 0\n");
    tree_write(t, "cgroup/cpu/cpu.shares", "1024\n");
    expect_fact(f, "cgroups", ASYM_FACT_GOOD, "version 1, none has the cpu controller");
    tree_write(t, "cgroup/cpu/docker/cpu.shares", "512\n");
    expect_fact(f, "cgroups", ASYM_FACT_NOTE,
                "version 1, the cpu controller divides the CPUs between 1 cgroups (1 with");
}

TEST_F(hidepid_is_seen_in_the_mount_that_counts)
{
    static const struct {
        const char *mounts;
        enum asym_fact_level level;
        const char *text;
    } rows[] = {
        {"proc /proc proc rw,relatime 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,hidepid=0 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,hidepid=off,gid=5 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,nohidepid=2 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc hidepid=noaccess,subset=pid 0 0\n", ASYM_FACT_LACK, "hidepid=noaccess:"},
        {"tmpfs /proc tmpfs rw,hidepid=2 0 0\n", ASYM_FACT_LACK, NULL}, /* not known: there is no such fact */
        {"proc /proc proc rw,hidepid=invisible,gid=5 0 0\n", ASYM_FACT_LACK, "hidepid=invisible:"},
        {"sysfs /sys sysfs rw 0 0\nproc /proc proc rw,hidepid=2 0 0\n", ASYM_FACT_LACK, "hidepid=2:"},
        {"proc /srv/proc proc rw,hidepid=2 0 0\n", ASYM_FACT_LACK, NULL},
        {"proc /proc proc rw,hidepid=2 0 0\nproc /proc proc rw 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,hidepid=\x1b[31m 0 0\n", ASYM_FACT_LACK, "hidepid=\\x1b[31m:"},
        {"", ASYM_FACT_LACK, NULL},
    };
    struct asym_fact got;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_write(&f->tree, "proc/mounts", "%s", rows[i].mounts);
        if (rows[i].text)
            expect_fact(f, "hidepid", rows[i].level, rows[i].text);
        else
            assert_false(fact(&f->root, "hidepid", &got));
    }
}

TEST_F(bad_files_of_facts_are_distinguished_from_numbers)
{
    static const unsigned char junk[] = {0xff, 0, 'x', '\n', 0x1b, '['};
    static const char *const files[] = {"proc/sys/kernel/osrelease",
                                        "proc/sys/kernel/perf_event_paranoid",
                                        "proc/sys/kernel/sched_autogroup_enabled",
                                        "proc/mounts",
                                        "proc/1/schedstat",
                                        "sys/fs/cgroup/cgroup.controllers",
                                        "sys/fs/cgroup/a/cpu.weight",
                                        "sys/devices/system/cpu/cpufreq/boost",
                                        "sys/bus/event_source/devices/cpu/type",
                                        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"};
    static char big[200000];
    memset(big, '9', sizeof big);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof files / sizeof *files; i++)
            tree_write_bytes(&f->tree, files[i], round == 2 ? (const void *)big : junk,
                             round == 0   ? sizeof junk
                             : round == 1 ? 0
                                          : sizeof big);
        struct found all = {.name = "none of this name"};
        struct asym_fact got;
        assert_int_equal(asym_facts_each(&f->root, find, &all), 0);
        assert_false(fact(&f->root, "boost", &got));
        assert_false(fact(&f->root, "schedstat", &got));
        assert_false(fact(&f->root, "hidepid", &got));
    }
}

TEST_MAIN
