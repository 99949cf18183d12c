/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The screen of asymctl top. The goldens are tests/data/top/NAME.txt; with the variable ASYM_RENEW the test writes them anew.
 */
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "report/columns.h"
#include "report/json.h"
#include "top/top.h"
#include "support/test.h"

struct fixture {
    json_t *frame;
    struct asym_top_view view;
    struct asym_top_order order;
    struct asym_top_page page;
};

static void setup(struct fixture *f)
{
    f->view = (struct asym_top_view){.columns = 80, .rows = 24, .sort = ASYM_TOP_RUNNABLE};
    f->frame = json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:i, s:[], s:[]}", "policy", "pa", "policy_reason",
                         "auto: the machine has two types of core", "slow_cpus", "4-11", "threads_steered", 14,
                         "changes_last_minute", 32, "cpu_usage", 0.0041, "memory_bytes", 5 << 20, "cpus",
                         "applications");
    assert_non_null(f->frame);
}

static void teardown(struct fixture *f)
{
    json_decref(f->frame);
    asym_top_order_done(&f->order);
    asym_top_page_done(&f->page);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, setup, teardown)

static json_t *cpu(const struct fixture *f, size_t i)
{
    return json_array_get(json_object_get(f->frame, "cpus"), i);
}

static json_t *app(const struct fixture *f, size_t i)
{
    return json_array_get(asym_top_apps(f->frame), i);
}

static void add_cpus(struct fixture *f, unsigned n_fast, unsigned n_slow)
{
    for (unsigned i = 0; i < n_fast + n_slow; i++) {
        const int fast = i < n_fast;
        json_array_append_new(json_object_get(f->frame, "cpus"),
                              json_pack("{s:i, s:i, s:f, s:b, s:f, s:i, s:s, s:s}", "cpu", (int)i, "type", !fast,
                                        "speed", fast ? 2.25 : 1.0, "fast", fast, "busy",
                                        i % 4 == 3 ? 0 : 1.0 / (1 + i % 4), "threads", fast, "type_name",
                                        fast ? "Cortex-A76" : "Cortex-A55", "comm",
                                        i == 1  ? "漢字圧縮プログラム"
                                        : i % 5 ? "stockfish"
                                                : "gzip"));
    }
}

static const char *name_class(const char *class)
{
    static const char *const names[][2] = {
        {"MP", "mildly parallel"}, {"HP", "highly parallel"}, {"SP", "serial phase"}};
    for (size_t i = 0; i < ASYM_LENGTH(names); i++)
        if (strcmp(class, names[i][0]) == 0)
            return names[i][1];
    return "serial";
}

static void add_app(struct fixture *f, uint32_t pid, const char *comm, const char *class, double runnable,
                    const char *reason)
{
    json_array_append_new(asym_top_apps(f->frame),
                          json_pack("{s:I, s:f, s:f, s:i, s:i, s:i, s:o, s:f, s:s, s:s, s:s, s:o, s:s}", "pid",
                                    (json_int_t)pid, "runnable", runnable, "fast_share", 1 / (1 + runnable),
                                    "moves_per_minute", (int)(pid % 7), "threads", (int)(runnable + 1), "steered",
                                    (int)runnable, "comm", asym_json_text(comm), "running", runnable / 2, "user",
                                    pid % 2 ? "alice" : "root", "command",
                                    pid == 4711 ? "stockfish bench 128 --threads=8 --depth=24" : "", "class_name",
                                    name_class(class), "reason", asym_json_text(reason), "cgroup",
                                    pid == 0 ? "/user.slice/user-1000.slice/build.scope" : ""));
}

/* The names of the first rows: usual, wide characters, escape sequences, bytes that are no UTF-8. */
static void add_apps(struct fixture *f, unsigned more)
{
    add_app(f, 4711, "stockfish", "HP", 8, "parallel: a spare fast CPU");
    add_app(f, 4712, "gzip", "", 1, "serial: a fast CPU");
    add_app(f, 4713, "漢字圧縮プログラム", "MP", 2.5, "few threads: a fast CPU each");
    add_app(f, 4714, "\033[2J\033[31mred\r\n", "SP", 1.25, "serial phase: on a fast CPU for up to 1 s");
    add_app(f, 4715, "\xff\xfe\x80", "MP", 2, "few threads: a fast CPU each");
    add_app(f, 0, "", "HP", 16, "parallel: a spare fast CPU");
    for (unsigned i = 0; i < more; i++) {
        char comm[32];
        snprintf(comm, sizeof comm, "worker-%u", i);
        add_app(f, 5000 + i, comm, i % 2 ? "MP" : "HP", (double)(i % 10) / 10, "few threads: a fast CPU each");
    }
}

