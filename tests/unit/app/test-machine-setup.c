/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine of a run: what asymd reads, and what it keeps when it reads the machine again. */
#include <malloc.h>

#include "app/machine-check.h"
#include "app/machine-setup.h"
#include "base/mask.h"
#include "config/settings.h"
#include "linux/sys/proc-parse.h"
#include "support/engine-fixture.h"
#include "support/tree.h"
#include "support/test.h"

struct fixture {
    struct tree tree;
    struct asym_invocation cli;
    struct asym_run run;
};

/* malloc fills all memory with non-zero bytes (a sanitizer does so by itself): an uninitialised field gets a wrong value. */
static void set_up(struct fixture *f)
{
    mallopt(M_PERTURB, 0x5a);
    tree_make(&f->tree);
    tree_plain(&f->tree, 4);
    f->run = (struct asym_run){.cli = &f->cli, .root = {.fd = -1}};
    assert_int_equal(asym_settings_new(&f->run.settings), 0);
    assert_int_equal(asym_settings_set(f->run.settings, "asymmetry.slow=2-3", "test", NULL), 0);
    assert_int_equal(asym_root_open(f->tree.path, &f->run.root, NULL), 0);
}

static void tear_down(struct fixture *f)
{
    asym_settings_free(f->run.settings);
    asym_root_done(&f->run.root);
    free(f->run.machine);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct fixture, f, set_up, tear_down)

TEST_F(slow_cpus_have_a_speed_each)
{
    static const struct {
        const char *slow, *speeds, *wrong; /* wrong: a part of the message; NULL: they are accepted */
        double want[4];
    } rows[] = {
        {"", "1:75% 2-3:50%", NULL, {1, 0.75, 0.5, 0.5}},
        {"1-3", "2:75% 50%", NULL, {1, 0.5, 0.75, 0.5}},
        {"1-3", "25%", NULL, {1, 0.25, 0.25, 0.25}},
        {"1-3", "2:75%", "leaves out CPUs 1,3", {0}},
        {"1-2", "2:75% 3:50% 25%", "CPUs 3 are none of asymmetry.slow", {0}},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char slow[64], speeds[64];
        struct asym_error err = {""};
        snprintf(slow, sizeof slow, "asymmetry.slow=%s", rows[i].slow);
        snprintf(speeds, sizeof speeds, "asymmetry.slow_speed=%s", rows[i].speeds);
        assert_int_equal(asym_settings_set(f->run.settings, slow, "test", NULL), 0);
        assert_int_equal(asym_settings_set(f->run.settings, speeds, "test", NULL), 0);
        const int r = asym_run_machine(&f->run, true, &err);
        if ((r < 0) != (rows[i].wrong != NULL) || (rows[i].wrong && !strstr(err.text, rows[i].wrong)))
            fail_msg("%s: %s", speeds, err.text);
        for (size_t c = 1; r >= 0 && c < 4; c++) {
            const double share = f->run.machine->cpus[c].speed / f->run.machine->cpus[0].speed;
            assert_true(share > rows[i].want[c] - 0.01 && share < rows[i].want[c] + 0.01);
        }
    }
}

TEST_F(the_first_reading_starts_from_nothing)
{
    assert_int_equal(asym_run_machine(&f->run, true, NULL), 0);
    assert_int_equal(f->run.machine->generation, 1);
    engine_fixture_assert_mask(&f->run.machine->usable, "0-3");
    engine_fixture_assert_mask(&f->run.machine->slow, "2-3");
    engine_fixture_assert_mask(&f->run.slow, "2-3");
    assert_true(f->run.assumed_slow);
}

TEST_F(a_count_that_is_too_large_names_the_cpus)
{
    struct asym_error err = {""};
    assert_int_equal(asym_settings_set(f->run.settings, "asymmetry.slow=9", "--slow", NULL), 0);
    assert_int_equal(asym_run_machine(&f->run, true, &err), -EINVAL);
    assert_non_null(strstr(err.text, "9 of 4 usable CPUs (0-3) cannot be made slow: accepted are 1 to 3"));
}

TEST_F(speeds_that_leave_out_a_cpu_say_where_they_are_set)
{
    struct asym_error err = {""};
    assert_int_equal(asym_settings_set(f->run.settings, "machine.speeds=0:2", "asymd.conf:2", NULL), 0);
    assert_int_equal(asym_run_machine(&f->run, true, &err), -EINVAL);
    assert_string_equal(err.text,
                        "asymd.conf:2: machine.speeds: 0:2 leaves out CPUs 1-3: it has to name every usable CPU");
}

