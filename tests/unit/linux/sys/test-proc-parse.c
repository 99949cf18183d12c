/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parsers of /proc: output of a kernel, hostile process names, and malformed text; the load of CPUs from /proc/stat; and pages
 * and runtimes in the maps of a program.
 */
#include <sys/mman.h>

#include <asym/rtx.h>

#include "linux/observe/proc-reader.h"
#include "linux/sys/proc-parse.h"
#include "support/tree.h"
#include "support/test.h"

#define TAIL                                                                                                           \
    " 4242 17 17 0 -1 4194560 1204 0 0 0 1 2 0 0 20 0 3 0 987654 234881024 1500 18446744073709551615 94000000000000 "  \
    "94000000100000 140730000000000 0 0 0 0 16781312 134217730 0 0 0 17 5 0 0 0 0 0 94000000200000 0 0 0 0 0 0 0\n"

TEST(a_kernels_stat_is_read)
{
    struct asym_stat s;
    const char *text = "17 (cat) S" TAIL;
    assert_int_equal(asym_parse_stat(text, strlen(text), &s), 0);
    assert_string_equal(s.comm, "cat");
    assert_int_equal(s.state, 'S');
    assert_int_equal(s.ppid, 4242);
    assert_int_equal(s.flags, 4194560);
    assert_int_equal(s.nice, 0);
    assert_int_equal(s.ran, 3);
    assert_int_equal(s.start, 987654);
    assert_int_equal(s.cpu, 5);
    assert_int_equal(s.sched, 0);
    assert_true(s.image.code == 94000000000000 && s.image.stack == 140730000000000);
}

/* The kernel writes 1 and 0 for a process that the reader may not trace. */
TEST(addresses_that_the_kernel_hides_are_1_and_0)
{
    struct asym_stat s;
    const char *text = "1 (x) R 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 15 0 1 0 1 0 0 0 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n";
    assert_int_equal(asym_parse_stat(text, strlen(text), &s), 0);
    assert_true(s.image.code == 1 && s.image.stack == 0);
}

TEST(nice_and_policy_are_read)
{
    struct asym_stat s;
    const char *text =
        "1 (x) R 0 1 1 0 -1 67108864 0 0 0 0 0 0 0 0 15 -5 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1023 0 5\n";
    assert_int_equal(asym_parse_stat(text, strlen(text), &s), 0);
    assert_int_equal(s.nice, -5);
    assert_int_equal(s.flags, 67108864);
    assert_int_equal(s.cpu, 1023);
    assert_int_equal(s.sched, 5);
}

TEST(hostile_names_end_at_the_last_parenthesis)
{
    static const char *const names[] = {
        "",  ")",      "((((((((((((((", ") R 1 1 1 1 1", "a) S 1 (b", "\n\n\n", "x)\n17 (y)", "\xff\xfe\x80",
        " ", "a b  c", "\x01\x1b[31m",   ") Z 0 0 0 0 0",
    };
    for (size_t i = 0; i < ASYM_LENGTH(names); i++) {
        char text[1024];
        struct asym_stat s;
        int n = snprintf(text, sizeof text, "17 (%s) D" TAIL, names[i]);
        assert_int_equal(asym_parse_stat(text, (size_t)n, &s), 0);
        assert_string_equal(s.comm, names[i]);
        assert_int_equal(s.state, 'D');
        assert_int_equal(s.ppid, 4242);
        assert_int_equal(s.start, 987654);
    }
}

TEST(a_long_name_is_cut)
{
    struct asym_stat s;
    const char *text = "17 (kworker/u512:3-events_unbound) I" TAIL;
    assert_int_equal(asym_parse_stat(text, strlen(text), &s), 0);
    assert_string_equal(s.comm, "kworker/u512:3-");
}

TEST(a_stat_cut_short_anywhere_is_refused)
{
    const char *text = "17 (cat) S" TAIL;
    const char *policy = strstr(text, " 5 0 0 0");
    for (size_t len = 0; len <= (size_t)(policy - text) + 3; len++) {
        struct asym_stat s = {.comm = "untouched"};
        /* The buffer has the exact size, so that a sanitiser detects a read past its end. */
        ASYM_AUTO_FREE char *copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, text, len);
        assert_int_equal(asym_parse_stat(copy, len, &s), -EINVAL);
        assert_string_equal(s.comm, "untouched");
    }
}