static void lay_out(struct fixture *f, unsigned columns, unsigned rows)
{
    f->view.columns = columns;
    f->view.rows = rows;
    assert_int_equal(asym_top_order_make(&f->order, f->frame, &f->view), 0);
    asym_top_follow(&f->view, f->frame, &f->order);
    assert_int_equal(asym_top_layout(f->frame, &f->view, &f->order, &f->page), 0);
}

static char *print(const struct fixture *f)
{
    return PRINTED(asym_top_print(&f->page, out));
}

static void assert_shows(const struct fixture *f, const char *part, bool shown)
{
    ASYM_AUTO_FREE char *text = print(f);
    if (!strstr(text, part) == shown)
        fail_msg("'%s' is %s:\n%s", part, shown ? "missing" : "there", text);
}

static void compare_golden(const struct fixture *f, const char *name)
{
    char path[512], wanted[65536];
    ASYM_AUTO_FREE char *text = print(f);
    snprintf(path, sizeof path, "%s/top/%s.txt", ASYM_TEST_DATA, name);
    ASYM_AUTO_FCLOSE FILE *file = fopen(path, getenv("ASYM_RENEW") ? "w+" : "r");
    assert_non_null(file);
    if (getenv("ASYM_RENEW")) {
        fputs(text, file);
        rewind(file);
    }
    wanted[fread(wanted, 1, sizeof wanted - 1, file)] = '\0';
    if (strcmp(text, wanted) != 0)
        fail_msg("not as %s:\n%s", path, text);
}

TEST_F(the_screen_fits_each_size)
{
    static const struct {
        unsigned columns, rows;
        const char *name;
    } sizes[] = {{80, 24, "80x24"}, {120, 40, "120x40"}, {200, 60, "200x60"}, {40, 10, "40x10"}, {80, 0, "once"}};
    add_cpus(f, 4, 8);
    add_apps(f, 30);
    for (size_t i = 0; i < ASYM_LENGTH(sizes); i++) {
        lay_out(f, sizes[i].columns, sizes[i].rows);
        compare_golden(f, sizes[i].name);
    }
}

TEST_F(many_cpus_collapse_to_a_row_for_each_type)
{
    add_cpus(f, 64, 192);
    add_apps(f, 4);
    lay_out(f, 80, 24);
    compare_golden(f, "256-cpus-80x24");
    lay_out(f, 200, 60);
    compare_golden(f, "256-cpus-200x60");
    lay_out(f, 40, 10);
    compare_golden(f, "256-cpus-40x10");
    lay_out(f, 80, 0);
    assert_shows(f, "64 CPUs", true);
}

/* Sixteen CPUs of eight fast cores look like sixteen fast cores, if the screen does not tell them apart. */
TEST_F(hyperthreads_are_told_from_cores)
{
    add_cpus(f, 16, 8);
    for (unsigned i = 0; i < 16; i++)
        json_object_set_new(cpu(f, i), "smt_rank", json_integer((json_int_t)i % 2));
    add_apps(f, 4);
    lay_out(f, 120, 40);
    assert_shows(f, "fast 2.25x, 8 cores, 16 CPUs 0-15, ", true);
    assert_shows(f, "slow 1.00x, 8 CPUs 16-23, ", true);
    lay_out(f, 120, 12);
    assert_shows(f, "16 steered  8 cores", true);
}

/* No piece leaves the screen or reaches the next one, and no piece has a byte that a terminal would act on. */
static void assert_sound(const struct fixture *f)
{
    const struct asym_top_page *p = &f->page;
    for (size_t i = 0; i < p->n_pieces; i++) {
        const struct asym_top_piece *a = &p->pieces[i], *b = i + 1 < p->n_pieces ? &p->pieces[i + 1] : NULL;
        const char *text = p->text + a->text;
        assert_int_equal(asym_columns_of(text), a->columns);
        assert_true(a->column + a->columns <= f->view.columns);
        assert_true(a->row < f->view.rows);
        for (const char *c = text; *c; c++)
            assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
        const bool is_background = text[strspn(text, " ")] == '\0';
        if (b && b->row == a->row && !is_background)
            assert_true(a->column + a->columns <= b->column);
    }
}

