/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders to a running service, and its answers. The service is real; its source is a fixture with one program, whose
 * process is a child of the test; its actuator sets the masks of the fixture.
 */
#include <signal.h>

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

#include "app/settings-setup.h"
#include "base/clock.h"
#include "base/mask.h"
#include "base/text.h"
#include "daemon/asymd/service-internal.h"
#include "linux/sys/thread.h"
#include "report/json.h"
#include "explain/explain.h"
#include "support/captured-log.h"
#include "support/engine-fixture.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

#define TICK (100 * ASYM_MSEC)

struct control_fixture {
    struct asym_error err; /* of the last call that failed */
    struct engine_fixture w;
    struct asym_source source;
    struct asym_actuator actuator;
    struct asym_invocation cli;
    struct asym_run run;
    struct asym_service s;
    struct tree tree;
    struct engine_fixture_thread *thread;
    pid_t child;
    unsigned n_changed, n_samples[ASYM_N_METRICS];
    char text[8192];
};

static struct control_fixture *fixture;

/* PF_KTHREAD in the flags of /proc/PID/stat. */
#define KTHREAD 0x00200000u

/* Flags that each process has, in addition to its own: the linker puts this function in place of the call. */
static uint32_t more_flags;

WRAPPED(int, asym_thread_get_stat, pid_t tgid, pid_t tid, struct asym_stat *ret)
{
    const int r = __real_asym_thread_get_stat(tgid, tid, ret);
    if (r >= 0)
        ret->flags |= more_flags;
    return r;
}

/*
 * The steps of asymd, a letter each: F(IFO) and o(ther), which take effect nowhere, a(pply), f(eedback
 * to the source). The thread seems to have own_policy. If sched_error is not 0, the kernel refuses another policy
 * with it; refuses_other: the next one to SCHED_OTHER.
 */
static char steps[32];
static int own_policy, sched_error;
static bool refuses_other;
static int n_expiries; /* signals of its timer while asymd acts */

static void note(const char *step)
{
    if (strlen(steps) + 1 < sizeof steps)
        strcat(steps, step);
}

/* The test makes the signals of the timer itself. */
WRAPPED(int, timer_settime, timer_t timer, int flags, const struct itimerspec *when, struct itimerspec *before)
{
    return 0;
}

WRAPPED(int, sched_getscheduler, pid_t pid)
{
    assert_int_equal(pid, 0);
    return own_policy;
}

WRAPPED(int, sched_setscheduler, pid_t pid, int policy, const struct sched_param *param)
{
    const bool fifo = policy == (SCHED_FIFO | SCHED_RESET_ON_FORK);
    assert_int_equal(pid, 0);
    assert_true(fifo || policy == (SCHED_OTHER | SCHED_RESET_ON_FORK));
    assert_int_equal(param->sched_priority, fifo);
    errno = sched_error ? sched_error : EPERM;
    if (sched_error || (!fifo && refuses_other)) {
        refuses_other = false;
        return -1;
    }
    note(fifo ? "F" : "o");
    return 0;
}

WRAPPED(int, asym_observer_rule_of, struct asym_observer *o, const struct asym_taskid *id, struct asym_proc *ret)
{
    assert_non_null(o);
    *ret = (struct asym_proc){.id = *id};
    return 1;
}

/* The processes of a job that the observer has, and the number of that. */
static struct asym_taskid members[2];
static int32_t job;

WRAPPED(void, asym_observer_job_each, struct asym_observer *o, int32_t pgrp,
        void (*fn)(void *ctx, const struct asym_taskid *proc), void *ctx)
{
    assert_non_null(o);
    for (size_t i = 0; job > 0 && pgrp == job && i < ASYM_LENGTH(members); i++)
        fn(ctx, &members[i]);
}

/* The share of a CPU that reading other processes may take, as last set. */
static double reading_share;

