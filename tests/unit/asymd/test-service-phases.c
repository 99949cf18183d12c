/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the service answers a serial phase that the observer bpf has seen, and when it rests. The observer is a fake. */
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/asymd/service-internal.h"
#include "linux/observe/bpf.h"
#include "support/pretended-cpu.h"
#include "support/test.h"

/* --- the linker puts these in the place of the service's own (tests/CMakeLists.txt) --- */

static struct {
    int fd;
    bool changes, is_paused, follows, wants;
    bool may_doze, dozes; /* the answers of asym_phases_doze() and asym_phases_dozes() */
    asym_usec again;
    enum asym_bpf_hears hears;
    unsigned n_taken, n_cycles;
    asym_usec takes, charged; /* CPU time that a cycle seems to take */
} fake;

WRAPPED(int, asym_bpf_fd, const struct asym_source *source)
{
    return fake.fd;
}

WRAPPED(bool, asym_bpf_take, struct asym_source *source)
{
    fake.n_taken++;
    return fake.changes;
}

WRAPPED(void, asym_bpf_charge, struct asym_source *source, asym_usec cost)
{
    fake.charged += cost;
}

WRAPPED(void, asym_bpf_set, struct asym_source *source, const struct asym_daemon_settings *settings,
        enum asym_bpf_hears hears)
{
    fake.hears = hears;
}

WRAPPED(bool, asym_bpf_housekeeping, struct asym_source *source)
{
    return fake.follows;
}

WRAPPED(bool, asym_overrides_is_paused, const struct asym_overrides *o)
{
    return fake.is_paused;
}

WRAPPED(void, asym_prompt_want, struct asym_asker *asker, bool wants)
{
    fake.wants = wants;
}

WRAPPED(struct asym_phases *, asym_bpf_kernel, const struct asym_source *source)
{
    return NULL;
}

WRAPPED(bool, asym_phases_doze, struct asym_phases *p)
{
    return fake.may_doze;
}

WRAPPED(bool, asym_phases_dozes, const struct asym_phases *p)
{
    return fake.dozes;
}

WRAPPED(asym_usec, asym_engine_again, const struct asym_engine *e)
{
    return fake.again;
}

/* --- the service --- */

static int plan(void *userdata)
{
    fake.n_cycles++;
    asym_pretended_cpu += fake.takes;
    return 0;
}

static asym_usec no_others(void *userdata)
{
    return 0;
}

static struct asym_source bpf;
static struct asym_policy policy;
static struct asym_settings *settings;
static struct asym_run run;
static struct asym_service s;

static int set_up(void **state)
{
    memset(&fake, 0, sizeof fake);
    asym_pretended_cpu = 0;
    fake.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    fake.changes = fake.follows = true;
    policy = (struct asym_policy){.name = "serves", .serves_alone = true};
    assert_int_equal(asym_settings_new(&settings), 0);
    run = (struct asym_run){.settings = settings, .policy = &policy, .prompt = {.plan = plan, .others_pay = no_others}};
    s = (struct asym_service){.run = &run};
    s.observer.observers.links[ASYM_OBSERVER_BPF] = &bpf;
    assert_int_equal(sd_event_new(&s.event), 0);
    assert_int_equal(asym_service_phases_attach(&s), 0);
    return 0;
}

static int tear_down(void **state)
{
    asym_prompt_remove(&s.phases.asker);
    sd_event_unref(s.event);
    asym_settings_free(settings);
    close(fake.fd);
    return 0;
}

#define TEST_F(name) TEST_WITH(name, set_up, tear_down)

static void run_event(void)
{
    assert_int_equal(sd_event_run(s.event, 30 * ASYM_SEC), 1);
}

/* The descriptor stays readable in these tests. */
TEST_F(a_phase_is_answered_and_asymd_rests)
{
    run_event();
    assert_int_equal(fake.n_taken, 1);
    assert_int_equal(fake.n_cycles, 1);
    run_event(); /* the timer */
    assert_int_equal(fake.n_taken, 1);
    run_event();
    assert_int_equal(fake.n_cycles, 2);
    uint64_t until;
    assert_true(sd_event_source_get_time(s.phases.asker.rest, &until) >= 0);
    assert_true(until <= asym_clock_now() + 2 * ASYM_MSEC);
}

TEST_F(what_changes_nothing_is_no_reason_for_a_plan)
{
    fake.changes = false;
    run_event();
    assert_int_equal(fake.n_taken, 1);
    assert_int_equal(fake.n_cycles, 0);
}