TEST(junk_is_not_a_stat)
{
    static const char *const junk[] = {
        "",
        ")(",
        "17 cat S 1 2 3",
        "17 (cat)",
        "17 (cat) ",
        "17 (cat) S",
        "17 (cat) SS" TAIL,
        "17 (cat) \n" TAIL,
        "17 (cat)S" TAIL,
        "17 (cat) S x 17 17 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
        /* ppid below 0, nice beyond 19, a start before boot, a policy that does not fit, a number without end */
        "17 (cat) S -1 17 17 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
        "17 (cat) S 1 17 17 0 -1 0 0 0 0 0 0 0 0 0 20 20 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
        "17 (cat) S 1 17 17 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
        "17 (cat) S 1 17 17 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 256\n",
        "17 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 9 0 3 0 18446744073709551616 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0\n",
    };
    for (size_t i = 0; i < ASYM_LENGTH(junk); i++) {
        struct asym_stat s;
        assert_int_equal(asym_parse_stat(junk[i], strlen(junk[i]), &s), -EINVAL);
    }
    struct asym_stat s;
    static const char zeros[512];
    assert_int_equal(asym_parse_stat(zeros, sizeof zeros, &s), -EINVAL);
}

TEST(schedstat_is_three_numbers)
{
    struct asym_schedstat s;
    assert_int_equal(asym_parse_schedstat("123456789012 42 7\n", 18, &s), 0);
    assert_true(s.run_ns == 123456789012 && s.wait_ns == 42 && s.slices == 7);
    static const char *const junk[] = {"", "\n", "1 2", "1 2\n", "a b c", "1 -2 3", "1 2 x", "1.5 2 3"};
    for (size_t i = 0; i < ASYM_LENGTH(junk); i++)
        assert_int_equal(asym_parse_schedstat(junk[i], strlen(junk[i]), &s), -EINVAL);
}

TEST(a_status_line_is_found_by_its_full_key)
{
    const char *text = "Name:\tCpus_allowed: ff\\n\nCpus_allowed_list:\t0-7\nCpus_allowed:\tff,00000000\nMems:\t";
    const char *value;
    size_t len;
    assert_int_equal(asym_parse_status_line(text, strlen(text), "Cpus_allowed", &value, &len), 0);
    assert_int_equal(len, 11);
    assert_memory_equal(value, "ff,00000000", len);
    assert_int_equal(asym_parse_status_line(text, strlen(text), "Mems", &value, &len), 0);
    assert_int_equal(len, 0);
    assert_int_equal(asym_parse_status_line(text, strlen(text), "Cpus", &value, &len), -ENOENT);
    assert_int_equal(asym_parse_status_line("", 0, "Name", &value, &len), -ENOENT);
}

TEST(the_cgroup_is_that_of_the_cpuset_hierarchy)
{
    static const struct {
        const char *text, *path, *name;
        int v1;
    } rows[] = {
        {"0::/system.slice/a.service\n", "/system.slice/a.service", "/system.slice/a.service", 0},
        {"0::/", "/", "/", 0},
        {"5:cpuset:/batch\n1:name=systemd:/user.slice\n0::/\n", "/batch", "/user.slice", 1},
        {"5:cpu,cpuset,mem:/x:y\n0::/u\n", "/x:y", "/u", 1},
        {"5:cpusets:/no\n4:acpuset:/no\n0::/yes\n", "/yes", "/yes", 0},
        {"junk\n:\n::\n3:cpuset:relative\n0::/yes", "/yes", "/yes", 0},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const char *path;
        size_t len;
        int v1 = -1;
        assert_int_equal(asym_parse_cgroup(rows[i].text, strlen(rows[i].text), &path, &len, &v1), 0);
        assert_int_equal(len, strlen(rows[i].path));
        assert_memory_equal(path, rows[i].path, len);
        assert_int_equal(v1, rows[i].v1);
        assert_int_equal(asym_parse_cgroup_name(rows[i].text, strlen(rows[i].text), &path, &len), 0);
        assert_int_equal(len, strlen(rows[i].name));
        assert_memory_equal(path, rows[i].name, len);
    }
}

