/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Perf counters over a table of system calls that the test answers, and the arithmetic of groups. */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>

#include "linux/perf/counters-internal.h"
#include "linux/perf/counters.h"
#include "support/limit-files.h"
#include "support/tree.h"
#include "support/test.h"

enum { FDS = 64, FIRST_FD = 1000, BASE = 100 };

struct event {
    bool open;
    struct perf_event_attr attr;
    pid_t tid;
    int leader;
    bool enabled;
};

struct kernel {
    struct event events[FDS];
    unsigned n_open, opened;
    /* The calls that the kernel refuses. */
    int refuse;              /* error of every call; 0: none */
    bool no_kernel;          /* -EACCES without exclude_kernel */
    unsigned lacks, no_room; /* bits of hardware configs: lacks gives -ENOENT, no_room -EINVAL as a group member */
    unsigned most;           /* -EMFILE above this number */
    int32_t dead;            /* -ESRCH for this tid */
    /* The values that the group of PMU type t reads; [0] is for a single PMU. */
    struct {
        uint64_t enabled, running, add; /* values are 100 * config + add */
    } pmu[16];
    bool garbage;
    int no_enable;
};

struct fixture {
    struct tree tree;
    struct asym_root root;
    struct kernel k;
    struct asym_counters_calls calls;
    struct asym_counters *c; /* NULL: none is open */
};

static int refusal(const struct kernel *k, const struct perf_event_attr *attr, pid_t tid, int group_fd)
{
    if (k->refuse)
        return k->refuse;
    if (tid == k->dead)
        return -ESRCH;
    if (k->no_kernel && !attr->exclude_kernel)
        return -EACCES;
    if (k->most && k->n_open == k->most)
        return -EMFILE;
    if (k->lacks >> (attr->config & 31) & 1)
        return -ENOENT;
    return group_fd >= 0 && k->no_room >> (attr->config & 31) & 1 ? -EINVAL : 0;
}

