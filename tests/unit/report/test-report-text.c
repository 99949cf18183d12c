/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a dry run. */

#include "base/mask.h"
#include "report/columns.h"
#include "support/captured-log.h"
#include "support/report-fixture.h"
#include "support/shell.h"
#include "support/test.h"

static char *print_wide(const struct asym_report *r, bool colour, size_t columns)
{
    return PRINTED(asym_report_text(r, &(struct asym_terminal){.out = out, .columns = columns, .colour = colour}));
}

static char *print(const struct asym_report *r, bool colour)
{
    return print_wide(r, colour, 100);
}

static void assert_fits(const char *text)
{
    assert_fits_in(text, 100);
}

static char *text_of(const struct report_fixture *s)
{
    const struct asym_report r = report_fixture_report(s);
    for (size_t columns = ASYM_COLUMNS_LEAST; columns < 100; columns += 10) {
        ASYM_AUTO_FREE char *narrow = print_wide(&r, false, columns);
        assert_fits_in(narrow, columns);
    }
    char *text = print(&r, false);
    assert_fits(text);
    assert_null(strchr(text, '\033'));
    return text;
}

static void assert_lacks(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("'%s' is in:\n%s", part, text);
}

/* Returns the line that contains part; the caller frees it. */
static char *line_with(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    if (!at)
        fail_msg("no '%s' in:\n%s", part, text);
    const char *start = at;
    while (start > text && start[-1] != '\n')
        start--;
    return strndup(start, strcspn(start, "\n"));
}

static struct report_fixture *two_programs(void)
{
    struct report_fixture *s = report_fixture_new(8, 4, 16);
    report_fixture_app(s, "serial", 100, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
    report_fixture_steer(s, report_fixture_thread(s, "serial", 100, 1), 5, "5", &report_fixture_own);
    report_fixture_app(s, "parallel", 200, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP, 5.98);
    for (int i = 0; i < 6; i++) {
        struct asym_plan_task *t = report_fixture_thread(s, "worker", 200 + i, i % 4);
        report_fixture_steer(s, t, i % 4, "0-3", &report_fixture_many);
        t->figure[0] = 5.98;
        t->figure[1] = 5;
    }
    return s;
}

TEST_OF(a_line_per_core_type_with_cpus_speed_and_where_the_figure_came_from, two_programs())
{
    ASYM_AUTO_FREE char *text = text_of(s), *fast = line_with(text, "4-7"), *slow = line_with(text, "CPUs 0-3");
    assert_has(text, "8 CPUs on 4 cores (SMT), 2 last-level caches");
    assert_has(fast, "fast");
    assert_has(fast, "speed 2.00");
    assert_has(fast, "from cpufreq");
    assert_has(slow, "slow");
    assert_has(slow, "speed 1.00");
    assert_lacks(text, "alike");
    assert_lacks(text, "what-if");
}

TEST_OF(it_says_when_all_cpus_are_alike_and_why, report_fixture_new(2, 0, 4))
{
    struct asym_topology_notes notes = {
        .n = 2,
        .note = {{.origin = ASYM_ORIGIN_CPUFREQ, .text = "cpuinfo_max_freq: none"},
                 {.origin = ASYM_ORIGIN_CPPC, .there = true, .text = "acpi_cppc highest_perf: 255 on all"}}};
    struct asym_report r = report_fixture_report(s);
    r.notes = &notes;
    ASYM_AUTO_FREE char *text = print(&r, false);
    assert_fits(text);
    assert_has(text, "asymd prefers no CPU: all CPUs are alike.");
    assert_has(text, "--slow=N");
    assert_has(text, "not used: acpi_cppc highest_perf: 255 on all");
    assert_lacks(text, "cpuinfo_max_freq"); /* only --check prints sources that this machine lacks */
}

TEST_OF(it_says_when_cpus_are_only_assumed_slow, report_fixture_new(2, 0, 4))
{
    struct asym_mask slow = report_fixture_cpus("1");
    assert_int_equal(asym_machine_assume_slow(&s->machine, &slow, 0.5), 0);
    struct asym_report r = report_fixture_report(s);
    r.assumed_slow = true;
    ASYM_AUTO_FREE char *text = print(&r, false), *line = line_with(text, "CPU  1 ");
    assert_fits(text);
    assert_has(text, "This is a what-if: no CPU was slowed.");
    assert_has(line, "from --slow or the configuration");
    assert_lacks(text, "all CPUs are alike");
}

TEST_OF(the_policy_its_settings_and_a_line_per_application_are_printed, two_programs())
{
    static const char *const parts[] = {"pa: serial phases come first",
                                        "Saez 2010, 2.1",
                                        "hp_threshold=3",
                                        "amp_boost=1s",
                                        "pin=type",
                                        "sp_boost=-5",
                                        "PID  RUNNABLE  CLASS\n",
                                        "100      1.00  serial\n",
                                        "200      5.98  highly parallel\n",
                                        "and 5 more like it"};
    ASYM_AUTO_FREE char *text = text_of(s);
    for (size_t i = 0; i < ASYM_LENGTH(parts); i++)
        assert_has(text, parts[i]);
    assert_int_equal(captured_log_count(text, "0-7 -> 0-3"), 1); /* threads of one plan are folded */
}

TEST_OF(the_class_has_the_words_of_why, two_programs())
{
    s->plan_apps[0].class_by = ASYM_CLASS_BY_NICE;
    s->plan_apps[0].class = ASYM_CLASS_HP;
    s->plan_tasks[s->apps[1].first_task].class = ASYM_CLASS_SP;
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "100      1.00  background\n");
    assert_has(text, "200      5.98  serial phase\n");
}