TEST(no_cgroup_is_reported)
{
    static const char *const none[] = {"", "\n\n", "1:cpu:/a\n", "0:", "0::", "0::\n", ":::::"};
    for (size_t i = 0; i < ASYM_LENGTH(none); i++) {
        const char *path;
        size_t len;
        int v1;
        assert_int_equal(asym_parse_cgroup(none[i], strlen(none[i]), &path, &len, &v1), -ENOENT);
        assert_int_equal(asym_parse_cgroup_name(none[i], strlen(none[i]), &path, &len), -ENOENT);
    }
}

TEST_IN(the_load_is_that_between_two_readings, struct tree_root, f, tree_root_make, tree_root_remove)
{
    static struct asym_cpu_load load;
    /* The second reading; CPU 1 is offline in it, and its idle time went back by a tick on CPU 3. */
    static const struct {
        unsigned cpu;
        double share;
    } rows[] = {{0, 0.25}, {1, 0}, {2, 1}, {3, 1}, {4, 0}, {ASYM_MAX_CPUS - 1, 0}};
    tree_write(&f->tree, "proc/stat",
               "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 10 50 1000 10 1 1 0 0 0\ncpu1 5 5 5 5 5 5 5 5 0 0\n"
               "cpu2 0 0 0 500 0 0 0 0 0 0\ncpu3 0 0 0 500 0 0 0 0 0 0\nintr 1 2 3\n");
    assert_int_equal(asym_cpu_load_update(&load, &f->root), 0);
    tree_write(&f->tree, "proc/stat",
               "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 110 15 55 1070 15 3 2 2 7 7\n"
               "cpu2 50 10 10 500 0 10 10 10 0 0\ncpu3 7 0 0 499 0 0 0 0 0 0\nintr 1 2 3\ncpu9x\n");
    assert_int_equal(asym_cpu_load_update(&load, &f->root), 0);
    assert_int_equal(load.n, 2);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        assert_true(load.share[rows[i].cpu] > rows[i].share - 0.001 && load.share[rows[i].cpu] < rows[i].share + 0.001);
    tree_unlink(&f->tree, "proc/stat");
    assert_true(asym_cpu_load_update(&load, &f->root) < 0);
    assert_int_equal(load.n, 2);
}

TEST(maps_show_pages_and_runtimes)
{
    static const struct {
        const char *text;
        unsigned bits;
    } cases[] = {
        {"", 0},
        {"7f0000000000-7f0000021000 rw-s 00000000 00:01 2050  /memfd:asym-rtx (deleted)\n", ASYM_MAPS_PAGE},
        {"7f0000000000-7f0000021000 rw-s 00000000 00:31 7  /run/asymd/rtx/1000/asym-rtx.77.1234567\n", ASYM_MAPS_PAGE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/x86_64-linux-gnu/libomp.so.5\n",
         ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/llvm-14/lib/libomp-14.so.5\n",
         ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0\n",
         ASYM_MAPS_OPENMP},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /opt/intel/lib/libiomp5.so\n",
         ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/x86_64-linux-gnu/libtbb.so.12.8\n",
         ASYM_MAPS_COUNTS_LATE},
        {"7f0000000000-7f0000021000 r-xp 00000000 08:01 99  /usr/lib/libompare.so\n", 0},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++)
        assert_int_equal(asym_maps_scan(cases[i].text, strlen(cases[i].text)), cases[i].bits);
}

TEST(a_page_is_found_behind_many_mappings)
{
    ASYM_CLEANUP(asym_root_done) struct asym_root root = {.fd = -1};
    bool cut;
    assert_int_equal(asym_root_open(NULL, &root, NULL), 0);
    assert_int_equal(asym_maps_read(&root, getpid(), ASYM_READ_MAPS_MOST, &cut) & ASYM_MAPS_PAGE, 0);
    /* Every second page has another protection: the maps need more than one read(2). */
    const size_t n = 600, size = (size_t)sysconf(_SC_PAGESIZE);
    char *many = mmap(NULL, n * size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(many, MAP_FAILED);
    for (size_t i = 0; i < n; i += 2)
        assert_int_equal(mprotect(many + i * size, size, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(asym_rtx_join(NULL), 0);
    assert_int_equal(asym_maps_read(&root, getpid(), ASYM_READ_MAPS_MOST, &cut) & ASYM_MAPS_PAGE, ASYM_MAPS_PAGE);
    munmap(many, n * size);
}

TEST_MAIN