TEST_F(no_size_breaks_the_screen)
{
    add_cpus(f, 3, 21);
    add_apps(f, 20);
    f->view.why = "one line that is longer than a narrow screen is wide\n\n漢字漢字漢字漢字\n";
    for (unsigned columns = 1; columns < 260; columns += columns < 130 ? 1 : 13)
        for (unsigned rows = 1; rows < 70; rows += rows < 12 ? 1 : 9)
            for (unsigned mode = ASYM_TOP_TABLE; mode <= ASYM_TOP_HELP; mode++) {
                f->view.mode = (enum asym_top_mode)mode;
                lay_out(f, columns, rows);
                assert_sound(f);
                assert_int_equal(f->page.row, mode == ASYM_TOP_TABLE && rows == 1 ? 1 : f->page.row);
                assert_true(f->page.row <= rows);
            }
}

TEST_F(bytes_of_a_name_do_not_reach_the_terminal)
{
    add_cpus(f, 1, 0);
    json_object_set_new(cpu(f, 0), "comm", json_string("\033]0;owned\a"));
    json_object_set_new(cpu(f, 0), "busy", json_real(1));
    snprintf(f->view.alert, sizeof f->view.alert, "\033c");
    snprintf(f->view.filter, sizeof f->view.filter, "g");
    add_app(f, 7, "g\033[2J", "MP", 1, "\033[1m");
    json_object_set_new(app(f, 0), "user", json_string("\033c"));
    lay_out(f, 120, 24);
    assert_sound(f);
    assert_shows(f, "g\\x1b[2J", true);
    /* asymd has made this one printable. The screen does not do it again. */
    json_object_set_new(app(f, 0), "comm", json_string("g\\x1b"));
    lay_out(f, 120, 24);
    assert_shows(f, " g\\x1b ", true);
}

static uint32_t pid_at(const struct fixture *f, size_t line)
{
    return (uint32_t)asym_json_get_int(app(f, f->order.index[line]), "pid");
}

static enum asym_top_action press(struct fixture *f, uint32_t key)
{
    const enum asym_top_action action = asym_top_key(&f->view, f->frame, &f->order, key);
    lay_out(f, f->view.columns, f->view.rows);
    return action;
}

TEST_F(keys_sort_by_each_column)
{
    add_cpus(f, 2, 2);
    add_apps(f, 0);
    lay_out(f, 200, 60);
    assert_int_equal(pid_at(f, 0), 0);
    assert_int_equal(pid_at(f, 1), 4711);
    assert_shows(f, "RUN*", true);
    press(f, 'r');
    assert_int_equal(pid_at(f, 0), 4712);
    press(f, '<');
    assert_shows(f, "CLASS*", true);
    assert_false(f->view.reverse);
    press(f, '<');
    assert_shows(f, "COMMAND*", true);
    press(f, '<');
    assert_shows(f, "CPU%*", true);
    assert_int_equal(pid_at(f, 0), 0);
    press(f, '<');
    assert_shows(f, "USER*", true);
    assert_int_equal(pid_at(f, 0), 4711);
    press(f, '<');
    assert_shows(f, "PID*", true);
    for (size_t i = 1; i < f->order.n; i++)
        assert_true(pid_at(f, i - 1) < pid_at(f, i));
    press(f, '<');
    assert_shows(f, "REASON*", true);
    press(f, '<');
    assert_shows(f, "MOVES*", true);
    for (size_t i = 1; i < f->order.n; i++)
        assert_true(asym_json_get_int(app(f, f->order.index[i - 1]), "moves_per_minute") >=
                    asym_json_get_int(app(f, f->order.index[i]), "moves_per_minute"));
    press(f, '<');
    assert_shows(f, "FAST*", true);
    assert_int_equal(pid_at(f, 0), 4712);
}

TEST_F(equal_lines_keep_their_places)
{
    for (uint32_t i = 0; i < 100; i++)
        add_app(f, 100 + (i * 37) % 100, "same", "MP", 1, "");
    lay_out(f, 80, 24);
    for (size_t i = 0; i < f->order.n; i++)
        assert_int_equal(pid_at(f, i), 100 + i);
}