TEST_OF(what_changes_is_marked_and_what_does_not_is_not, two_programs())
{
    s->plan_tasks[0].nice = -10;
    report_fixture_thread(s, "calm", 300, 2);
    ASYM_AUTO_FREE char *text = text_of(s), *mover = line_with(text, "1 -> 5"),
                        *narrowed = line_with(text, "0-7 -> 0-3"), *calm = line_with(text, "calm");
    assert_has(mover, "*");
    assert_has(mover, "0-7 -> 5");
    assert_has(mover, "0 -> -10");
    assert_has(mover, "a fast CPU each");
    assert_has(narrowed, "+");
    assert_lacks(narrowed, "*");
    assert_has(narrowed, "6.0 runnable threads, more than 5");
    assert_lacks(calm, "*");
    assert_lacks(calm, "+");
    assert_lacks(calm, "->");
    assert_has(text, "1 of 8 threads would move (*), 6 stay where they are, with other allowed CPUs or nice (+)");
}

TEST_OF(offline_cpus_in_a_mask_are_no_change, report_fixture_new(4, 2, 4))
{
    struct asym_mask wide = report_fixture_cpus("0-127");
    report_fixture_app(s, "app", 100, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
    report_fixture_steer(s, report_fixture_thread(s, "app", 100, 3), 3, "0-3", &report_fixture_spare);
    s->tasks[0].mask = &wide;
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_lacks(text, "->");
    assert_lacks(text, "127");
}

TEST(four_kinds_of_those_that_stay_are_shown_and_the_rest_are_counted)
{
    static const char *const masks[] = {"0-1", "0-2", "0-3", "0-4", "0-5", "0-6"};
    struct report_fixture *s = report_fixture_new(8, 4, 32);
    report_fixture_app(s, "many", 100, ASYM_PHASE_PARALLEL, ASYM_CLASS_MP, 6);
    for (int i = 0; i < 6; i++)
        report_fixture_steer(s, report_fixture_thread(s, "many", 100 + i, 0), 0, masks[i], &report_fixture_own);
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "0-7 -> 0-4");
    assert_lacks(text, "0-7 -> 0-5");
    assert_has(text, "2 more stay where they are");
    report_fixture_free(s);
}