WRAPPED(void, asym_proc_reader_set, struct asym_proc_reader *reader, double percent)
{
    reading_share = percent;
    __real_asym_proc_reader_set(reader, percent);
}

static void feedback(struct asym_source *source, const struct asym_feedback *result)
{
    if (result->n_actions > 0)
        note("f");
}

static int next(struct asym_source *source, struct asym_snapshot *ret)
{
    engine_fixture_sample(&fixture->w, TICK);
    *ret = fixture->w.snapshot;
    return 1;
}

static int apply(struct asym_actuator *actuator, const struct asym_action *actions, size_t n,
                 struct asym_outcome *ret_outcomes)
{
    for (int i = 0; n > 0 && i < n_expiries; i++)
        raise(SIGRTMIN);
    if (n > 0)
        note("a");
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(actions[i].id.tid, fixture->thread->task.id.tid);
        fixture->thread->mask = actions[i].mask;
        ret_outcomes[i] = (struct asym_outcome){ASYM_OUTCOME_DONE, 0};
    }
    return 0;
}

static pid_t start_child(void)
{
    const pid_t child = asym_process_fork();
    if (child > 0)
        return child;
    for (;;)
        pause();
}

static void setup(struct control_fixture *f)
{
    fixture = f;
    struct asym_error err = {""};
    engine_fixture_init(&f->w);
    /* The thread of the fixture is that of the child. */
    struct asym_stat stat;
    f->child = start_child();
    assert_int_equal(asym_thread_get_stat(f->child, f->child, &stat), 0);
    f->thread = engine_fixture_thread(&f->w, engine_fixture_proc(&f->w, f->child), f->child, 5);
    f->thread->task.id.start = f->w.procs[0].id.start = stat.start;
    tree_make(&f->tree);
    f->source = (struct asym_source){.next = next, .feedback = feedback};
    f->actuator = (struct asym_actuator){.apply = apply};
    f->run = (struct asym_run){.cli = &f->cli, .machine = &f->w.machine, .policy = &engine_fixture_policy_type};
    assert_int_equal(asym_settings_new(&f->run.settings), 0);
    struct asym_service *s = &f->s;
    s->run = &f->run;
    s->actuator = &f->actuator;
    s->observer.source = &f->source;
    assert_int_equal(asym_proc_reader_new(NULL, asym_clock_now, &s->observer.reader), 0);
    assert_int_equal(asym_service_control_open(s), 0);
    assert_int_equal(sd_event_new(&s->event), 0);
    assert_int_equal(asym_ledger_open(f->tree.path, &s->ledger, &err), 0);
    s->cycle = (struct asym_cycle){
        .source = s->observer.source, .actuator = s->actuator, .engine = ASYM_TAKE(f->w.engine)};
    assert_int_equal(asym_service_cycle(s), 0);
    engine_fixture_assert_mask(&f->thread->mask, "4-7");
}

static void end_child(struct control_fixture *f)
{
    int status;
    if (f->child > 0) {
        assert_int_equal(asym_process_signal(f->child, SIGKILL), 0);
        assert_int_equal(asym_process_wait(f->child, 60, &status), 0);
    }
    f->child = 0;
}

static void teardown(struct control_fixture *f)
{
    end_child(f);
    asym_service_control_close(&f->s);
    asym_cycle_done(&f->s.cycle);
    f->s.observer.reader->close(f->s.observer.reader);
    asym_ledger_close(f->s.ledger);
    sd_event_unref(f->s.event);
    asym_settings_free(f->run.settings);
    tree_remove(&f->tree);
    engine_fixture_done(&f->w);
}

#define TEST_F(name) TEST_IN(name, struct control_fixture, f, setup, teardown)

static void assert_steered(struct control_fixture *f, const char *cpus)
{
    engine_fixture_assert_mask(&f->thread->mask, cpus);
}

static void changed(struct asym_service *s)
{
    assert_ptr_equal(s, &fixture->s);
    fixture->n_changed++;
}