static void type(struct fixture *f, const char *text)
{
    for (; *text; text++)
        press(f, (unsigned char)*text);
}

TEST_F(a_filter_takes_effect_while_it_is_typed)
{
    add_apps(f, 30);
    lay_out(f, 80, 24);
    type(f, "/WORKER-1q");
    assert_int_equal(f->order.n, 0);
    press(f, ASYM_TOP_KEY_BACKSPACE);
    assert_int_equal(f->order.n, 11);
    assert_shows(f, "WORKER-1_", true);
    press(f, ASYM_TOP_KEY_ENTER);
    assert_int_equal(f->order.n, 11);
    assert_shows(f, "filter WORKER-1: 11 of 36", true);
    assert_int_equal(f->view.pid, pid_at(f, f->view.line));
    press(f, ASYM_TOP_KEY_ESCAPE);
    assert_int_equal(f->order.n, 36);
    type(f, "/4712");
    assert_int_equal(f->order.n, 1);
    press(f, ASYM_TOP_KEY_ESCAPE);
    type(f, "/BUILD.sc");
    assert_int_equal(f->order.n, 1);
    press(f, ASYM_TOP_KEY_ESCAPE);
    press(f, '/');
    press(f, 0x6f22);
    assert_string_equal(f->view.filter, "漢");
    assert_int_equal(f->order.n, 1);
    press(f, ASYM_TOP_KEY_BACKSPACE);
    assert_string_equal(f->view.filter, "");
    for (size_t i = 0; i < 200; i++)
        press(f, 0x1f600);
    assert_true(strlen(f->view.filter) < sizeof f->view.filter);
}

TEST_F(the_cursor_follows_its_application)
{
    add_apps(f, 30);
    lay_out(f, 80, 24);
    press(f, ASYM_TOP_KEY_DOWN);
    assert_int_equal(f->view.pid, 4711);
    for (size_t i = 0; i < json_array_size(asym_top_apps(f->frame)); i++)
        if (asym_json_get_int(app(f, i), "pid") == 4711)
            json_object_set_new(app(f, i), "runnable", json_real(-1));
    lay_out(f, 80, 24);
    assert_int_equal(f->view.pid, 4711);
    assert_int_equal(f->view.line, 35);
    assert_shows(f, "stockfish", true);
    /* The application ends: the cursor stays on the line, or on the last one. */
    for (size_t i = 0; i < json_array_size(asym_top_apps(f->frame)); i++)
        if (asym_json_get_int(app(f, i), "pid") == 4711)
            json_array_remove(asym_top_apps(f->frame), i);
    lay_out(f, 80, 24);
    assert_int_equal(f->view.line, 34);
    assert_int_not_equal(f->view.pid, 4711);
    json_array_clear(asym_top_apps(f->frame));
    lay_out(f, 80, 24);
    assert_int_equal(f->view.pid, 0);
    assert_int_equal(press(f, ASYM_TOP_KEY_ENTER), ASYM_TOP_DRAW);
}

TEST_F(keys_move_the_cursor_and_the_table)
{
    add_apps(f, 30);
    lay_out(f, 80, 24);
    press(f, ASYM_TOP_KEY_UP);
    assert_int_equal(f->view.line, 0);
    press(f, ASYM_TOP_KEY_PAGE_DOWN);
    assert_int_equal(f->view.line, f->view.page_lines);
    assert_int_equal(f->view.first, 1);
    press(f, ASYM_TOP_KEY_END);
    assert_int_equal(f->view.line, 35);
    assert_int_equal(f->view.first, 36 - f->view.page_lines);
    press(f, 'k');
    assert_int_equal(f->view.first, 36 - f->view.page_lines);
    press(f, ASYM_TOP_KEY_HOME);
    assert_int_equal(f->view.first, 0);
    /* A larger screen leaves no rows empty. */
    press(f, ASYM_TOP_KEY_END);
    lay_out(f, 80, 60);
    assert_int_equal(f->view.first, 0);
}