TEST(every_mover_is_shown_up_to_eight_and_the_rest_are_counted)
{
    for (int n = 7; n <= 20; n++) {
        struct report_fixture *s = report_fixture_new(8, 4, 32);
        report_fixture_app(s, "many", 100, ASYM_PHASE_PARALLEL, ASYM_CLASS_MP, n);
        report_fixture_thread(s, "many", 99, 4);
        for (int i = 0; i < n; i++)
            report_fixture_steer(s, report_fixture_thread(s, "many", 100 + i, 0), 4 + i % 4, "4-7",
                                 &report_fixture_own);
        ASYM_AUTO_FREE char *text = text_of(s);
        char more[64];
        assert_int_equal(captured_log_count(text, "0 -> "), ASYM_MIN(n, 8));
        snprintf(more, sizeof more, "%d more would move", n - 8);
        if (n > 8)
            assert_has(text, more);
        else
            assert_lacks(text, "more would move");
        snprintf(more, sizeof more, "%d of %d threads would move", n, n + 1);
        assert_has(text, more);
        report_fixture_free(s);
    }
}

TEST_OF(excluded_ones_are_grouped_by_reason_with_a_few_examples, report_fixture_new(8, 4, 64))
{
    char name[32];
    for (int i = 0; i < 37; i++) {
        snprintf(name, sizeof name, "kworker/%d", i);
        report_fixture_app(s, name, 1000 + i, ASYM_PHASE_IDLE, ASYM_CLASS_NONE, 0)->excluded = asym_why(
            ASYM_WHY_KERNEL);
    }
    for (int i = 0; i < 2; i++) {
        struct asym_plan_app *young = report_fixture_app(s, "young", 50 + i, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
        young->excluded = asym_why(ASYM_WHY_SETTLING);
        young->figure[0] = 0.1;
        young->figure[1] = 0.5;
    }
    report_fixture_app(s, "mixed", 70, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
    report_fixture_steer(s, report_fixture_thread(s, "mixed", 70, 4), 4, "4-7", &report_fixture_own);
    struct asym_plan_task *own = report_fixture_thread(s, "pinned", 71, 0);
    own->target = -1;
    own->reason = asym_why(ASYM_WHY_OWN_MASK);
    ASYM_AUTO_FREE char *text = text_of(s), *kernel = line_with(text, "kernel thread"),
                        *pinned = line_with(text, "affinity of its own");
    assert_has(kernel, "37  kernel thread: kworker/0 (1000), kworker/1 (1001)");
    assert_has(text, "33 more");
    assert_lacks(text, "kworker/4 ");
    assert_has(pinned, "pinned (71)");
    assert_has(text, "2  too new: young (50), young (51)");
    assert_has(text, "Applications  1 active, 0 nearly idle");
}

TEST(excluded_cgroups_are_named_by_their_paths_with_a_few_examples)
{
    static const char *const cgroups[] = {"/a.slice/one",  "/a.slice/two",  "/a.slice/three",
                                          "/a.slice/four", "/a.slice/five", "/a.slice/six"};
    struct report_fixture *s = report_fixture_new(8, 4, 64);
    for (size_t i = 0; i < ASYM_LENGTH(cgroups); i++) {
        report_fixture_app(s, "unused", 100, ASYM_PHASE_IDLE, ASYM_CLASS_NONE, 0)->excluded = asym_why(ASYM_WHY_KERNEL);
        s->apps[i].cgroup = cgroups[i];
    }
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "6  kernel thread: /a.slice/one, /a.slice/two, /a.slice/three, /a.slice/four, 2 more\n");
    report_fixture_free(s);
}

TEST_OF(idle_applications_are_counted_not_listed, two_programs())
{
    for (int i = 0; i < 3; i++) {
        report_fixture_app(s, "sleeper", 300 + i, ASYM_PHASE_IDLE, ASYM_CLASS_NONE, 0.1);
        struct asym_plan_task *t = report_fixture_thread(s, "sleeper", 300 + i, 0);
        t->target = -1;
        t->reason = asym_why(ASYM_WHY_IDLE);
    }
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_lacks(text, "sleeper");
    assert_has(text, "2 active, 3 nearly idle and not shown");
    assert_has(text, "1 of 7 threads would move");
}

TEST_OF(an_empty_system_gets_advice, report_fixture_new(8, 4, 1))
{
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "No thread that asymd may steer was busy");
    assert_has(text, "--duration");
    assert_has(text, "--pid");
    assert_has(text, "0 of 0 threads would move");
    s->snapshot.interval = 0;
    ASYM_AUTO_FREE char *one_sample = text_of(s);
    assert_has(one_sample, "One sample");
}