TEST_F(without_profiles_the_setting_that_names_their_file_is_named)
{
    assert_int_equal(asym_run_machine(&f->run, true, NULL), 0);
    assert_int_equal(asym_settings_set(f->run.settings, "counters.profiles=/nonexistent/profiles", "test", NULL), 0);
    assert_int_equal(asym_capabilities_read(&f->run.capabilities, &f->run.root, f->run.machine, f->run.settings, NULL),
                     0);
    assert_non_null(strstr(f->run.capabilities.missing[ASYM_SIGNAL_PROFILE], "counters.profiles"));
    asym_capabilities_done(&f->run.capabilities);
}

TEST_F(a_later_reading_keeps_the_place_the_count_and_what_is_slow)
{
    assert_int_equal(asym_run_machine(&f->run, true, NULL), 0);
    const struct asym_machine *place = f->run.machine;
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-2\n");
    assert_int_equal(asym_run_machine(&f->run, false, NULL), 0);
    assert_ptr_equal(f->run.machine, place);
    assert_int_equal(place->generation, 2);
    engine_fixture_assert_mask(&place->usable, "0-2");
    engine_fixture_assert_mask(&place->slow, "2");
    /* CPU 3 is slow again when it is online again. */
    engine_fixture_assert_mask(&f->run.slow, "2-3");
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-3\n");
    assert_int_equal(asym_run_machine(&f->run, false, NULL), 0);
    assert_int_equal(place->generation, 3);
    engine_fixture_assert_mask(&place->slow, "2-3");
}

/* asymd looks at a few CPUs at a time for changes of their abilities, and acts on a bounded number of changes. */
enum { N_WATCHED = 40 };

struct watch {
    struct asym_mask cpus;
    struct asym_cpu_facts facts;
};

static void write_rank(struct fixture *f, unsigned cpu, unsigned rank)
{
    tree_write_cpu(&f->tree, cpu, "cpufreq/amd_pstate_prefcore_ranking", "%u\n", rank);
}

static struct watch begin_watch(struct fixture *f)
{
    struct watch w = {.cpus = {{0}}};
    for (unsigned c = 0; c < N_WATCHED; c++) {
        asym_mask_set(&w.cpus, c);
        write_rank(f, c, 100);
    }
    asym_watch_read_facts(&w.facts, &f->run.root, &w.cpus, ASYM_SEC);
    return w;
}

static bool look(struct fixture *f, struct watch *w, unsigned second)
{
    return asym_watch_facts_changed(&w->facts, &f->run.root, &w->cpus, second * ASYM_SEC);
}

/* Three looks see all of 40 CPUs. */
TEST_F(a_change_of_any_cpu_is_seen_in_its_turn)
{
    static const unsigned cpus[] = {0, 15, 16, 31, 32, 39};
    struct watch w = begin_watch(f);
    unsigned second = 1;
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        unsigned seen = 0;
        for (unsigned n = 0; n < 3; n++)
            assert_false(look(f, &w, ++second));
        write_rank(f, cpus[i], 200);
        for (unsigned n = 0; n < 3; n++)
            seen += look(f, &w, ++second);
        assert_int_equal(seen, 1);
        second += 100;
    }
}

TEST_F(figures_that_keep_changing_are_acted_on_every_ten_seconds)
{
    struct watch w = begin_watch(f);
    unsigned seen = 0;
    for (unsigned second = 2; second < 122; second++) {
        for (unsigned c = 0; c < N_WATCHED; c++)
            write_rank(f, c, second);
        seen += look(f, &w, second);
    }
    assert_in_range(seen, 12, 15);
    for (unsigned second = 122; second < 142; second++) /* the last change is acted on, too */
        seen += look(f, &w, second);
    assert_false(look(f, &w, 500));
    assert_in_range(seen, 13, 16);
}

/* -- the detection of RTX in a dry run: which programs count as unread, and that it waits for no answer that cannot come -- */

#define PID 10

enum { NEVER = 1 }; /* no answer comes */