TEST_F(pause_is_done_after_a_yes_only)
{
    add_apps(f, 0);
    lay_out(f, 80, 24);
    assert_int_equal(press(f, 'p'), ASYM_TOP_DRAW);
    assert_shows(f, "Pause? asymd puts every thread back. y/n", true);
    assert_int_equal(press(f, 'q'), ASYM_TOP_DRAW);
    assert_int_equal(f->view.mode, ASYM_TOP_TABLE);
    press(f, 'p');
    assert_int_equal(press(f, 'y'), ASYM_TOP_PAUSE);
    json_object_set_new(f->frame, "paused", json_true());
    json_object_set_new(f->frame, "paused_for_us", json_integer(250 * ASYM_SEC));
    lay_out(f, 80, 24);
    assert_shows(f, "PAUSED for 4 min 10 s more | policy pa", true);
    assert_shows(f, "p resume", true);
    press(f, 'p');
    assert_shows(f, "Resume?", true);
    assert_int_equal(press(f, ASYM_TOP_KEY_ENTER), ASYM_TOP_DRAW);
    snprintf(f->view.message, sizeof f->view.message, "not permitted");
    lay_out(f, 80, 24);
    assert_shows(f, "not permitted\n", true);
    press(f, 'z');
    assert_shows(f, "not permitted", false);
    assert_int_equal(press(f, 'q'), ASYM_TOP_QUIT);
}

/* The cursor may be on another process when the answer comes: the question is about the first one. */
TEST_F(orders_are_given_after_a_yes_only)
{
    static const struct {
        uint32_t key;
        enum asym_top_action action;
        const char *question;
    } rows[] = {
        {'f', ASYM_TOP_SET_FAST, "Keep stockfish (4711) on fast CPUs until it ends? y/n"},
        {'s', ASYM_TOP_SET_SLOW, "Keep stockfish (4711) on slow CPUs until it ends? y/n"},
        {'i', ASYM_TOP_SET_IGNORE, "Leave stockfish (4711) alone until it ends? y/n"},
        {'a', ASYM_TOP_SET_AUTO, "Let the rules of the configuration decide about stockfish (4711) again? y/n"},
    };
    add_apps(f, 0);
    lay_out(f, 100, 24);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        press(f, ASYM_TOP_KEY_HOME);
        press(f, ASYM_TOP_KEY_DOWN);
        assert_int_equal(press(f, rows[i].key), ASYM_TOP_DRAW);
        assert_shows(f, rows[i].question, true);
        assert_int_equal(press(f, 'n'), ASYM_TOP_DRAW);
        press(f, rows[i].key);
        f->view.pid = 4712;
        assert_int_equal(press(f, 'y'), rows[i].action);
        assert_int_equal(f->view.asked_pid, 4711);
    }
    press(f, ASYM_TOP_KEY_HOME);
    assert_int_equal(f->view.pid, 0);
    assert_int_equal(press(f, 'f'), ASYM_TOP_DRAW);
    assert_shows(f, "This row is a control group", true);
    assert_int_equal(press(f, 'y'), ASYM_TOP_DRAW);
    json_array_clear(asym_top_apps(f->frame));
    lay_out(f, 100, 24);
    assert_int_equal(press(f, 'f'), ASYM_TOP_DRAW);
    assert_int_equal(f->view.mode, ASYM_TOP_TABLE);
}

TEST_F(a_policy_is_typed_and_confirmed)
{
    static const char *const policies[] = {"none", "pa", "priority", NULL};
    f->view.policies = policies;
    lay_out(f, 80, 24);
    type(f, "o");
    assert_shows(f, "policy (Esc leaves): _ | none | pa | priority", true);
    type(f, "p");
    assert_shows(f, "policy (Esc leaves): p_ | pa | priority", true);
    press(f, ASYM_TOP_KEY_ESCAPE);
    assert_int_equal(f->view.mode, ASYM_TOP_TABLE);
    type(f, "opr");
    press(f, ASYM_TOP_KEY_BACKSPACE);
    type(f, "a");
    press(f, ASYM_TOP_KEY_ENTER);
    assert_shows(f, "Switch to policy pa until asymd ends? y/n", true);
    assert_int_equal(press(f, 'n'), ASYM_TOP_DRAW);
    type(f, "opa");
    press(f, ASYM_TOP_KEY_ENTER);
    assert_int_equal(press(f, 'y'), ASYM_TOP_SET_POLICY);
    assert_string_equal(f->view.policy, "pa");
}

static bool has_ended(uint32_t pid)
{
    return pid == 4712;
}

