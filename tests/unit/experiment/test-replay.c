/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A replay makes the plans that were made, byte for byte, and shows other policies as if their changes had been made. */
#include <math.h>

#include "base/mask.h"
#include "experiment/replay.h"
#include "record/record.h"
#include "support/generate.h"
#include "support/record-fixture.h"
#include "support/test.h"

/* All plans as text. */
struct text {
    char *bytes;
    size_t len;
    FILE *out;
};

static void open_text(struct text *t)
{
    t->out = open_memstream(&t->bytes, &t->len);
    assert_non_null(t->out);
}

static void print_live(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                       const struct asym_action *actions, size_t n)
{
    struct text *t = ctx;
    assert_int_equal(asym_replay_print_plan(t->out, number, s, plan, actions, n), 0);
}

static int print_again(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                       const struct asym_action *actions, size_t n)
{
    print_live(ctx, number, s, plan, actions, n);
    return 0;
}

struct opened {
    FILE *in;
    struct asym_record_reader *reader;
    struct asym_settings *settings;
};

static struct opened open_record(const struct record_fixture *f)
{
    struct opened o;
    o.in = fmemopen(f->bytes, f->len, "rb");
    assert_non_null(o.in);
    assert_int_equal(asym_record_reader_new(o.in, "f", &o.reader, NULL), 0);
    assert_int_equal(asym_replay_settings(asym_record_reader_head(o.reader), &o.settings, NULL), 0);
    return o;
}

static void close_record(struct opened *o)
{
    asym_settings_free(o->settings);
    asym_record_reader_free(o->reader);
    fclose(o->in);
}

static void check_plans(const char *policy, uint64_t seed, bool enforced)
{
    struct record_fixture f;
    struct text live, again;
    struct asym_replay_check check;
    open_text(&live);
    open_text(&again);
    record_fixture_make(&f, &(struct record_fixture_plan){.seed = seed,
                                                          .threads = 40,
                                                          .snapshots = 60,
                                                          .interval = 100 * ASYM_MSEC,
                                                          .policy = policy,
                                                          .plain = seed % 2 == 1,
                                                          .noisy = seed % 3 == 1,
                                                          .enforced = enforced,
                                                          .planned = print_live,
                                                          .ctx = &live});
    fclose(live.out);
    struct opened o = open_record(&f);
    const struct asym_replay_watch watch = {.plan = print_again, .ctx = &again};
    assert_int_equal(asym_replay_check(o.reader, o.settings, &watch, NULL, &check, NULL), 0);
    fclose(again.out);
    assert_true(live.len > 1000);
    assert_string_equal(live.bytes, again.bytes);
    assert_int_equal(check.plans, 60);
    assert_int_equal(check.same, 60);
    assert_int_equal(check.first_diff, 0);
    close_record(&o);
    record_fixture_done(&f);
    free(live.bytes);
    free(again.bytes);
}

TEST(the_policy_of_the_record_makes_the_plans_that_were_made)
{
    static const char *const policies[] = {"pa", "serial-first", "rr", "priority", "none"};
    for (size_t i = 0; i < ASYM_LENGTH(policies); i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            check_plans(policies[i], seed, false);
            check_plans(policies[i], seed, true);
        }
}

static struct record_fixture_plan plain(const char *policy)
{
    return (struct record_fixture_plan){.seed = 3,
                                        .threads = 12,
                                        .snapshots = 40,
                                        .interval = 100 * ASYM_MSEC,
                                        .policy = policy,
                                        .plain = true,
                                        .noisy = true};
}

TEST(other_settings_make_other_plans_and_the_check_says_which_is_first)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f;
    struct asym_replay_check check;
    const struct record_fixture_plan plan = plain("pa");
    record_fixture_make(&f, &plan);
    struct opened o = open_record(&f);
    assert_int_equal(asym_settings_set(o.settings, "classify.serial_max_threads=9", "test", NULL), 0);
    assert_int_equal(asym_replay_check(o.reader, o.settings, NULL, NULL, &check, NULL), 0);
    assert_int_equal(check.plans, 40);
    assert_true(check.same < 40);
    assert_true(check.first_diff > 0);
    close_record(&o);
}

TEST(tallies_show_what_was_seen_and_what_a_policy_would_change)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f;
    struct asym_replay_tally none, pa;
    const struct record_fixture_plan plan = plain("none");
    record_fixture_make(&f, &plan);
    struct opened o = open_record(&f);
    assert_int_equal(asym_replay_run(o.reader, o.settings, asym_policy_find("none"), NULL, NULL, &none, NULL), 0);
    assert_int_equal(asym_replay_run(o.reader, o.settings, asym_policy_find("pa"), NULL, NULL, &pa, NULL), 0);
    assert_int_equal(none.snapshots, 40);
    assert_int_equal(none.threads, 12);
    assert_int_equal(none.steered + none.moves + none.changes, 0);
    assert_true(fabs(none.seconds - pa.seconds) < 1e-9);
    assert_true(pa.steered > 0 && pa.changes > 0);
    double all = 0, fast = 0, fast_pa = 0;
    for (unsigned c = 0; c < ASYM_REPLAY_CLASSES; c++) {
        all += none.running[c];
        fast += none.fast[c];
        fast_pa += pa.fast[c];
    }
    /* In the record each thread is on each of the four CPUs equally often; two are fast. */
    assert_true(fast > 0.4 * all && fast < 0.6 * all);
    assert_true(fast_pa > 0 && fast_pa < all);
    close_record(&o);
}