static uint64_t count_decisions(const struct control_fixture *f)
{
    return asym_monitor_last_decision(f->s.control.monitor);
}

TEST_F(a_pause_takes_effect_at_once_and_so_does_its_end)
{
    struct asym_service_facts facts;
    const uint64_t before = count_decisions(f);
    f->s.control.changed = changed;
    assert_int_equal(asym_service_pause(&f->s, 0, &f->err), 0);
    assert_steered(f, "0-7");
    asym_service_facts(&f->s, &facts);
    assert_true(facts.paused);
    assert_int_equal(facts.paused_until, 0);
    assert_int_equal(count_decisions(f), before + 1);
    assert_int_equal(f->n_changed, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_steered(f, "0-7");
    asym_service_resume(&f->s);
    assert_steered(f, "4-7");
    asym_service_facts(&f->s, &facts);
    assert_false(facts.paused);
    assert_int_equal(count_decisions(f), before + 2);
    assert_int_equal(f->n_changed, 2);
    f->s.control.changed = NULL;
    asym_service_resume(&f->s);
    assert_int_equal(asym_service_pause(&f->s, 0, &f->err), 0);
    assert_int_equal(f->n_changed, 2);
}

static void pause_and_resume(struct control_fixture *f)
{
    struct asym_error err = {""};
    steps[0] = '\0';
    assert_int_equal(asym_service_pause(&f->s, 0, &err), 0);
    assert_int_equal(asym_service_cycle(&f->s), 0);
    asym_service_resume(&f->s);
}

/* Samples and plans are not: they take as long as the machine has threads. A cycle without a change keeps the priority as it is. */
TEST_F(changes_have_real_time_priority)
{
    static const struct {
        const char *option;
        int own_policy, error;
        const char *steps;
    } rows[] = {{"enforce.realtime=yes", SCHED_OTHER, 0, "FaofFaof"},
                {"enforce.realtime=yes", SCHED_OTHER | SCHED_RESET_ON_FORK, 0, "FaofFaof"},
                {"enforce.realtime=yes", SCHED_FIFO | SCHED_RESET_ON_FORK, 0, "afaf"},
                {"enforce.realtime=yes", SCHED_RR, 0, "afaf"},
                {"enforce.realtime=yes", SCHED_IDLE, 0, "afaf"},
                {"enforce.realtime=yes", SCHED_OTHER, EPERM, "afaf"},
                {"enforce.realtime=no", SCHED_OTHER, 0, "afaf"}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        assert_int_equal(asym_settings_set(f->run.settings, rows[i].option, "test", NULL), 0);
        own_policy = rows[i].own_policy;
        sched_error = rows[i].error;
        pause_and_resume(f);
        assert_string_equal(steps, rows[i].steps);
    }
    own_policy = sched_error = 0;
}

/* Each signal of the timer asks the kernel again. */
TEST_F(a_priority_that_stays_is_taken_by_the_timer)
{
    own_policy = SCHED_OTHER;
    refuses_other = true;
    steps[0] = '\0';
    assert_int_equal(asym_service_pause(&f->s, 0, &f->err), 0);
    assert_string_equal(steps, "Faf");
    raise(SIGRTMIN);
    raise(SIGRTMIN);
    assert_string_equal(steps, "Fafo");
    asym_service_resume(&f->s);
}

TEST_F(a_refused_priority_is_logged_once)
{
    own_policy = SCHED_OTHER;
    sched_error = EPERM;
    f->run.log.level = LOG_INFO;
    captured_log_begin();
    pause_and_resume(f);
    pause_and_resume(f);
    sched_error = 0;
    captured_log_end(f->text, sizeof f->text);
    assert_int_equal(captured_log_count(f->text, "no real-time priority"), 1);
}

/* The sentences are those of asymctl why. */
TEST_F(a_change_of_class_is_logged_in_the_sentences_of_why)
{
    struct asym_service_explanation e;
    char why[512];
    asym_monitor_free(ASYM_TAKE(f->s.control.monitor)); /* no class has a line yet */
    assert_int_equal(asym_monitor_new(&f->s.control.monitor), 0);
    f->run.log.level = LOG_INFO;
    captured_log_begin();
    pause_and_resume(f);
    captured_log_end(f->text, sizeof f->text);
    assert_int_equal(asym_service_explain(&f->s, f->child, &e), 0);
    asym_explain_summary(&e.e, why, sizeof why);
    assert_int_equal(captured_log_count(why, " is serial: it has 1 runnable thread. "), 1);
    assert_int_equal(captured_log_count(f->text, why), 1);
}

/* A reload may have changed the budget: housekeeping passes it on. */
TEST_F(a_new_budget_is_in_force_at_the_next_housekeeping)
{
    static const char *const budgets[] = {"asymd.cpu_budget=2", "asymd.cpu_budget=0.5"};
    for (size_t i = 0; i < ASYM_LENGTH(budgets); i++) {
        assert_int_equal(asym_settings_set(f->run.settings, budgets[i], "test", NULL), 0);
        asym_service_housekeeping(&f->s, asym_clock_now());
        const double want = f->run.settings->daemon.cpu_budget * ASYM_OBSERVER_READING_SHARE;
        assert_true(reading_share >= want && reading_share <= want);
    }
}

TEST_F(changes_that_take_long_lose_the_real_time_priority)
{
    own_policy = SCHED_OTHER;
    for (n_expiries = 2; n_expiries > 0; n_expiries--) {
        pause_and_resume(f);
        assert_string_equal(steps, n_expiries == 2 ? "FoafFoaf" : "FaofFaof");
    }
}

TEST_F(a_pause_with_a_time_ends_by_itself)
{
    struct asym_service_facts facts;
    assert_int_equal(asym_service_pause(&f->s, 1, &f->err), 0);
    assert_steered(f, "0-7");
    asym_service_facts(&f->s, &facts);
    const uint64_t now = asym_clock_read(CLOCK_REALTIME);
    assert_in_range(facts.paused_until, now - 600 * ASYM_SEC, now + ASYM_SEC);
    assert_int_equal(sd_event_run(f->s.event, 60 * ASYM_SEC), 1);
    assert_steered(f, "4-7");
    asym_service_facts(&f->s, &facts);
    assert_false(facts.paused);
    assert_int_equal(facts.paused_until, 0);
}

TEST_F(the_last_pause_counts)
{
    assert_int_equal(asym_service_pause(&f->s, 1, &f->err), 0);
    assert_int_equal(asym_service_pause(&f->s, 0, &f->err), 0);
    assert_int_equal(sd_event_run(f->s.event, 1500 * ASYM_MSEC), 0);
    assert_steered(f, "0-7");
    assert_int_equal(asym_service_pause(&f->s, ASYM_PAUSE_MAX, &f->err), 0);
    assert_int_equal(asym_service_pause(&f->s, ASYM_PAUSE_MAX + 1, &f->err), -EINVAL);
    assert_int_equal(asym_service_pause(&f->s, UINT64_MAX, &f->err), -EINVAL);
    assert_true(*f->err.text);
    asym_service_resume(&f->s);
    assert_int_equal(asym_service_pause(&f->s, ASYM_PAUSE_MAX + 1, &f->err), -EINVAL);
    assert_steered(f, "4-7");
}

/* The sources cannot return the last snapshot while another one is in progress. */
TEST_F(during_a_sample_an_order_waits_for_its_end)
{
    f->s.sampling = true;
    f->s.control.changed = changed;
    assert_int_equal(asym_service_pause(&f->s, 0, &f->err), 0);
    assert_steered(f, "4-7");
    assert_int_equal(f->n_changed, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(asym_service_cycle(&f->s), 0);
        assert_steered(f, "0-7");
        assert_int_equal(f->n_changed, 2);
    }
}

/* So the bus forgets what it has kept, and announces the number of steered threads. */
TEST_F(each_order_for_a_program_is_announced)
{
    f->s.control.changed = changed;
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_SLOW, 0, &f->err), 0);
    assert_int_equal(f->n_changed, 1);
    assert_int_equal(asym_service_unset_program(&f->s, f->child, &f->err), 0);
    assert_int_equal(f->n_changed, 2);
    assert_int_equal(asym_service_unset_program(&f->s, INT32_MAX, &f->err), -ESRCH);
    assert_int_equal(f->n_changed, 2);
}