TEST_F(idle_rows_stay_for_a_time)
{
    static const struct {
        asym_usec after;
        size_t n;
    } rows[] = {{ASYM_SEC, 5}, {ASYM_TOP_KEEP - 1, 5}, {ASYM_TOP_KEEP, 1}};
    add_apps(f, 0);
    for (size_t i = 0; i < json_array_size(asym_top_apps(f->frame)); i++)
        json_object_set_new(app(f, i), "seen_us", json_integer(100 * ASYM_SEC));
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_AUTO_JSON json_t *next = json_pack("{s:[O]}", "applications", app(f, 0));
        json_t *apps = asym_top_apps(next);
        assert_int_equal(asym_top_frame_keep(next, f->frame, 100 * ASYM_SEC + rows[i].after, has_ended), 0);
        assert_int_equal(json_array_size(apps), rows[i].n);
        for (size_t k = 1; k < rows[i].n; k++) {
            const json_t *kept = json_array_get(apps, k);
            assert_string_equal(asym_json_get_text(kept, "class_name"), "idle");
            assert_true(asym_json_get_int(kept, "pid") != 4712 && asym_json_get_number(kept, "runnable") <= 0 &&
                        asym_json_get_int(kept, "seen_us") == 100 * ASYM_SEC);
        }
    }
}

/* A build has another number of compilers in each frame. */
TEST_F(a_job_keeps_its_one_row)
{
    add_app(f, 4711, "make", "HP", 8, "");
    json_t *make = app(f, 0);
    json_object_set_new(make, "processes", json_integer(9));
    json_object_set_new(make, "seen_us", json_integer(100 * ASYM_SEC));
    ASYM_AUTO_JSON json_t *next = json_pack("{s:[o]}", "applications", json_copy(make));
    json_object_set_new(json_array_get(asym_top_apps(next), 0), "processes", json_integer(7));
    assert_int_equal(asym_top_frame_keep(next, f->frame, 101 * ASYM_SEC, has_ended), 0);
    assert_int_equal(json_array_size(asym_top_apps(next)), 1);
    json_object_set_new(make, "command", json_string("make -j8"));
    lay_out(f, 120, 20);
    assert_shows(f, "make, 9 processes", true);
    press(f, 'f');
    assert_string_equal(f->view.question, "Keep make (4711), each process of the job, on fast CPUs until it ends? y/n");
}

TEST_F(why_is_wrapped_and_scrolls)
{
    add_apps(f, 0);
    lay_out(f, 40, 10);
    press(f, ASYM_TOP_KEY_DOWN);
    assert_int_equal(press(f, ASYM_TOP_KEY_ENTER), ASYM_TOP_ASK_WHY);
    assert_int_equal(f->view.pid, 4711);
    f->view.why =
        "stockfish (4711) has 8 runnable threads, so it is highly parallel.\n\none\ntwo\nthree\nfour\nfive\nsix\nend\n";
    f->view.mode = ASYM_TOP_WHY;
    f->view.first = 0;
    lay_out(f, 40, 10);
    assert_shows(f, "stockfish (4711) has 8 runnable threads,\nso it is highly parallel.\n\none\n", true);
    assert_shows(f, "\nend\n", false);
    for (size_t i = 0; i < 20; i++)
        press(f, ASYM_TOP_KEY_DOWN);
    assert_shows(f, "\nend\n", true);
    assert_shows(f, "five\nsix\nend\nq back", true);
    press(f, 'q');
    assert_int_equal(f->view.mode, ASYM_TOP_TABLE);
    press(f, '?');
    assert_shows(f, "why: what asymd knows", true);
    lay_out(f, 80, 24);
    assert_shows(f, "MOVES   how often asymd gave its threads another CPU in the last minute", true);
}

TEST_F(slow_frames_come_less_often)
{
    assert_int_equal(asym_top_pace(ASYM_SEC, 10000), ASYM_SEC);
    assert_int_equal(asym_top_pace(ASYM_SEC, 10001), ASYM_SEC + 100);
    assert_int_equal(asym_top_pace(ASYM_SEC, 70000), 7 * ASYM_SEC);
    f->view.every = 7 * ASYM_SEC;
    lay_out(f, 200, 60);
    assert_shows(f, "a frame every 7.0 s", true);
}

TEST_MAIN
