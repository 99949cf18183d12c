/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading under one root descriptor, and the facts that --check prints. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "linux/facts.h"
#include "linux/root.h"
#include "support/tree.h"

struct fixture {
    struct tree tree;
    struct asym_root root;
};

static int set_up(void **state)
{
    static struct fixture f;
    tree_make(&f.tree);
    tree_write(&f.tree, "proc/stat", "cpu 1 2 3\n");
    tree_mkdir(&f.tree, "sys");
    if (asym_root_open(f.tree.path, &f.root, NULL) < 0)
        return -1;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    asym_root_done(&f->root);
    tree_remove(&f->tree);
    return 0;
}

static void root_null_and_slash_are_the_live_machine(void **state)
{
    (void)state;
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

static void captured_root_is_not_live(void **state)
{
    struct fixture *f = *state;
    char buf[64];
    assert_false(f->root.live);
    assert_int_equal(asym_root_read(&f->root, "proc/stat", buf, sizeof buf), 10);
    assert_string_equal(buf, "cpu 1 2 3\n");
    assert_int_equal(asym_root_read(&f->root, "proc/uptime", buf, sizeof buf), -ENOENT);
}

static void bad_root_without_proc_and_sys_is_refused_in_words(void **state)
{
    (void)state;
    struct tree t;
    struct asym_error err = {""};
    struct asym_root root = {.fd = 77};
    tree_make(&t);
    assert_int_equal(asym_root_open(t.path, &root, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, t.path));
    assert_non_null(strstr(err.text, "not a machine: no proc or sys directory in it"));
    assert_int_equal(root.fd, 77);
    tree_write(&t, "proc", "a file of that name\n");
    tree_link(&t, "sys", "/sys");
    assert_int_equal(asym_root_open(t.path, &root, &err), -ENOTDIR);
    tree_remove(&t);
}

static void bad_root_that_is_missing_or_a_file_is_refused_in_words(void **state)
{
    struct fixture *f = *state;
    char path[128];
    struct asym_error err = {""};
    struct asym_root root;
    assert_int_equal(asym_root_open("/nonexistent/root", &root, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/root: No such file"));
    snprintf(path, sizeof path, "%s/proc/stat", f->tree.path);
    assert_int_equal(asym_root_open(path, &root, &err), -ENOTDIR);
}

static void capture_with_sys_alone_is_accepted(void **state)
{
    (void)state;
    struct tree t;
    struct asym_root root;
    tree_make(&t);
    tree_mkdir(&t, "sys");
    assert_int_equal(asym_root_open(t.path, &root, NULL), 0);
    asym_root_done(&root);
    tree_remove(&t);
}

static void check_links(struct fixture *f)
{
    char buf[64];
    assert_int_equal(asym_root_read(&f->root, "sys/inside", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "sys/absolute", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "sys/dir/stat", buf, sizeof buf), 10);
    assert_int_equal(asym_root_read(&f->root, "sys/chain", buf, sizeof buf), 10);
    /* Above the root there is the root again, so this is the capture's own proc/stat, not ours. */
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

static void links_never_lead_out_of_a_captured_root(void **state)
{
    struct fixture *f = *state;
    make_links(&f->tree);
    check_links(f);
}

/* openat2 fails with this errno from now on, in this process. */
static void refuse_openat2(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = code};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void links_never_lead_out_where_openat2_is_not_to_be_had(void **state)
{
    struct fixture *f = *state;
    static const int errors[] = {ENOSYS, EPERM};
    make_links(&f->tree);
    for (size_t i = 0; i < 2; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            refuse_openat2(errors[i]);
            check_links(f); /* a failed assertion ends the child with another status */
            _exit(42);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 42);
    }
}

static void bad_file_that_is_a_fifo_or_a_directory_is_refused_without_waiting(void **state)
{
    struct fixture *f = *state;
    char path[128], buf[16];
    snprintf(path, sizeof path, "%s/proc/fifo", f->tree.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(asym_root_read(&f->root, "proc/fifo", buf, sizeof buf), -EINVAL);
    assert_int_equal(asym_root_read(&f->root, "proc", buf, sizeof buf), -EINVAL);
}

static void huge_file_is_read_as_far_as_the_buffer_goes(void **state)
{
    struct fixture *f = *state;
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

static void bad_permission_is_said(void **state)
{
    struct fixture *f = *state;
    char buf[16], path[128];
    tree_write(&f->tree, "proc/secret", "1\n");
    snprintf(path, sizeof path, "%s/proc/secret", f->tree.path);
    assert_int_equal(chmod(path, 0), 0);
    pid_t child = fork(); /* root may read anything: the child becomes somebody else */
    assert_true(child >= 0);
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

/* Facts. */

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

static void expect_fact(const struct fixture *f, const char *name, enum asym_fact_level level, const char *part)
{
    struct asym_fact got;
    if (!fact(&f->root, name, &got))
        fail_msg("no fact %s", name);
    if (got.level != level || !strstr(got.text, part))
        fail_msg("%s: level %d, text '%s'", name, (int)got.level, got.text);
    assert_true(level != ASYM_FACT_LACK || got.remedy[0]);
}

static void facts_of_the_live_machine_can_all_be_told(void **state)
{
    (void)state;
    struct asym_root root;
    struct found f = {.name = "none of this name"};
    struct asym_fact got;
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    assert_int_equal(asym_facts_each(&root, find, &f), 0);
    static const char *const always[] = {"kernel",    "cpufreq", "schedstat",     "counters",    "bpf",
                                         "autogroup", "hidepid", "pid namespace", "descriptors", "capabilities"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        assert_true(fact(&root, always[i], &got));
    assert_true(f.n >= (int)(sizeof always / sizeof *always));
    asym_root_done(&root);
}

static void facts_of_a_capture_say_nothing_of_files_left_out(void **state)
{
    struct fixture *f = *state;
    struct found all = {.name = "none of this name"};
    assert_int_equal(asym_facts_each(&f->root, find, &all), 0);
    assert_int_equal(all.n, 0);
}

static void facts_of_a_live_machine_name_what_it_lacks(void **state)
{
    struct fixture *f = *state;
    f->root.live = true; /* a live machine of which we know the files */
    expect_fact(f, "cpufreq", ASYM_FACT_LACK, "no driver");
    expect_fact(f, "schedstat", ASYM_FACT_LACK, "sampled");
    expect_fact(f, "counters", ASYM_FACT_LACK, "ipc");
    expect_fact(f, "bpf", ASYM_FACT_LACK, "sys/kernel/btf/vmlinux");
    expect_fact(f, "perf events", ASYM_FACT_LACK, "no performance events");
    expect_fact(f, "autogroup", ASYM_FACT_GOOD, "off");
}

static void facts_name_what_is_there(void **state)
{
    struct fixture *f = *state;
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

static void cgroups_with_weights_of_their_own_are_counted(void **state)
{
    struct fixture *f = *state;
    const struct tree *t = &f->tree;
    tree_write(t, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
    expect_fact(f, "cgroups", ASYM_FACT_GOOD, "version 2, no cgroup");
    tree_write(t, "sys/fs/cgroup/system.slice/cpu.weight", "100\n");
    tree_write(t, "sys/fs/cgroup/system.slice/a.service/cpu.weight", "300\n");
    tree_write(t, "sys/fs/cgroup/user.slice/cpu.weight", "50\n");
    tree_write(t, "sys/fs/cgroup/user.slice/u/cgroup.procs", "1\n");
    expect_fact(f, "cgroups", ASYM_FACT_NOTE,
                "version 2, the cpu controller divides the CPUs between 3 cgroups (2 with");
}

static void cgroups_of_version_1_are_counted(void **state)
{
    struct fixture *f = *state;
    const struct tree *t = &f->tree;
    tree_write(t, "sys/fs/cgroup/cpu/cpu.shares", "1024\n");
    expect_fact(f, "cgroups", ASYM_FACT_GOOD, "version 1, no cgroup");
    tree_write(t, "sys/fs/cgroup/cpu/docker/cpu.shares", "512\n");
    expect_fact(f, "cgroups", ASYM_FACT_NOTE,
                "version 1, the cpu controller divides the CPUs between 1 cgroups (1 with");
}

static void hidepid_is_seen_in_the_mount_that_counts(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *mounts;
        enum asym_fact_level level;
        const char *text;
    } rows[] = {
        {"proc /proc proc rw,relatime 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,hidepid=0 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,hidepid=invisible,gid=5 0 0\n", ASYM_FACT_LACK, "hidepid=invisible:"},
        {"sysfs /sys sysfs rw 0 0\nproc /proc proc rw,hidepid=2 0 0\n", ASYM_FACT_LACK, "hidepid=2:"},
        {"proc /srv/proc proc rw,hidepid=2 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,hidepid=2 0 0\nproc /proc proc rw 0 0\n", ASYM_FACT_GOOD, "off"},
        {"proc /proc proc rw,hidepid=\x1b[31m 0 0\n", ASYM_FACT_LACK, "hidepid=\\x1b[31m:"},
        {"", ASYM_FACT_GOOD, "off"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_write(&f->tree, "proc/mounts", "%s", rows[i].mounts);
        expect_fact(f, "hidepid", rows[i].level, rows[i].text);
    }
}

static void bad_files_of_facts_are_told_apart_from_numbers(void **state)
{
    struct fixture *f = *state;
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
        expect_fact(f, "hidepid", ASYM_FACT_GOOD, "off");
    }
}

#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_null_and_slash_are_the_live_machine),
        WITH_TREE(captured_root_is_not_live),
        cmocka_unit_test(bad_root_without_proc_and_sys_is_refused_in_words),
        WITH_TREE(bad_root_that_is_missing_or_a_file_is_refused_in_words),
        cmocka_unit_test(capture_with_sys_alone_is_accepted),
        WITH_TREE(links_never_lead_out_of_a_captured_root),
        WITH_TREE(links_never_lead_out_where_openat2_is_not_to_be_had),
        WITH_TREE(bad_file_that_is_a_fifo_or_a_directory_is_refused_without_waiting),
        WITH_TREE(huge_file_is_read_as_far_as_the_buffer_goes),
        WITH_TREE(bad_permission_is_said),
        cmocka_unit_test(facts_of_the_live_machine_can_all_be_told),
        WITH_TREE(facts_of_a_capture_say_nothing_of_files_left_out),
        WITH_TREE(facts_of_a_live_machine_name_what_it_lacks),
        WITH_TREE(facts_name_what_is_there),
        WITH_TREE(cgroups_with_weights_of_their_own_are_counted),
        WITH_TREE(cgroups_of_version_1_are_counted),
        WITH_TREE(hidepid_is_seen_in_the_mount_that_counts),
        WITH_TREE(bad_files_of_facts_are_told_apart_from_numbers),
    };
    return cmocka_run_group_tests_name("root", tests, NULL, NULL);
}