static void add_sentence(void *ctx, const char *sentence)
{
    struct control_fixture *f = ctx;
    const size_t used = strlen(f->text);
    snprintf(f->text + used, sizeof f->text - used, "%s\n", sentence);
}

static void assert_explained(struct control_fixture *f, const char *says)
{
    struct asym_service_explanation e;
    *f->text = '\0';
    assert_int_equal(asym_service_explain_now(&f->s, f->child, &e), 0);
    asym_explain_sentences(&e.e, add_sentence, f);
    if (!strstr(f->text, says))
        fail_msg("'%s' does not say '%s'", f->text, says);
}

TEST_F(a_process_is_ignored_given_back_to_the_rules_and_ruled)
{
    char said[128];
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_IGNORE, 0, &f->err), 0);
    assert_steered(f, "0-7");
    assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_steered(f, "0-7");
    assert_int_equal(asym_service_unset_program(&f->s, f->child, &f->err), 0);
    assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_steered(f, "4-7");
    engine_fixture_order(&f->w, f->child, 2, false);
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_SLOW, 1000, &f->err), 0);
    assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_steered(f, "0-3");
    /* The CPUs depend on the affinity of the test. */
    snprintf(said, sizeof said, "\nA rule that uid 1000 has set (asymctl set %d slow) ", f->child);
    assert_explained(f, said);
    snprintf(said, sizeof said, ". To undo the rule: asymctl set %d auto.\n", f->child);
    assert_explained(f, said);
}

