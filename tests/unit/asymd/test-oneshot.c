/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests what --once enforces, records, prints and returns, with the real engine, actuator and ledger, and a fake kernel. */
#include <fcntl.h>
#include <signal.h>

#include "base/clock.h"
#include "daemon/asymd/oneshot.h"
#include "linux/enforce/ledger-internal.h"
#include "support/engine-fixture.h"
#include "support/fake-kernel.h"
#include "support/limit-files.h"
#include "support/test.h"

/* No real process has these numbers: kernel.pid_max is at most 4194304. */
#define PID  2000000000
#define LAST 2000000002

#define TICK (100 * ASYM_MSEC)

static struct {
    char dir[64];
    struct engine_fixture planned;
    struct asym_ledger *ledger;
    struct asym_settings *settings;
    struct asym_run run;
    struct asym_oneshot oneshot;
    struct asym_source source;
    size_t n_feedback; /* outcomes that the source got as DONE */
    size_t n_samples, n_told;
    char said[256];
    struct asym_error err;
} f;

static void feedback(struct asym_source *source, const struct asym_feedback *got)
{
    assert_ptr_equal(source, &f.source);
    f.n_told++;
    for (size_t i = 0; i < got->n_actions; i++)
        f.n_feedback += got->outcomes[i].kind == ASYM_OUTCOME_DONE;
}

/* CPUs 4-7 are fast. The plan gives them to each of two threads, which may run on all CPUs. */
static void plan(void)
{
    struct engine_fixture *w = &f.planned;
    const unsigned proc = engine_fixture_proc(w, PID);
    for (int32_t tid = PID + 1; tid <= LAST; tid++) {
        engine_fixture_thread(w, proc, tid, 5);
        fake_kernel_thread(PID, tid, fake_mask(0xff))->start = (uint64_t)tid * 10;
    }
    engine_fixture_step(w, TICK);
    f.oneshot.cycle = (struct asym_cycle){.source = &f.source,
                                          .actuator = asym_actuator_dry(),
                                          .engine = w->engine,
                                          .plan = w->plan,
                                          .actions = w->actions,
                                          .n_actions = w->n};
}

static int set_up(void **state)
{
    char option[128];
    memset(&f, 0, sizeof f);
    fake_kernel_reset();
    engine_fixture_init(&f.planned);
    snprintf(f.dir, sizeof f.dir, "/tmp/asymd-once-XXXXXX");
    if (!mkdtemp(f.dir) || asym_ledger_open(f.dir, &f.ledger, NULL) < 0 || asym_settings_new(&f.settings) < 0)
        return -1;
    fake_kernel_cpus(f.ledger, "0-7", "0-7", "");
    snprintf(option, sizeof option, "asymd.state_dir=%s", f.dir);
    if (asym_settings_set(f.settings, option, "the test", NULL) < 0)
        return -1;
    f.run.settings = f.settings;
    f.source.feedback = feedback;
    plan();
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    asym_cycle_done(&f.oneshot.cycle);
    asym_ledger_close(f.ledger);
    asym_settings_free(f.settings);
    snprintf(command, sizeof command, "rm -rf %s", f.dir);
    return system(command);
}

/* Returns the result; f.said gets what was printed. */
static int enforce(void)
{
    int pipe[2];
    const int out = dup(STDOUT_FILENO);
    assert_true(out >= 0 && pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0);
    fflush(stdout);
    dup2(pipe[1], STDOUT_FILENO);
    const int r = asym_once_enforce(&f.oneshot, &f.run, f.ledger, &f.err);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    const ssize_t n = read(pipe[0], f.said, sizeof f.said - 1);
    f.said[n > 0 ? n : 0] = '\0';
    close(pipe[0]);
    close(pipe[1]);
    close(out);
    /* The actuator, which needs the ledger, is closed. */
    assert_ptr_equal(f.oneshot.cycle.actuator, asym_actuator_dry());
    return r;
}