TEST_OF(processes_that_could_not_be_seen_are_reported, two_programs())
{
    ASYM_AUTO_FREE char *all = text_of(s);
    assert_lacks(all, "Not seen");
    assert_lacks(all, "events");
    s->snapshot.coverage = (struct asym_coverage){
        .n_procs = 5,
        .n_threads = 7,
        .n_denied = 12,
        .n_foreign = 1,
        .n_unkept = 40,
        .n_lost_events = 3,
        .hidepid = true,
        .process_events_why = "no CAP_NET_ADMIN for the proc connector, so it scans /proc instead",
        .remarks = {[ASYM_OBSERVER_PROCFS] = "The map was full 2 times."},
    };
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "hidepid");
    assert_has(text, "12 processes that this user may not read");
    assert_has(text, "1 process in PID namespaces");
    assert_has(text, "40 threads were read without a kept descriptor");
    assert_has(text, "dropped process events 3 times");
    assert_has(text, "no CAP_NET_ADMIN");
    assert_has(text, "The map was full 2 times.");
    assert_has(text, "Saw 5 processes and followed 7 threads for 500 ms");
}

TEST(hostile_names_neither_break_lines_nor_reach_the_terminal)
{
    static const char *const names[] = {
        ") R 1 1 1",
        "a\nb\nc",
        "\033[2J\033[31m",
        "\xff\xfe\x80\xc3(\xf0\x28\x8c\xbc",
        "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f",
        "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2",
        "\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12",
        "%s%n%d\\",
        "",
    };
    struct report_fixture *s = report_fixture_new(8, 4, 64);
    for (size_t i = 0; i < ASYM_LENGTH(names); i++) {
        report_fixture_app(s, names[i], (int32_t)(1000000 + i), ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
        report_fixture_steer(s, report_fixture_thread(s, names[ASYM_LENGTH(names) - 1 - i], (int32_t)(4194304 - i), 0),
                             4, "4-7", &report_fixture_turn);
        report_fixture_app(s, names[i], (int32_t)i, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1)->excluded = asym_why(
            ASYM_WHY_REALTIME);
    }
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "a\\x0ab\\x0ac");
    assert_has(text, "\\x1b[2J");
    assert_has(text, "\xf0\x9f\x98\x80");
    assert_has(text, "\xe6\xbc\xa2\xe5\xad\x97");
    for (const char *p = text; *p; p++)
        assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
    report_fixture_free(s);
}

TEST_OF(wide_masks_with_odd_lists_are_cut_with_their_count, report_fixture_new(1024, 512, 8))
{
    struct asym_mask odd = {0};
    char list[ASYM_MASK_LIST_MAX];
    for (unsigned c = 1; c < 1024; c += 2)
        asym_mask_set(&odd, c);
    asym_mask_format_list(&odd, list, sizeof list);
    report_fixture_app(s, "app", 1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
    struct asym_plan_task *t = report_fixture_thread(s, "some_long_name_", 4194303, 1001);
    report_fixture_steer(s, t, 1023, list, &report_fixture_turn);
    t->figure[0] = 12345.67;
    t->figure[1] = 99999.99;
    t->nice = -20;
    s->tasks[0].nice = 19;
    report_fixture_steer(s, report_fixture_thread(s, "two", 2, 1), 1, "0-1023", &report_fixture_own);
    s->tasks[1].mask = &odd;
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "1001 -> 1023");
    assert_has(text, "0-1023 -> 1,3,5,...(512)");
    assert_has(text, "1,3,5,...(512) -> 0-1023");
    assert_has(text, "19 -> -20");
    assert_has(text, "the mean is 99999.99 s");
}