/* No process has the number of the job any more: its leader has ended. */
TEST_F(an_order_for_a_job_is_for_each_of_its_processes)
{
    struct asym_overrides *orders = f->s.control.overrides;
    struct asym_stat stat;
    const pid_t other = start_child();
    assert_int_equal(asym_thread_get_stat(other, other, &stat), 0);
    members[0] = f->w.procs[0].id;
    members[1] = (struct asym_taskid){other, other, stat.start};
    job = INT32_MAX;
    assert_int_equal(asym_service_set_program(&f->s, job, ASYM_RULE_IGNORE, 0, &f->err), 0);
    assert_int_equal(asym_overrides_count(orders), 2);
    assert_steered(f, "0-7");
    assert_int_equal(asym_service_unset_program(&f->s, job, &f->err), 0);
    assert_int_equal(asym_overrides_count(orders), 0);
    assert_int_equal(asym_service_set_program(&f->s, job, ASYM_RULE_SLOW, 0, &f->err), 0);
    assert_int_equal(asym_overrides_find(orders, &members[1])->rule, ASYM_RULE_SLOW);
    /* one of them has ended, and its number is that of another process; a number of a process is for that one only */
    members[1].start--;
    assert_int_equal(asym_service_set_program(&f->s, job, ASYM_RULE_IGNORE, 0, &f->err), 0);
    assert_int_equal(asym_overrides_find(orders, &members[0])->rule, ASYM_RULE_IGNORE);
    members[1].start++;
    assert_int_equal(asym_overrides_find(orders, &members[1])->rule, ASYM_RULE_SLOW);
    assert_int_equal(asym_service_set_program(&f->s, other, ASYM_RULE_FAST, 0, &f->err), 0);
    assert_int_equal(asym_overrides_find(orders, &members[0])->rule, ASYM_RULE_IGNORE);
    /* no process can take it: the first refusal is the answer */
    members[0].start--;
    members[1].start--;
    assert_int_equal(asym_service_unset_program(&f->s, job, &f->err), -ESRCH);
    job = 0;
    assert_int_equal(asym_process_signal(other, SIGKILL), 0);
}