TEST_F(answers_are_paid)
{
    fake.takes = 30 * ASYM_MSEC;
    run_event();
    assert_in_range(run.prompt.spent, 30 * ASYM_MSEC, 60 * ASYM_MSEC);
    assert_int_equal(fake.charged, run.prompt.spent);
}

static void exchange(const struct asym_policy_input *in, struct asym_assignment *ret)
{
    (void)in;
    (void)ret;
}

TEST_F(it_hears_under_a_policy_that_serves_and_not_in_a_pause)
{
    assert_true(fake.hears == ASYM_BPF_PHASES && fake.wants);
    fake.is_paused = true;
    asym_service_phases_housekeeping(&s);
    assert_true(fake.hears == ASYM_BPF_NOTHING && !fake.wants);
    run_event();
    assert_int_equal(fake.n_cycles, 0);
    fake.is_paused = false;
    policy.exchange = exchange;
    asym_service_phases_housekeeping(&s);
    assert_true(fake.hears == ASYM_BPF_BEGINS && !fake.wants);
    policy.exchange = NULL;
    policy.serves_alone = false;
    asym_service_phases_housekeeping(&s);
    assert_true(fake.hears == ASYM_BPF_NOTHING && !fake.wants);
}

TEST_F(the_priority_is_for_those_who_follow_and_may_have_it)
{
    fake.follows = false;
    asym_service_phases_housekeeping(&s);
    assert_true(fake.hears == ASYM_BPF_PHASES && !fake.wants);
    fake.follows = true;
    settings->enforce.realtime = false;
    asym_service_phases_housekeeping(&s);
    assert_true(fake.hears == ASYM_BPF_PHASES && !fake.wants);
}

TEST_WITH(without_the_observer_there_is_nothing_to_hear, NULL, NULL)
{
    struct asym_service none = {.run = &run};
    assert_int_equal(asym_service_phases_attach(&none), 0);
    asym_service_phases_housekeeping(&none);
    assert_null(none.phases.asker.io);
    asym_prompt_remove(&none.phases.asker);
}

TEST_F(asymd_dozes_only_where_the_last_sample_shows_no_program)
{
    const struct asym_proc procs[] = {{.flags = ASYM_PROC_SELF}, {.ppid = 1}};
    const asym_usec soon = 1100, late = 1000 + ASYM_SERVICE_HOUSEKEEPING;
    s.cycle.snapshot = (struct asym_snapshot){.procs = procs, .n_procs = 1};
    fake.may_doze = true;
    assert_int_equal(asym_service_phases_sleep(&s, 1000, 100), late);
    s.cycle.snapshot.n_procs = 2;
    assert_int_equal(asym_service_phases_sleep(&s, 1000, 100), soon);
    /* After a failed sample the last one is not looked at. */
    s.cycle.snapshot = (struct asym_snapshot){.procs = NULL, .n_procs = 1};
    s.failing_since = 1;
    assert_int_equal(asym_service_phases_sleep(&s, 1000, 100), soon);
    s.failing_since = 0;
    s.cycle.snapshot.n_procs = 0;
    fake.again = 1;
    assert_int_equal(asym_service_phases_sleep(&s, 1000, 100), soon);
    fake.again = 0;
    fake.may_doze = false;
    assert_int_equal(asym_service_phases_sleep(&s, 1000, 100), soon);
}

TEST_F(a_doze_ends_when_a_program_runs)
{
    const asym_usec begun = asym_clock_now(), late = begun + 2 * ASYM_SERVICE_HOUSEKEEPING;
    uint64_t due;
    assert_int_equal(sd_event_add_time(s.event, &s.timer, CLOCK_MONOTONIC, late, 0, NULL, NULL), 0);
    fake.may_doze = fake.dozes = true;
    (void)asym_service_phases_sleep(&s, begun, 100);
    asym_service_phases_wake_up(&s);
    assert_int_equal(sd_event_source_get_time(s.timer, &due), 0);
    assert_int_equal(due, late);
    fake.dozes = false;
    s.sampling = true;
    asym_service_phases_wake_up(&s);
    assert_int_equal(sd_event_source_get_time(s.timer, &due), 0);
    assert_int_equal(due, late);
    s.sampling = false;
    asym_service_phases_wake_up(&s);
    assert_int_equal(sd_event_source_get_time(s.timer, &due), 0);
    assert_int_equal(due, begun + 100);
    sd_event_source_unref(s.timer);
}

TEST_MAIN