static void expect(int32_t tid, uint64_t bits)
{
    const struct asym_ledger_entry *e = asym_ledger_find(f.ledger, tid);
    assert_int_equal(fake_kernel_find(tid)->mask.w[0], bits);
    assert_true(!!e == (bits != 0xff));
    if (e)
        assert_int_equal(e->original.w[0], 0xff);
}

TEST_WITH(the_plan_is_enforced_and_on_record, set_up, tear_down)
{
    assert_int_equal(enforce(), 0);
    assert_string_equal(f.said, "steered 2 of 2 threads; asymd --restore undoes this\n");
    expect(PID + 1, 0xf0);
    expect(LAST, 0xf0);
    assert_int_equal(f.n_feedback, 2);
    for (size_t i = 0; i < f.planned.n_threads; i++)
        f.planned.threads[i].mask = fake_mask(0xf0);
    engine_fixture_step(&f.planned, TICK);
    assert_int_equal(f.planned.n, 0);
}

TEST_WITH(a_refusal_is_no_error_while_another_thread_is_steered, set_up, tear_down)
{
    fake_kernel_fail(fake_kernel_find(LAST), FAKE_SET_MASK, -EPERM, 0);
    assert_int_equal(enforce(), 0);
    assert_string_equal(f.said, "steered 1 of 2 threads; asymd --restore undoes this\n");
    expect(PID + 1, 0xf0);
    expect(LAST, 0xff);
}

TEST_WITH(nothing_but_refusals_is_an_error, set_up, tear_down)
{
    fake_kernel_fail(fake_kernel_find(PID + 1), FAKE_SET_MASK, -EPERM, 0);
    fake_kernel_fail(fake_kernel_find(LAST), FAKE_SET_MASK, -EACCES, 0);
    assert_int_equal(enforce(), -EPERM);
    assert_string_equal(f.err.text, "not permitted to steer 2 threads: asymd needs CAP_SYS_NICE");
    assert_string_equal(f.said, "steered 0 of 2 threads; asymd --restore undoes this\n");
    expect(PID + 1, 0xff);
    expect(LAST, 0xff);
}

TEST_WITH(threads_that_have_ended_are_no_error, set_up, tear_down)
{
    fake_kernel_end(PID + 1);
    fake_kernel_end(LAST);
    assert_int_equal(enforce(), 0);
    assert_string_equal(f.said, "steered 0 of 2 threads; asymd --restore undoes this\n");
}

TEST_WITH(without_a_ledger_no_thread_is_steered, set_up, tear_down)
{
    char wanted[256];
    signal(SIGXFSZ, SIG_IGN);
    limit_files(1);
    const int r = enforce();
    limit_files(RLIM_INFINITY);
    assert_int_equal(r, -EFBIG);
    snprintf(wanted, sizeof wanted, "cannot write the ledger in %s: %s", f.dir, strerror(EFBIG));
    assert_string_equal(f.err.text, wanted);
    assert_string_equal(f.said, "");
    expect(PID + 1, 0xff);
    expect(LAST, 0xff);
    assert_int_equal(f.n_feedback, 0);
}

/* The third sample fails. */
static int next_of_three(struct asym_source *source, struct asym_snapshot *ret)
{
    *ret = f.planned.snapshot;
    ret->now += (asym_usec)++f.n_samples * TICK;
    return f.n_samples < 3 ? 1 : -EIO;
}

/* A source that counts needs to know which threads the plan has. */
TEST_WITH(the_source_is_told_of_each_plan_but_the_last, set_up, tear_down)
{
    f.source.next = next_of_three;
    f.run.root.live = true;
    f.run.policy = &engine_fixture_policy_type;
    f.oneshot.started = asym_clock_now() + 3600 * ASYM_SEC;
    assert_int_equal(asym_oneshot_observe(&f.oneshot, &f.run, &f.err), -EIO);
    assert_int_equal(f.n_samples, 3);
    assert_int_equal(f.n_told, 2);
}

TEST_MAIN