static int32_t own_thread;

static void *wait_for_cancel(void *ctx)
{
    __atomic_store_n(&own_thread, (int32_t)gettid(), __ATOMIC_RELEASE);
    for (;;)
        pause();
    return NULL;
}

TEST_F(processes_that_cannot_be_steered_are_refused)
{
    pthread_t thread;
    static const struct {
        int32_t pid;
        int error;
    } rows[] = {{0, -EINVAL}, {-1, -EINVAL}, {INT32_MAX, -ESRCH}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        *f->err.text = '\0';
        assert_int_equal(asym_service_unset_program(&f->s, rows[i].pid, &f->err), rows[i].error);
        assert_true(*f->err.text);
        assert_int_equal(asym_service_set_program(&f->s, rows[i].pid, ASYM_RULE_FAST, 0, &f->err), rows[i].error);
    }
    assert_int_equal(asym_service_set_program(&f->s, getpid(), ASYM_RULE_IGNORE, 0, &f->err), -EPERM);
    /* the number of a thread stands for its process */
    assert_int_equal(pthread_create(&thread, NULL, wait_for_cancel, NULL), 0);
    while (!__atomic_load_n(&own_thread, __ATOMIC_ACQUIRE))
        sched_yield();
    assert_int_equal(asym_service_set_program(&f->s, own_thread, ASYM_RULE_IGNORE, 0, &f->err), -EPERM);
    assert_non_null(strstr(f->err.text, "asymd itself"));
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    assert_int_equal(asym_overrides_count(f->s.control.overrides), 0);
    assert_steered(f, "4-7");
}

/* A container has no kernel threads: here the child has the flags of one. */
TEST_F(a_kernel_thread_is_refused)
{
    more_flags = KTHREAD;
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_IGNORE, 0, &f->err), -EPERM);
    assert_non_null(strstr(f->err.text, "kernel thread"));
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_FAST, 0, &f->err), -EPERM);
    more_flags = 0;
    assert_int_equal(asym_overrides_count(f->s.control.overrides), 0);
    assert_steered(f, "4-7");
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_IGNORE, 0, &f->err), 0);
}

TEST_F(orders_end_with_their_process)
{
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_IGNORE, 0, &f->err), 0);
    asym_service_control_housekeeping(&f->s, asym_clock_now());
    assert_int_equal(asym_overrides_count(f->s.control.overrides), 1);
    end_child(f);
    asym_service_control_housekeeping(&f->s, asym_clock_now() + 60 * ASYM_SEC);
    assert_int_equal(asym_overrides_count(f->s.control.overrides), 0);
    /* this process has the number of one that has ended */
    const struct asym_taskid earlier = {getpid(), getpid(), 1};
    assert_int_equal(asym_overrides_set_rule(f->s.control.overrides, &earlier, ASYM_RULE_IGNORE, 0), 0);
    asym_service_control_housekeeping(&f->s, asym_clock_now() + 120 * ASYM_SEC);
    assert_int_equal(asym_overrides_count(f->s.control.overrides), 0);
}

TEST_F(an_unknown_policy_is_refused_with_the_known_ones)
{
    static const char *const bad[] = {"", "paa", "pa\n[rule x]", "Auto"};
    for (size_t i = 0; i < ASYM_LENGTH(bad); i++) {
        assert_int_equal(asym_service_set_policy(&f->s, bad[i], true, 0, &f->err), -EINVAL);
        assert_non_null(strstr(f->err.text, "accepted are auto, "));
        assert_null(strchr(f->err.text, '\n'));
    }
    assert_string_equal(f->run.settings->daemon.policy, "auto");
    assert_ptr_equal(f->run.policy, &engine_fixture_policy_type);
}