/* Records n snapshots at one time, each with other threads. threads: of a snapshot. */
static void record_many_threads(struct record_fixture *f, unsigned threads, unsigned n)
{
    const struct asym_record_head head = {.version = "0.1", .policy = "none"};
    const unsigned sizes[] = {threads};
    struct asym_machine m;
    struct asym_record_writer *w;
    *f = (struct record_fixture){.n = 0};
    gen_plain_machine(&m, 4, 2);
    struct gen_load *load = gen_load_new(&m, sizes, 1);
    FILE *out = open_memstream(&f->bytes, &f->len);
    assert_non_null(out);
    assert_int_equal(asym_record_writer_new(out, &head, &w), 0);
    for (unsigned k = 0; k < n; k++) {
        struct asym_snapshot s = load->s;
        assert_int_equal(asym_record_writer_add(w, &s), 0);
        for (size_t i = 0; i < threads; i++)
            load->tasks[i].id.start++;
    }
    assert_int_equal(asym_record_writer_finish(w), 0);
    fclose(out);
    asym_record_writer_free(w);
    gen_load_free(load);
}

static int count_plans(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                       const struct asym_action *actions, size_t n)
{
    *(size_t *)ctx = number;
    return 0;
}

TEST(a_record_of_too_many_threads_is_refused_with_the_place)
{
    const unsigned most = ASYM_RECORD_MAX_THREADS / ASYM_RECORD_MAX_TASKS;
    size_t plans = 0;
    const struct asym_replay_watch watch = {.plan = count_plans, .ctx = &plans};
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f;
    struct asym_replay_check check;
    struct asym_error err = {""};
    record_many_threads(&f, ASYM_RECORD_MAX_TASKS, most + 1);
    struct opened o = open_record(&f);
    assert_int_equal(asym_replay_check(o.reader, o.settings, &watch, NULL, &check, &err), -EBADMSG);
    assert_int_equal(plans, most);
    assert_true(strncmp(err.text, "f: byte ", 8) == 0 && strstr(err.text, "more threads"));
    close_record(&o);
}

TEST(a_setting_that_is_not_known_is_named_without_escapes)
{
    const struct asym_record_setting setting = {"classify.no\x1b[2J", "1"};
    const struct asym_record_head head = {
        .version = "0\x1b]0;owned\x07", .policy = "pa", .settings = &setting, .n_settings = 1};
    struct asym_settings *settings;
    struct asym_error err = {""};
    assert_int_equal(asym_replay_settings(&head, &settings, &err), -EINVAL);
    assert_non_null(strstr(err.text, "(made by asymd 0\\x1b]0;owned\\x07): "));
    assert_null(strchr(err.text, '\x1b'));
}

TEST(a_policy_without_its_signals_is_refused)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f;
    struct asym_replay_tally tally;
    struct asym_error err = {""};
    struct record_fixture_plan plan = plain("pa");
    record_fixture_make(&f, &plan);
    struct opened o = open_record(&f);
    assert_int_equal(asym_replay_run(o.reader, o.settings, asym_policy_find("eshmp"), NULL, NULL, &tally, &err),
                     -ENODATA);
    assert_non_null(strstr(err.text, "record with --policy=eshmp"));
    close_record(&o);
}

TEST(what_if_shows_the_planned_mask_until_the_program_sets_its_own)
{
    ASYM_CLEANUP(asym_what_if_done) struct asym_what_if w;
    const struct asym_mask all = {{0xf}}, own = {{0x3}};
    const struct asym_taskid id = {.tid = 5, .tgid = 5, .start = 1};
    struct asym_task task = {.id = id, .cpu = 0, .mask = &all, .cpuset = &all};
    struct asym_snapshot s = {.tasks = &task, .n_tasks = 1};
    const struct asym_plan_task planned = {.target = 2};
    const struct asym_plan plan = {.tasks = &planned, .n_tasks = 1};
    const struct asym_action steer = {.kind = ASYM_ACTION_STEER, .id = id, .expect = all, .mask = {{0xc}}, .nice = -3};
    asym_what_if_init(&w);
    assert_int_equal(asym_what_if_show(&w, &s), 0);
    assert_int_equal(s.tasks[0].cpu, 0);
    const struct asym_outcome *outcomes = asym_what_if_apply(&w, &s, &plan, &steer, 1);
    assert_non_null(outcomes);
    assert_int_equal(outcomes[0].kind, ASYM_OUTCOME_DONE);
    s.tasks = &task;
    assert_int_equal(asym_what_if_show(&w, &s), 0);
    assert_int_equal(s.tasks[0].cpu, 2);
    assert_int_equal(s.tasks[0].nice, -3);
    assert_int_equal(s.tasks[0].mask->w[0], 0xc);
    /* A CPU of the mask stays. */
    task.cpu = 3;
    s.tasks = &task;
    assert_int_equal(asym_what_if_show(&w, &s), 0);
    assert_int_equal(s.tasks[0].cpu, 3);
    task.mask = &own;
    s.tasks = &task;
    assert_int_equal(asym_what_if_show(&w, &s), 0);
    assert_int_equal(s.tasks[0].mask->w[0], 0x3);
    assert_int_equal(s.tasks[0].nice, 0);
}

TEST_MAIN