static int fake_open(void *ctx, struct perf_event_attr *attr, pid_t tid, int group_fd)
{
    struct kernel *k = ctx;
    int r = refusal(k, attr, tid, group_fd), i = 0;
    if (r < 0)
        return r;
    assert_true(attr->size >= PERF_ATTR_SIZE_VER5);
    assert_int_equal(attr->read_format,
                     PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    assert_true(group_fd < 0 || k->events[group_fd - FIRST_FD].open);
    while (k->events[i].open)
        i++;
    k->events[i] = (struct event){true, *attr, tid, group_fd < 0 ? FIRST_FD + i : group_fd, !attr->disabled};
    k->n_open++;
    k->opened++;
    return FIRST_FD + i;
}

static int fake_enable(void *ctx, int leader_fd)
{
    struct kernel *k = ctx;
    struct event *e = &k->events[leader_fd - FIRST_FD];
    assert_true(e->open && e->leader == leader_fd);
    e->enabled = true;
    return k->no_enable;
}

static ssize_t fake_read(void *ctx, int fd, void *buf, size_t size)
{
    const struct kernel *k = ctx;
    const struct event *leader = &k->events[fd - FIRST_FD];
    const uint64_t type = leader->attr.config >> 32;
    uint64_t words[16] = {0, k->pmu[type].enabled, k->pmu[type].running};
    assert_true(leader->open && leader->leader == fd);
    for (int i = 0; i < FDS; i++)
        if (k->events[i].open && k->events[i].leader == fd)
            words[3 + words[0]++] = BASE * (k->events[i].attr.config & 31) + k->pmu[type].add;
    size_t len = (3 + words[0]) * sizeof *words;
    assert_true(len <= size);
    memcpy(buf, words, len);
    return k->garbage ? 0 : (ssize_t)len;
}

static void fake_close(void *ctx, int fd)
{
    struct kernel *k = ctx;
    assert_true(k->events[fd - FIRST_FD].open);
    k->events[fd - FIRST_FD].open = false;
    k->n_open--;
}

static int fake_alive(void *ctx, const struct asym_taskid *id)
{
    const struct kernel *k = ctx;
    return id->tid == k->dead ? -ESRCH : 0;
}

static void set_up(struct fixture *f)
{
    f->calls = (struct asym_counters_calls){.ctx = &f->k,
                                            .open = fake_open,
                                            .enable = fake_enable,
                                            .read = fake_read,
                                            .close = fake_close,
                                            .alive = fake_alive};
    tree_make(&f->tree);
    tree_machine(&f->tree, "0-3", "0-3");
    assert_int_equal(asym_root_open(f->tree.path, &f->root, NULL), 0);
}

static void tear_down(struct fixture *f)
{
    if (f->c)
        f->c->close(f->c);
    asym_root_done(&f->root);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

static void plain_pmu(const struct fixture *f)
{
    tree_write(&f->tree, "sys/bus/event_source/devices/cpu/type", "4\n");
    tree_write(&f->tree, "sys/bus/event_source/devices/software/type", "1\n");
    tree_write(&f->tree, "sys/bus/event_source/devices/uncore_imc/cpumask", "0\n");
}

static void hybrid_pmus(const struct fixture *f)
{
    tree_write(&f->tree, "sys/devices/cpu_core/type", "4\n");
    tree_write(&f->tree, "sys/devices/cpu_core/cpus", "0-1\n");
    tree_write(&f->tree, "sys/devices/cpu_atom/type", "10\n");
    tree_write(&f->tree, "sys/devices/cpu_atom/cpus", "2-3\n");
    tree_mkdir(&f->tree, "sys/bus/event_source/devices");
    tree_link(&f->tree, "sys/bus/event_source/devices/cpu_core", "../../../devices/cpu_core");
    tree_link(&f->tree, "sys/bus/event_source/devices/cpu_atom", "../../../devices/cpu_atom");
}

static struct asym_counters *counters_of(struct fixture *f, unsigned max_fds)
{
    const struct asym_counters_config config = {.root = &f->root, .max_fds = max_fds, .calls = &f->calls};
    assert_int_equal(asym_counters_new(&config, &f->c, NULL), 0);
    return f->c;
}

static struct asym_taskid thread(int32_t tid)
{
    return (struct asym_taskid){.tid = tid, .tgid = tid, .start = 7};
}

static const struct asym_taskid id = {.tid = 42, .tgid = 42, .start = 7}, next = {.tid = 43, .tgid = 43, .start = 7};

/* -- groups -- */

TEST(a_group_read_is_taken_apart_and_nothing_else_is)
{
    const uint64_t good[] = {2, 10, 5, 111, 222};
    struct asym_group_read g = {.n = 77};
    assert_int_equal(asym_group_parse(good, sizeof good, 2, &g), 0);
    assert_true(g.n == 2 && g.enabled == 10 && g.running == 5 && g.value[0] == 111 && g.value[1] == 222);
    g.n = 77;
    for (size_t len = 0; len < sizeof good; len++)
        assert_int_equal(asym_group_parse(good, len, 2, &g), -EIO);
    assert_int_equal(asym_group_parse(good, sizeof good, 1, &g), -EIO);
    assert_int_equal(asym_group_parse(good, sizeof good, 3, &g), -EIO);
    assert_int_equal(asym_group_parse(good, sizeof good, UINT32_MAX, &g), -EIO);
    const uint64_t other[] = {3, 10, 5, 111, 222};
    assert_int_equal(asym_group_parse(other, sizeof other, 2, &g), -EIO);
    assert_int_equal(g.n, 77);
}

TEST(scaling_is_exact_and_never_overflows)
{
    static const struct {
        uint64_t value, enabled, running, scaled;
    } rows[] = {
        {100, 10, 10, 100},
        {100, 10, 5, 200},
        {100, 10, 11, 100},
        {0, 10, 1, 0},
        {7, 3, 2, 10},
        {UINT64_C(1) << 60, 4000000000, 1000000000, UINT64_C(1) << 62},
        {UINT64_MAX, 2, 1, UINT64_MAX},
        {UINT64_MAX, UINT64_MAX, 1, UINT64_MAX},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX},
        {1000, 0, 0, 1000},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        assert_true(asym_group_scale(rows[i].value, rows[i].enabled, rows[i].running) == rows[i].scaled);
}

static void step(struct asym_group_sum *s, uint64_t enabled, uint64_t running, uint64_t value)
{
    const struct asym_group_read g = {.n = 1, .enabled = enabled, .running = running, .value = {value}};
    asym_group_advance(s, &g, 1, 1);
}

TEST(each_interval_is_scaled_by_its_own_share_and_no_figure_goes_down)
{
    struct asym_group_sum s = {0};
    step(&s, 0, 0, 0);
    assert_true(s.value[0] == 0 && s.share > 0.999);
    step(&s, 100, 25, 100); /* it ran for a quarter: 400 */
    assert_true(s.value[0] == 400 && s.share > 0.249 && s.share < 0.251);
    step(&s, 200, 125, 200); /* then for all of the interval: 100 more; 200 * 200 / 125 = 320 would go down */
    assert_true(s.value[0] == 500 && s.share > 0.999);
    step(&s, 300, 125, 200); /* not at all: the count is unknown for now */
    assert_true(s.value[0] == 500 && s.share < 0.001 && s.on_cpu == 300);
    step(&s, 400, 225, 400); /* half of 200: 400 for both intervals */
    assert_true(s.value[0] == 900 && s.share > 0.499 && s.share < 0.501);
    step(&s, 400, 225, 400); /* asleep */
    assert_true(s.value[0] == 900 && s.share > 0.999);
    step(&s, 300, 200, 100); /* values that a kernel should never return */
    assert_true(s.value[0] == 900 && s.on_cpu == 400);
}

TEST(of_two_kinds_of_cores_the_times_run_add_up)
{
    struct asym_group_sum s = {0};
    /* 60 on one PMU and 40 on the other, both always enabled and not multiplexed: no value needs scaling. */
    struct asym_group_read g[2] = {{.n = 1, .enabled = 100, .running = 60, .value = {600}},
                                   {.n = 1, .enabled = 100, .running = 40, .value = {200}}};
    asym_group_advance(&s, g, 2, 1);
    assert_true(s.value[0] == 800 && s.share > 0.999 && s.on_cpu == 100);
    /* Some kernels enable a group on its own cores only. */
    s = (struct asym_group_sum){0};
    g[0].enabled = 60;
    g[1].enabled = 40;
    asym_group_advance(&s, g, 2, 1);
    assert_true(s.value[0] == 800 && s.share > 0.999 && s.on_cpu == 100);
    /* Both are multiplexed with other groups: they counted for half of the time. */
    s = (struct asym_group_sum){0};
    g[0] = (struct asym_group_read){.n = 1, .enabled = 100, .running = 30, .value = {300}};
    g[1] = (struct asym_group_read){.n = 1, .enabled = 100, .running = 20, .value = {100}};
    asym_group_advance(&s, g, 2, 1);
    assert_true(s.value[0] == 800 && s.share > 0.499 && s.share < 0.501);
}

/* -- live counters, over the test's system calls -- */

TEST_F(one_group_counts_a_thread)
{
    plain_pmu(f);
    struct asym_counters *c = counters_of(f, 100);
    struct asym_counts counts;
    assert_int_equal(f->k.opened, 0);
    assert_int_equal(c->read(c, &id, &counts), -ENOENT);
    assert_int_equal(c->unwatch(c, &id), -ENOENT);
    assert_int_equal(c->watch(c, &id), 0);
    assert_int_equal(c->watch(c, &id), 0);
    assert_int_equal(f->k.opened, 3);
    for (int i = 0; i < 3; i++) {
        const struct event *e = &f->k.events[i];
        assert_true(e->tid == 42 && e->leader == FIRST_FD && e->attr.type == PERF_TYPE_HARDWARE);
        assert_true(!e->attr.inherit && e->enabled && e->attr.disabled == (i == 0) && !e->attr.exclude_kernel &&
                    !e->attr.pinned);
    }
    assert_int_equal(f->k.events[0].attr.config, PERF_COUNT_HW_INSTRUCTIONS);
    f->k.pmu[0].enabled = 1000;
    f->k.pmu[0].running = 500;
    assert_int_equal(c->read(c, &id, &counts), 0);
    assert_int_equal(counts.valid, 0x7);
    assert_true(counts.value[ASYM_COUNTER_INSTRUCTIONS] == 2 * BASE * PERF_COUNT_HW_INSTRUCTIONS);
    assert_true(counts.value[ASYM_COUNTER_CYCLES] == 2 * BASE * PERF_COUNT_HW_CPU_CYCLES);
    assert_true(counts.value[ASYM_COUNTER_LLC_MISSES] == 2 * BASE * PERF_COUNT_HW_CACHE_MISSES);
    assert_true(counts.running_share > 0.499 && counts.running_share < 0.501 && counts.on_cpu_ns == 1000);
    assert_int_equal(c->unwatch(c, &id), 0);
    assert_int_equal(f->k.n_open, 0);
    assert_int_equal(c->watch(c, &id), 0);
    c->close(c);
    f->c = NULL;
    assert_int_equal(f->k.n_open, 0);
}

TEST_F(hybrids_have_a_group_for_each_kind_of_core)
{
    hybrid_pmus(f);
    struct asym_counters *c = counters_of(f, 100);
    struct asym_counts counts;
    assert_int_equal(c->watch(c, &id), 0);
    assert_int_equal(f->k.n_open, 6);
    assert_true(f->k.events[0].attr.config >> 32 == 4 && f->k.events[3].attr.config >> 32 == 10);
    assert_true(f->k.events[0].enabled && f->k.events[3].enabled);
    f->k.pmu[4].enabled = f->k.pmu[10].enabled = 100;
    f->k.pmu[4].running = 70;
    f->k.pmu[10].running = 30;
    assert_int_equal(c->read(c, &id, &counts), 0);
    assert_true(counts.value[ASYM_COUNTER_INSTRUCTIONS] == 2 * BASE && counts.on_cpu_ns == 100);
    assert_true(counts.running_share > 0.999);
    c->close(c);
    f->c = NULL;
    assert_int_equal(f->k.n_open, 0);
}

TEST_F(what_the_pmu_lacks_is_not_valid_and_the_rest_is)
{
    plain_pmu(f);
    f->k.lacks = 1u << PERF_COUNT_HW_CACHE_MISSES;
    f->k.no_room = 1u << PERF_COUNT_HW_CPU_CYCLES;
    f->k.pmu[0].enabled = f->k.pmu[0].running = 10;
    struct asym_counters *c = counters_of(f, 100);
    struct asym_counts counts;
    assert_int_equal(c->watch(c, &id), 0);
    assert_int_equal(f->k.n_open, 1);
    assert_int_equal(c->read(c, &id, &counts), 0);
    assert_int_equal(counts.valid, 1u << ASYM_COUNTER_INSTRUCTIONS);
    assert_true(counts.value[ASYM_COUNTER_INSTRUCTIONS] == BASE * PERF_COUNT_HW_INSTRUCTIONS);
    assert_true(counts.value[ASYM_COUNTER_LLC_MISSES] == 0 && counts.value[ASYM_COUNTER_CYCLES] == 0);
}

TEST_F(a_group_that_never_ran_has_no_figures)
{
    plain_pmu(f);
    struct asym_counters *c = counters_of(f, 100);
    struct asym_counts counts;
    assert_int_equal(c->watch(c, &id), 0);
    f->k.pmu[0].enabled = 10;
    assert_int_equal(c->read(c, &id, &counts), 0);
    assert_true(counts.valid == 0 && counts.value[0] == 0 && counts.running_share < 0.001 && counts.on_cpu_ns == 10);
    f->k.garbage = true;
    counts.valid = 99;
    assert_int_equal(c->read(c, &id, &counts), -EIO);
    assert_int_equal(counts.valid, 99);
}

TEST_F(a_thread_that_dies_is_reported_and_its_slot_is_free)
{
    plain_pmu(f);
    struct asym_counters *c = counters_of(f, 3);
    struct asym_counts counts = {.valid = 99};
    assert_int_equal(c->watch(c, &id), 0);
    f->k.dead = 42;
    assert_int_equal(c->read(c, &id, &counts), -ESRCH);
    assert_int_equal(counts.valid, 99);
    assert_int_equal(f->k.n_open, 0);
    assert_int_equal(c->read(c, &id, &counts), -ENOENT);
    assert_int_equal(c->watch(c, &id), -ESRCH);
    assert_int_equal(c->watch(c, &next), 0);
    /* The same tid, but another thread. */
    f->k.dead = 0;
    const struct asym_taskid other = {.tid = 43, .tgid = 43, .start = 8};
    assert_int_equal(c->read(c, &other, &counts), -ENOENT);
}

TEST_F(the_budget_is_kept_and_distinguished_from_the_limits_of_the_process)
{
    plain_pmu(f);
    struct asym_counters *c = counters_of(f, 8);
    const struct asym_taskid ids[] = {thread(1), thread(2), thread(3)};
    assert_int_equal(c->watch(c, &ids[0]), 0);
    assert_int_equal(c->watch(c, &ids[1]), 0);
    assert_int_equal(c->watch(c, &ids[2]), -EDQUOT);
    assert_int_equal(f->k.n_open, 6);
    assert_int_equal(c->watch(c, &ids[1]), 0);
    assert_int_equal(c->unwatch(c, &ids[0]), 0);
    f->k.most = 5;
    assert_int_equal(c->watch(c, &ids[2]), -EMFILE);
    assert_int_equal(f->k.n_open, 3); /* no group stays half open */
    f->k.most = 0;
    assert_int_equal(c->watch(c, &ids[2]), 0);
}

TEST_F(every_refusal_is_handed_on)
{
    static const int errors[] = {-EACCES, -EPERM, -ENOENT, -ENODEV, -EOPNOTSUPP, -EMFILE, -ENFILE, -ENOMEM, -ENOSYS};
    plain_pmu(f);
    struct asym_counters *c = counters_of(f, 100);
    struct asym_counts counts;
    for (size_t i = 0; i < ASYM_LENGTH(errors); i++) {
        f->k.refuse = errors[i];
        assert_int_equal(c->watch(c, &id), errors[i]);
        assert_int_equal(c->read(c, &id, &counts), -ENOENT);
        assert_int_equal(f->k.n_open, 0);
    }
    f->k.refuse = 0;
    f->k.no_enable = -EIO;
    assert_int_equal(c->watch(c, &id), -EIO);
    assert_int_equal(f->k.n_open, 0);
    f->k.no_enable = 0;
    assert_int_equal(c->watch(c, &id), 0);
    assert_false(f->k.events[0].attr.exclude_kernel); /* no refusal has made it count user space only */
}

TEST_F(without_the_right_to_count_the_kernel_user_space_is_counted)
{
    plain_pmu(f);
    f->k.no_kernel = true;
    struct asym_counters *c = counters_of(f, 100);
    assert_int_equal(c->watch(c, &id), 0);
    for (int i = 0; i < 3; i++)
        assert_true(f->k.events[i].attr.exclude_kernel);
    f->k.no_kernel = false; /* one refusal holds for all threads, so that their figures compare */
    assert_int_equal(c->watch(c, &next), 0);
    assert_true(f->k.events[3].attr.exclude_kernel);
}

TEST_F(a_tree_is_counted_from_exec_on_and_read_after_its_end)
{
    plain_pmu(f);
    const struct asym_counters_config config = {.root = &f->root, .max_fds = 100, .tree = true, .calls = &f->calls};
    struct asym_counts counts;
    assert_int_equal(asym_counters_new(&config, &f->c, NULL), 0);
    assert_int_equal(f->c->watch(f->c, &id), 0);
    assert_false(f->k.events[0].enabled);
    for (int i = 0; i < 3; i++) {
        const struct perf_event_attr *attr = &f->k.events[i].attr;
        assert_true(attr->inherit && attr->disabled == (i == 0) && attr->enable_on_exec == (i == 0));
    }
    f->k.dead = 42;
    assert_int_equal(f->c->read(f->c, &id, &counts), 0);
    assert_int_equal(f->c->unwatch(f->c, &id), 0);
}

TEST_F(without_a_pmu_there_is_a_reason_in_words)
{
    const struct asym_counters_config config = {.root = &f->root, .max_fds = 100, .calls = &f->calls};
    struct asym_counters *c = NULL;
    struct asym_error err = {""};
    assert_int_equal(asym_counters_new(&config, &c, &err), -ENODEV);
    assert_null(c);
    assert_non_null(strstr(err.text, "no PMU"));
    tree_write(&f->tree, "sys/bus/event_source/devices/software/type", "1\n");
    assert_int_equal(asym_counters_new(&config, &c, &err), -ENODEV);
    /* A CPU without a type cannot count. */
    hybrid_pmus(f);
    tree_write(&f->tree, "sys/devices/cpu_atom/type", "nonsense\n");
    tree_write(&f->tree, "sys/devices/cpu_core/type", "0\n");
    assert_int_equal(asym_counters_new(&config, &c, &err), -ENODEV);
}

/* -- the probe -- */

TEST_F(the_probe_distinguishes_each_refusal_in_words)
{
    static const struct {
        int error;
        const char *text, *remedy;
    } rows[] = {
        {-EACCES, "perf_event_paranoid", "CAP_PERFMON"},
        {-EPERM, "filter of system calls", "perf_event_open"},
        {-ENOENT, "counts no instructions", "virtual machine"},
        {-ENODEV, "no PMU", "pmu=on"},
        {-EOPNOTSUPP, "refuses to count", "virtual machine"},
        {-EMFILE, "this process", "LimitNOFILE"},
        {-ENFILE, "the system", "fs.file-max"},
        {-ENOSYS, "no performance events", "CONFIG_PERF_EVENTS"},
        {-EINVAL, "one kind of core", "newer kernel"},
        {-EIO, "the kernel refuses", ""},
    };
    struct asym_counters_coverage s;
    plain_pmu(f);
    f->root.live = true;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        f->k.refuse = rows[i].error;
        asym_counters_probe(&f->root, &f->calls, &s);
        assert_int_equal(s.error, rows[i].error);
        assert_non_null(strstr(s.text, rows[i].text));
        assert_non_null(strstr(s.remedy, rows[i].remedy));
        assert_true(s.counters == 0 && strlen(s.text) < sizeof s.text - 1);
    }
    assert_int_equal(f->k.n_open, 0);
}

TEST_F(the_probe_reports_what_can_be_counted)
{
    struct asym_counters_coverage s;
    hybrid_pmus(f);
    asym_counters_probe(&f->root, &f->calls, &s); /* a captured machine has files only */
    assert_int_equal(f->k.opened, 0);
    assert_string_equal(s.text, "counters of instructions and cycles: cpu_core, cpu_atom");
    f->root.live = true;
    f->k.no_kernel = true;
    f->k.lacks = 1u << PERF_COUNT_HW_CACHE_MISSES;
    asym_counters_probe(&f->root, &f->calls, &s);
    assert_int_equal(s.error, 0);
    assert_true(s.user_only);
    assert_int_equal(s.counters, 3);
    assert_string_equal(s.text, "cpu_core, cpu_atom: instructions, cycles, in user space only");
    assert_non_null(strstr(s.remedy, "CAP_PERFMON"));
    f->k.pmu[4].enabled = 10; /* the event opens, but gets no hardware counter */
    asym_counters_probe(&f->root, &f->calls, &s);
    assert_non_null(strstr(s.text, "do not count"));
    assert_int_equal(f->k.n_open, 0);
}

/* A machine that has PMUs must not seem to have none because this process may open no further file. */
TEST_F(want_of_descriptors_is_no_lack_of_a_pmu)
{
    void (*const machines[])(const struct fixture *) = {plain_pmu, hybrid_pmus};
    struct asym_pmu pmus[ASYM_COUNTERS_PMUS];
    for (size_t i = 0; i < ASYM_LENGTH(machines); i++) {
        machines[i](f);
        assert_true(asym_counters_pmus(&f->root, pmus) > 0);
        const int free_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(free_fd >= 0 && close(free_fd) == 0);
        int r[2];
        for (rlim_t n = 0; n < 2; n++) {
            const rlim_t before = limit_descriptors((rlim_t)free_fd + n);
            r[n] = asym_counters_pmus(&f->root, pmus);
            limit_descriptors(before);
        }
        assert_int_equal(r[0], -EMFILE);
        assert_int_equal(r[1], -EMFILE);
    }
}

/* -- encodings -- */

TEST(events_are_what_the_kernel_calls_them)
{
    static const struct {
        enum asym_counter counter;
        uint32_t type;
        uint64_t config;
    } rows[] = {
        {ASYM_COUNTER_INSTRUCTIONS, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
        {ASYM_COUNTER_CYCLES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
        {ASYM_COUNTER_LLC_MISSES, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
        {ASYM_COUNTER_TASK_CLOCK, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
        {ASYM_COUNTER_SWITCHES, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
        {ASYM_COUNTER_FAULTS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    };
    const struct asym_pmu hybrid = {.name = "cpu_atom", .type = 10};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct perf_event_attr attr;
        const uint64_t kind = rows[i].type == PERF_TYPE_HARDWARE ? (uint64_t)10 << 32 : 0;
        assert_int_equal(asym_counters_encode(rows[i].counter, &hybrid, &attr), 0);
        assert_true(attr.type == rows[i].type && attr.config == (rows[i].config | kind));
        assert_true(!attr.exclude_user && !attr.exclude_kernel);
        assert_string_not_equal(asym_counter_name(rows[i].counter), "unknown");
    }
}

/* The timer ends a call that would wait forever; afterwards handler and signal mask are as before. */
TEST(a_call_that_waits_is_interrupted)
{
    int fds[2];
    char byte;
    struct asym_syscall_timeout t;
    struct sigaction before, after;
    sigset_t mask;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(sigaction(SIGALRM, NULL, &before), 0);
    /* The service blocks signals, too. */
    sigfillset(&mask);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(asym_syscall_timeout_begin(&t, 5 * ASYM_MSEC), 0);
        assert_int_equal(read(fds[0], &byte, 1), -1);
        asym_syscall_timeout_end(&t);
        assert_int_equal(errno, EINTR);
    }
    assert_int_equal(sigaction(SIGALRM, NULL, &after), 0);
    assert_ptr_equal(before.sa_handler, after.sa_handler);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGALRM), 1);
    asym_syscall_timeout_end(&t);
    close(fds[0]);
    close(fds[1]);
}

static volatile sig_atomic_t n_signals;

static void count_signal(int number)
{
    n_signals++;
}

/* Nor is it by the timer of the real-time priority, whose signal comes after it. */
TEST(a_call_that_is_quick_is_not)
{
    int fds[2];
    struct asym_syscall_timeout t;
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    assert_int_equal(pipe(fds), 0);
    assert_true(signal(SIGRTMIN, count_signal) != SIG_ERR);
    assert_int_equal(asym_syscall_timeout_begin(&t, 10 * ASYM_SEC), 0);
    raise(SIGRTMIN);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(n_signals, 0);
    asym_syscall_timeout_end(&t);
    assert_int_equal(n_signals, 1);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    /* libpfm would detect the CPU of this machine: on Zen and on Arm, a native event replaces cache-misses. */
    if (setenv("LIBPFM_FORCE_PMU", "perf", 1) < 0)
        return EXIT_FAILURE;
    return test_run(NULL, NULL);
}