TEST(actions_have_the_names_of_the_rules)
{
    enum asym_rule_action action;
    struct asym_error err = {""};
    static const char *const names[] = {"steer", "ignore", "fast", "slow"};
    for (size_t i = 0; i < ASYM_LENGTH(names); i++) {
        assert_int_equal(asym_service_parse_action(names[i], &action, &err), 0);
        assert_int_equal(action, i);
    }
    assert_int_equal(asym_service_parse_action("quick", &action, &err), -EINVAL);
    assert_true(*err.text);
}

TEST_F(a_permanent_policy_is_the_last_file_to_be_read)
{
    struct asym_settings *settings;
    char path[512], written[ASYM_PATH_SIZE], text[ASYM_PATH_SIZE + 64];
    tree_write(&f->tree, "asymd.conf", "[asymd]\npolicy = none\n");
    tree_write(&f->tree, "rules.d/99-local.conf", "[asymd]\npolicy = none\ninterval = 70ms\n");
    snprintf(path, sizeof path, "%s/asymd.conf", f->tree.path);
    f->cli.config = path;
    assert_int_equal(asym_run_write_drop_in(&f->cli, "zz-policy.conf", "[asymd]\npolicy = pa\n", written, &f->err), 0);
    assert_int_equal(asym_run_write_drop_in(&f->cli, "zz-policy.conf", "[asymd]\npolicy = rr\n", written, &f->err), 0);
    assert_int_equal(asym_run_settings(&f->cli, false, &settings, &f->err), 0);
    assert_string_equal(settings->daemon.policy, "rr");
    assert_int_equal(settings->daemon.interval, 70 * ASYM_MSEC);
    snprintf(text, sizeof text, "%s:2", written);
    assert_string_equal(asym_settings_origin(settings, "asymd", "policy"), text);
    snprintf(text, sizeof text, "none at %s/rules.d/99-local.conf:2", f->tree.path);
    assert_string_equal(asym_settings_overridden(settings, "asymd", "policy"), text);
    assert_int_equal(asym_settings_set(settings, "asymd.policy=pa", ASYM_ORIGIN_OF_ORDERS, &f->err), 0);
    assert_int_equal(asym_settings_set(settings, "asymd.policy=none", ASYM_ORIGIN_OF_ORDERS, &f->err), 0);
    snprintf(text, sizeof text, "rr at %s:2", written);
    assert_string_equal(asym_settings_overridden(settings, "asymd", "policy"), text);
    assert_null(asym_settings_overridden(settings, "asymd", "interval"));
    asym_settings_free(settings);
    f->cli.config = "/nonexistent/asymd.conf";
    assert_int_equal(asym_run_write_drop_in(&f->cli, "zz-policy.conf", "", written, &f->err), -ENOENT);
    assert_non_null(strstr(f->err.text, "/nonexistent/rules.d"));
}

static void read_counters(struct control_fixture *f)
{
    ASYM_AUTO_JSON json_t *report = json_pack("{s:o}", "counters", asym_service_counters(&f->s));
    struct asym_text text = asym_text_in(f->text, sizeof f->text);
    size_t n;
    ASYM_AUTO_FREE struct asym_metric *metrics = asym_metrics_read(report, &n);
    for (size_t i = 0; i < n; i++) {
        char line[192];
        snprintf(line, sizeof line, "\n%s ", metrics[i].name);
        assert_null(strstr(f->text, line)); /* each name once */
        assert_true(asym_text_add(&text, "%s%g\n", line, metrics[i].value));
        f->n_samples[metrics[i].row - asym_metric_row_at(0)]++;
    }
}