/* Refuses `refusals` requests, then answers each with the error. */
struct fake_reader {
    struct asym_proc_reader port;
    int refusal, error;
    unsigned refusals, n_requests, n_taken;
    struct asym_read_request last_request;
    bool has_request;
};

static int ask(struct asym_proc_reader *port, const struct asym_read_request *request)
{
    struct fake_reader *r = (struct fake_reader *)(void *)port;
    r->n_requests++;
    if (r->refusals > 0) {
        r->refusals--;
        return r->refusal;
    }
    r->last_request = *request;
    r->has_request = true;
    return 0;
}

static int take(struct asym_proc_reader *port, struct asym_read_answer *ret)
{
    struct fake_reader *r = (struct fake_reader *)(void *)port;
    r->n_taken++;
    if (!r->has_request || r->error == NEVER)
        return 0;
    r->has_request = false;
    *ret = (struct asym_read_answer){.pid = r->last_request.pid,
                                     .what = r->last_request.what,
                                     .start = r->last_request.start,
                                     .tag = r->last_request.tag,
                                     .error = r->error,
                                     .maps = r->error == 0 ? ASYM_MAPS_PAGE : 0};
    if (r->error == -EAGAIN)
        r->error = 0;
    return 1;
}

#define UID "Uid:\t2002\t2002\t2002\t2002\n"

static const struct {
    const char *status; /* of the process; NULL: it has ended */
    int refusal;
    unsigned refusals;
    int error; /* of the answer */
    unsigned n_requests, unread;
    enum asym_rtxd_detection detection;
} cases[] = {
    {.status = UID, .n_requests = 1, .detection = ASYM_RTXD_DETECTION_REPORTS},
    /* A process that has ended is not unread, whether asymd or the helper finds that out. */
    {.status = NULL, .n_requests = 0},
    {.status = UID, .error = -ESRCH, .n_requests = 1},
    /* Its user is unknown. */
    {.status = "Name:\tx\n", .n_requests = 0, .unread = 1},
    /* The reader puts it off, refuses it, or has no helper. */
    {.status = UID, .refusal = -EAGAIN, .refusals = 3, .n_requests = 4, .detection = ASYM_RTXD_DETECTION_REPORTS},
    {.status = UID, .error = -EAGAIN, .n_requests = 2, .detection = ASYM_RTXD_DETECTION_REPORTS},
    {.status = UID, .refusal = -EPERM, .refusals = 1, .n_requests = 1, .unread = 1},
    {.status = UID, .refusal = -ENOENT, .refusals = 1, .n_requests = 1, .unread = 1},
    /* The helper hangs, or ends. */
    {.status = UID, .error = -ETIME, .n_requests = 1, .unread = 1},
    {.status = UID, .error = -EPIPE, .n_requests = 1, .unread = 1},
    {.status = UID, .error = -EACCES, .n_requests = 1, .unread = 1},
    {.status = UID, .error = NEVER, .n_requests = 1, .unread = 1},
};

TEST(only_a_process_that_has_ended_is_not_reported)
{
    ASYM_CLEANUP(tree_remove) struct tree tree;
    const struct asym_app app = {.id = {.tid = PID, .tgid = PID, .start = 5}};
    const struct asym_snapshot s = {.apps = &app, .n_apps = 1};
    tree_make(&tree);
    tree_machine(&tree, "0", "0");
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct fake_reader reader = {.port = {.ask = ask, .take = take},
                                     .refusal = cases[i].refusal,
                                     .refusals = cases[i].refusals,
                                     .error = cases[i].error};
        ASYM_CLEANUP(asym_root_done) struct asym_root root;
        uint32_t unread;
        if (cases[i].status)
            tree_write(&tree, "proc/10/status", "%s", cases[i].status);
        else
            tree_unlink(&tree, "proc/10/status");
        assert_int_equal(asym_root_open(tree.path, &root, NULL), 0);
        ASYM_AUTO_FREE enum asym_rtxd_detection *detection = asym_machine_check_rtx(&root, &reader.port, &s, &unread);
        assert_non_null(detection);
        assert_int_equal(reader.n_requests, cases[i].n_requests);
        /* While it waits, it looks for answers 200 times in its second. */
        assert_true(reader.n_taken <= 2 * cases[i].n_requests + 1 || cases[i].error == NEVER);
        assert_int_equal(unread, cases[i].unread);
        assert_int_equal(*detection, cases[i].detection);
    }
}

TEST_MAIN