TEST_OF(colour_marks_only_what_changes, report_fixture_new(4, 2, 4))
{
    const struct asym_report r = report_fixture_report(s);
    report_fixture_app(s, "app", 1, ASYM_PHASE_SERIAL, ASYM_CLASS_MP, 1);
    report_fixture_thread(s, "app", 1, 0);
    ASYM_AUTO_FREE char *same = print(&r, true);
    assert_null(strstr(same, "\033[33m"));
    report_fixture_steer(s, &s->plan_tasks[0], 2, "2-3", &report_fixture_own);
    ASYM_AUTO_FREE char *moved = print(&r, true);
    assert_has(moved, "\033[33m0 -> 2\033[0m");
    assert_has(moved, "\033[33m0-3 -> 2-3\033[0m");
}

TEST_OF(a_cgroup_is_named_by_its_path_and_a_job_by_its_leader, two_programs())
{
    s->apps[0].id = (struct asym_taskid){.start = 77};
    s->apps[0].cgroup = "/system.slice/a-service-with-a-name-that-does-not-fit-to-its-end.service";
    s->apps[1].n_procs = 9;
    memcpy(s->apps[1].comm, "make", 5);
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "/system.slice/a-service-with-a-name-t...  ");
    assert_has(text, "\n  make, 9 processes  ");
}

TEST_OF(a_policy_that_steers_nothing_still_shows_what_was_busy, two_programs())
{
    for (size_t i = 0; i < s->plan.n_tasks; i++)
        s->plan_tasks[i] = (struct asym_plan_task){.target = -1, .reason = &report_fixture_unsteered, .mask = &s->all};
    s->plan.n_moves = 0;
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_has(text, "  serial ");
    assert_has(text, "nothing is steered");
    assert_lacks(text, "->");
    assert_has(text, "0 of 0 threads would move");
}

TEST_OF(thirty_two_core_types_fit, report_fixture_new(1024, 0, 4))
{
    for (int c = 0; c < 1024; c++) {
        s->machine.cpus[c].speed = 1 << (c % 30);
        s->machine.cpus[c].origin = ASYM_ORIGIN_CPUKINDS;
    }
    assert_int_equal(asym_machine_finish(&s->machine), 0);
    memset(s->machine.types[0].name, 'x', sizeof s->machine.types[0].name);
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_int_equal(captured_log_count(text, "from cpukinds"), 30);
}

/* The time is linear in the number of threads; quadratic, 40,000 different threads would take minutes. */
TEST_OF(forty_thousand_threads_print_at_once, report_fixture_new(256, 128, 40000))
{
    report_fixture_app(s, "big", 1, ASYM_PHASE_PARALLEL, ASYM_CLASS_HP, 40000);
    for (int i = 0; i < 40000; i++) {
        struct asym_plan_task *t = report_fixture_thread(s, "big", i + 1, i % 256);
        t->nice = (int8_t)(i % 40 - 20);
        if (i % 3 == 0)
            report_fixture_steer(s, t, (i + 1) % 256, "0-127", &report_fixture_many);
    }
    ASYM_AUTO_FREE char *text = text_of(s);
    assert_true(strlen(text) < 10000);
}

TEST_OF(a_full_disk_is_reported, two_programs())
{
    const struct asym_report r = report_fixture_report(s);
    ASYM_AUTO_FCLOSE FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    const struct asym_terminal terminal = {.out = full, .columns = ASYM_COLUMNS_DEFAULT};
    assert_true(asym_report_text(&r, &terminal) < 0);
}

TEST_OF(a_narrow_terminal_loses_columns_before_rows_wrap, two_programs())
{
    struct asym_report r = report_fixture_report(s);
    ASYM_AUTO_FREE char *wide = print_wide(&r, false, 100), *narrow = print_wide(&r, false, ASYM_COLUMNS_LEAST);
    assert_has(wide, "  NICE  ");
    assert_lacks(narrow, "NICE");
    assert_has(narrow, "     TID  ");
    s->plan_tasks[0].nice = -10;
    r = report_fixture_report(s);
    ASYM_AUTO_FREE char *changed = print_wide(&r, false, ASYM_COLUMNS_LEAST);
    assert_has(changed, "NICE");
    assert_has(changed, "0 -> -10");
}

TEST_MAIN