TEST_F(counters_count)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_int_equal(asym_service_set_program(&f->s, f->child, ASYM_RULE_IGNORE, 0, &f->err), 0);
    read_counters(f);
    static const char *const lines[] = {"\ncycles_total 5\n",
                                        "\nactions_total{kind=\"steer\",outcome=\"done\"} 1\n",
                                        "\nactions_total{kind=\"release\",outcome=\"done\"} 1\n",
                                        "\nactions_total{kind=\"repair\",outcome=\"done\"} 0\n",
                                        "\nchanges_total 2\n",
                                        "\nthreads_of_interest 1\n",
                                        "\nthreads_by_class{class=\"MP\"} 1\n",
                                        "\nfast_cpus 4\n",
                                        "\nprocesses_with_orders 1\n",
                                        "\npaused 0\n"};
    for (size_t i = 0; i < ASYM_LENGTH(lines); i++)
        if (!strstr(f->text, lines[i]))
            fail_msg("'%s' is not in '%s'", lines[i], f->text);
}

/* The table of families has no row that the service has forgotten. It hands out nothing without a row: the id is the row. */
TEST_F(each_family_has_a_sample)
{
    const struct asym_bus_config config = {.event = f->s.event, .no_system_bus = true};
    assert_int_equal(asym_bus_open(&config, &f->s.bus, &f->err), 0);
    read_counters(f);
    for (size_t i = 0; i < ASYM_N_METRICS; i++)
        if (f->n_samples[i] == 0)
            fail_msg("no sample of %s", asym_metric_row_at(i)->name);
    assert_non_null(strstr(f->text, "\nbus_calls_total 0\n"));
    asym_bus_close(f->s.bus);
}

TEST_F(a_thread_is_explained_with_its_masks)
{
    struct asym_service_explanation e;
    struct asym_service_thread now;
    struct asym_taskid other = f->thread->task.id;
    assert_int_equal(asym_service_explain_now(&f->s, f->child, &e), 0);
    assert_non_null(e.e.context.mask);
    asym_explain_sentences(&e.e, add_sentence, f);
    assert_non_null(strstr(f->text, "is serial: it has 1 runnable thread."));
    assert_int_equal(asym_service_explain_now(&f->s, INT32_MAX, &e), -ESRCH);
    assert_int_equal(asym_service_settings_of(&f->s, &other, &now), 0);
    assert_true(asym_mask_equal(&now.mask, &now.own_mask));
    assert_int_equal(now.nice, now.own_nice);
    other.start++;
    assert_int_equal(asym_service_settings_of(&f->s, &other, &now), -ESRCH);
}

static void add_lack(void *ctx, bool missed, const char *sentence)
{
    add_sentence(ctx, sentence);
}

/* They are in asymctl policies and asymctl check. */
TEST_F(policies_that_are_not_in_use_are_no_limit)
{
    f->s.cycle.snapshot.missing[ASYM_SIGNAL_IPC] = "this machine has no PMU";
    asym_service_lacks(&f->s, add_lack, f);
    assert_null(strstr(f->text, "PMU"));
}

TEST_F(a_policy_that_auto_chose_is_said_to_be_its_choice)
{
    struct asym_service_facts facts;
    f->run.policy_why = "there is only one CPU";
    asym_service_facts(&f->s, &facts);
    assert_string_equal(facts.policy_reason, "auto chose it: there is only one CPU; auto is the default");
    f->run.policy_why = NULL;
    asym_service_facts(&f->s, &facts);
    assert_string_equal(facts.policy_reason, "the default");
    assert_int_equal(asym_settings_set(f->run.settings, "asymd.policy=rr", "/a:1", NULL), 0);
    assert_int_equal(asym_settings_set(f->run.settings, "asymd.policy=pa", "/b:2", NULL), 0);
    asym_service_facts(&f->s, &facts);
    assert_string_equal(facts.policy_reason, "set by /b:2, which overrides rr at /a:1");
}

/* The status line has the number. */
TEST_F(changes_that_were_made_are_counted)
{
    assert_int_equal(f->s.n_changes, 1);
    assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_int_equal(f->s.n_changes, 1);
}

TEST_MAIN
