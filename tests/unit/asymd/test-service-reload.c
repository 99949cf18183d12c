/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A new configuration, another policy and hotplug in a running service: all of it comes into force, or nothing. */

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>

#include "app/machine-setup.h"
#include "app/policy-setup.h"
#include "app/settings-setup.h"
#include "base/clock.h"
#include "base/mask.h"
#include "daemon/asymd/service-internal.h"
#include "explain/explain.h"
#include "support/engine-fixture.h"
#include "support/captured-log.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/test.h"

/* The service reads a machine of four CPUs from files, CPUs 2 and 3 count as slow, and no process runs there. */
struct reload_fixture {
    struct asym_error err; /* of the last call that failed */
    struct tree tree;
    char config[128];
    struct asym_invocation cli;
    struct asym_run run;
    struct asym_service s;
    unsigned n_changed;
};

/* rest: further lines of section asymd. */
static void write_config(const struct reload_fixture *f, const char *policy, const char *rest)
{
    tree_write(&f->tree, "asymd.conf", "[asymd]\npolicy = %s\nstate_dir = %s\n%s\n[asymmetry]\nslow = 2-3\n", policy,
               f->tree.path, rest);
}

static void changed(struct asym_service *s)
{
    ((struct reload_fixture *)(void *)((char *)s - offsetof(struct reload_fixture, s)))->n_changed++;
}

static void set_up_with(struct reload_fixture *f, const char *policy)
{
    tree_make(&f->tree);
    tree_plain(&f->tree, 4);
    tree_write(&f->tree, "proc/1/schedstat", "1 2 3\n");
    snprintf(f->config, sizeof f->config, "%s/asymd.conf", f->tree.path);
    write_config(f, policy, "");
    f->cli.config = f->config;
    f->run = (struct asym_run){.cli = &f->cli, .root = {.fd = -1}, .log = {.level = LOG_DEBUG}};
    assert_int_equal(asym_run_settings(&f->cli, false, &f->run.settings, NULL), 0);
    assert_int_equal(asym_root_open(f->tree.path, &f->run.root, NULL), 0);
    assert_int_equal(asym_run_machine(&f->run, true, NULL), 0);
    assert_int_equal(asym_run_policy(&f->run, NULL), 0);
    struct asym_service *s = &f->s;
    s->run = &f->run;
    assert_int_equal(asym_observer_open(&f->run, &s->observer, NULL), 0);
    assert_int_equal(asym_observer_count(&s->observer, &f->run, NULL), 0);
    assert_int_equal(asym_service_control_open(s), 0);
    s->control.changed = changed;
    assert_int_equal(sd_event_new(&s->event), 0);
    assert_int_equal(asym_ledger_open(f->tree.path, &s->ledger, NULL), 0);
    const struct asym_engine_config config = asym_run_engine_config(&f->run);
    assert_int_equal(asym_cycle_init(&s->cycle, &config, s->observer.source, asym_actuator_dry()), 0);
    s->abilities = asym_watch_abilities(&f->run.root);
    asym_watch_read_facts(&s->cpu_facts, &f->run.root, &f->run.machine->online, asym_clock_now());
}

static void set_up(struct reload_fixture *f)
{
    set_up_with(f, "pa");
}

static void set_up_auto(struct reload_fixture *f)
{
    set_up_with(f, "auto");
}

static void tear_down(struct reload_fixture *f)
{
    asym_service_control_close(&f->s);
    asym_cycle_done(&f->s.cycle);
    asym_observer_close(&f->s.observer);
    asym_ledger_close(f->s.ledger);
    sd_event_unref(f->s.event);
    asym_settings_free(f->run.settings);
    asym_capabilities_done(&f->run.capabilities);
    asym_root_done(&f->run.root);
    free(f->run.machine);
    tree_remove(&f->tree);
}

#define TEST_F(name) TEST_IN(name, struct reload_fixture, f, set_up, tear_down)

TEST_F(a_good_file_is_in_force_at_once)
{
    write_config(f, "rr", "interval = 70ms\nlog_level = error");
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_string_equal(f->run.policy->name, "rr");
    assert_int_equal(asym_service_interval(&f->s), 70 * ASYM_MSEC);
    assert_int_equal(f->run.log.level, LOG_ERR);
    assert_string_equal(f->s.reload_error, "");
    assert_int_equal(f->n_changed, 1);
    assert_int_equal(asym_service_cycle(&f->s), 0);
    f->s.budget.least = 140 * ASYM_MSEC;
    assert_int_equal(asym_service_interval(&f->s), 140 * ASYM_MSEC);
}

/* Each of these files is refused: asymd keeps the settings, the policy and the slow CPUs, and says why. */
TEST_F(a_bad_file_changes_nothing)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[asymd]\npolicy = paa\n", "paa"},
        {"[asymd]\npolicy = ipc-driven\nstate_dir = %s\n[asymmetry]\nslow = 1-3\n", "needs the signal ipc"},
        {"[asymd]\npolicy = rr\nstate_dir = /run/elsewhere\n", "asymd.state_dir cannot change"},
        {"[asymd]\npolicy = rr\nstate_dir = %s\nobserver = procfs\n", "asymd.observer cannot change"},
        {"[asymd]\npolicy = rr\nstate_dir = %s\n[rtx]\nlisten = no\n", "rtx.listen cannot change"},
        {"[asymd]\npolicy = rr\nstate_dir = %s\n[asymmetry]\nslow = 9\n", "cannot be made slow"},
    };
    const struct asym_settings *before = f->run.settings;
    const struct asym_policy *policy = f->run.policy;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[256];
        const char *path = strstr(rows[i].text, "%s");
        snprintf(text, sizeof text, "%.*s%s%s", path ? (int)(path - rows[i].text) : 200, rows[i].text,
                 path ? f->tree.path : "", path ? path + 2 : "");
        tree_write(&f->tree, "asymd.conf", "%s", text);
        assert_true(asym_service_reload(&f->s, &f->err) < 0);
        if (!strstr(f->err.text, rows[i].says) || !strstr(f->s.reload_error, rows[i].says))
            fail_msg("no '%s' in '%s', '%s'", rows[i].says, f->err.text, f->s.reload_error);
        assert_ptr_equal(f->run.settings, before);
        assert_ptr_equal(f->run.policy, policy);
        engine_fixture_assert_mask(&f->run.machine->slow, "2-3");
        assert_int_equal(asym_service_cycle(&f->s), 0);
    }
    write_config(f, "rr", "");
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_string_equal(f->s.reload_error, "");
}

/* One thread, which runs (R) or sleeps (S). */
static void write_process(const struct reload_fixture *f, char thread_state)
{
    static const char *const files[] = {"proc/10/stat", "proc/10/task/10/stat"};
    for (size_t i = 0; i < ASYM_LENGTH(files); i++)
        tree_write(&f->tree, files[i],
                   "10 (job) %c 1 10 10 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0\n",
                   thread_state);
    tree_write(&f->tree, "proc/10/cgroup", "0::/\n");
    tree_write(&f->tree, "proc/10/status", "Name:\tjob\nUid:\t1000\t1000\t1000\t1000\n");
    tree_write(&f->tree, "proc/10/task/10/schedstat", "1000000 0 1\n");
    tree_write(&f->tree, "proc/10/task/10/status", "Cpus_allowed:\tf\nCpus_allowed_list:\t0-3\n");
}

static void add_sentence(void *ctx, const char *sentence)
{
    char *text = ctx;
    strcat(strcat(text, sentence), "\n");
}

static void assert_why(struct reload_fixture *f, const char *says)
{
    struct asym_service_explanation e;
    char text[4096] = "";
    assert_int_equal(asym_service_explain_now(&f->s, 10, &e), 0);
    asym_explain_sentences(&e.e, add_sentence, text);
    if (!strstr(text, says))
        fail_msg("'%s' does not say '%s'", text, says);
}

/* No snapshot lists a process that sleeps, so none tells the monitor which of the new rules matches. */
TEST_F(why_knows_the_new_rules_of_a_program_that_sleeps)
{
    write_process(f, 'R');
    assert_int_equal(asym_service_cycle(&f->s), 0);
    write_process(f, 'S');
    assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_why(f, "No rule matches.\n");
    write_config(f, "pa", "[rule \"mine\"]\nmatch_comm = job\naction = ignore\n[asymd]");
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_why(f, "The rule \"mine\" matches.\n");
    assert_why(f, "To have the program steered until the program ends: asymctl set 10 steer.\n");
    assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_why(f, "The rule \"mine\" matches.\n");
    write_config(f, "pa", "");
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_why(f, "job (10) is idle.\nNo rule matches.\n");
}

TEST_F(a_policy_of_the_user_outlives_a_reload)
{
    struct asym_service_facts facts;
    assert_int_equal(asym_service_set_policy(&f->s, "rr", false, 1000, &f->err), 0);
    assert_string_equal(f->run.policy->name, "rr");
    asym_service_facts(&f->s, &facts);
    assert_string_equal(facts.policy, "rr");
    char reason[256];
    snprintf(reason, sizeof reason, "set by uid 1000 over the bus, which overrides pa at %s:2 until asymd ends",
             f->config);
    assert_string_equal(facts.policy_reason, reason);
    assert_int_equal(f->n_changed, 1);
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_string_equal(f->run.policy->name, "rr");
    asym_service_facts(&f->s, &facts);
    assert_string_equal(facts.policy_reason, reason);
}

TEST_F(a_reload_says_that_orders_for_processes_still_hold)
{
    char text[4096];
    static const char *const said[] = {"again; policy pa (set by ", "; orders for 1 process still hold",
                                       "; orders for 2 processes still hold"};
    for (int32_t n = 0; n < 3; n++) {
        const struct asym_taskid id = {100 + n, 100 + n, 1};
        if (n > 0)
            assert_int_equal(asym_overrides_set_rule(f->s.control.overrides, &id, ASYM_RULE_IGNORE, 0), 0);
        captured_log_begin();
        assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
        captured_log_end(text, sizeof text);
        assert_int_equal(captured_log_count(text, said[n]), 1);
        assert_int_equal(captured_log_count(text, "still hold"), n > 0);
        assert_int_equal(asym_overrides_count(f->s.control.overrides), n);
    }
}

TEST_F(a_policy_that_cannot_run_here_is_refused)
{
    const struct asym_policy *before = f->run.policy;
    char origin[512];
    snprintf(origin, sizeof origin, "%s", asym_settings_origin(f->run.settings, "asymd", "policy"));
    assert_int_equal(asym_service_set_policy(&f->s, "ipc-driven", true, 0, &f->err), -ENODATA);
    assert_non_null(strstr(f->err.text, "needs the signal ipc"));
    assert_ptr_equal(f->run.policy, before);
    assert_string_equal(f->run.settings->daemon.policy, "pa");
    assert_null(f->s.control.policy);
    assert_string_equal(asym_settings_origin(f->run.settings, "asymd", "policy"), origin);
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_string_equal(f->run.policy->name, "pa");
}

/* The file of a permanent policy is read at the next reload; a policy of the command line would win over it. */
TEST_F(a_permanent_policy_is_that_of_the_files_from_then_on)
{
    assert_int_equal(asym_service_set_policy(&f->s, "rr", true, 0, &f->err), 0);
    assert_null(f->s.control.policy);
    tree_unlink(&f->tree, "rules.d/zz-policy.conf");
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_string_equal(f->run.policy->name, "pa");
    char option[] = "asymd.policy=pa";
    struct asym_invocation_setting assignment = {.text = option, .origin = "--policy"};
    f->cli.assignments = &assignment;
    f->cli.n_assignments = 1;
    assert_int_equal(asym_service_set_policy(&f->s, "rr", true, 0, &f->err), 0);
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_string_equal(f->run.policy->name, "rr");
}

TEST_F(cpus_that_come_and_go_are_planned_for)
{
    const uint64_t generation = f->run.machine->generation;
    asym_service_update_cpus(&f->s);
    assert_int_equal(f->run.machine->generation, generation);
    assert_int_equal(f->n_changed, 0);
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-2\n");
    asym_service_update_cpus(&f->s);
    engine_fixture_assert_mask(&f->run.machine->usable, "0-2");
    engine_fixture_assert_mask(&f->run.machine->slow, "2");
    assert_true(f->run.machine->generation > generation);
    assert_int_equal(f->n_changed, 1);
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-3\n");
    asym_service_update_cpus(&f->s);
    engine_fixture_assert_mask(&f->run.machine->slow, "2-3");
    assert_int_equal(f->n_changed, 2);
}

/* Boost, the driver and the maximum frequency change what a CPU can do; a limit of the frequency does not. */
TEST_F(abilities_that_change_are_read_anew)
{
    tree_write_cpu(&f->tree, 0, "cpufreq/scaling_max_freq", "800000\n");
    asym_service_update_cpus(&f->s);
    assert_int_equal(f->n_changed, 0);
    tree_write(&f->tree, "sys/devices/system/cpu/cpufreq/boost", "0\n");
    asym_service_update_cpus(&f->s);
    assert_int_equal(f->n_changed, 1);
    asym_service_update_cpus(&f->s);
    assert_int_equal(f->n_changed, 1);
}

/* Preferred cores of amd-pstate change while the system runs, and not those of CPU 0 only. */
TEST_F(a_rank_that_changes_is_read_anew)
{
    static const char *const best[] = {"236\n", "166\n"};
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned c = 0; c < 2; c++)
            tree_write_cpu(&f->tree, c, "cpufreq/amd_pstate_prefcore_ranking", "%s", best[c != turn]);
        tree_write_cpu(&f->tree, 2, "cpufreq/amd_pstate_prefcore_ranking", "100\n");
        tree_write_cpu(&f->tree, 3, "cpufreq/amd_pstate_prefcore_ranking", "100\n");
        asym_service_update_cpus(&f->s);
        assert_int_equal(f->n_changed, turn + 1);
        assert_int_equal(f->run.machine->cpus[turn].rank, 0);
        assert_int_equal(f->run.machine->cpus[!turn].rank, 1);
        asym_service_update_cpus(&f->s);
        assert_int_equal(f->n_changed, turn + 1);
    }
}

static void lose_and_get_a_cpu(struct reload_fixture *f)
{
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-2\n");
    asym_service_update_cpus(&f->s);
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-3\n");
    asym_service_update_cpus(&f->s);
}

/* Runs fn, and returns how often what was logged. */
static unsigned count_lines(void (*fn)(struct reload_fixture *f), struct reload_fixture *f, const char *what)
{
    char text[4096];
    captured_log_begin();
    fn(f);
    captured_log_end(text, sizeof text);
    return captured_log_count(text, what);
}

static void reload(struct reload_fixture *f)
{
    assert_int_equal(asym_service_reload(&f->s, NULL), 0);
}

/* asymd says at its start and after a reload that a rule names CPUs which this machine does not have. */
TEST_F(hotplug_logs_no_notice_on_the_file_again)
{
    write_config(f, "pa", "[rule \"far\"]\nmatch_comm = job\ncpus = 0,9\n[asymd]");
    assert_int_equal(count_lines(reload, f, "names CPUs 0,9"), 1);
    assert_int_equal(count_lines(lose_and_get_a_cpu, f, "names CPUs"), 0);
    assert_int_equal(f->n_changed, 3);
}

static void switch_policy(struct reload_fixture *f)
{
    assert_int_equal(asym_service_set_policy(&f->s, "rr", false, 0, NULL), 0);
}

TEST_F(another_policy_logs_no_notice_on_the_file_again)
{
    tree_write(&f->tree, "asymd.conf",
               "[asymd]\npolicy = pa\nstate_dir = %s\n[asymmetry]\nslow_speed = 30%%\n"
               "[rule \"far\"]\nmatch_comm = job\ncpus = 0,9\n",
               f->tree.path);
    assert_int_equal(count_lines(reload, f, "slow_speed has no effect"), 1);
    assert_int_equal(count_lines(switch_policy, f, "slow_speed has no effect"), 0);
    assert_int_equal(count_lines(switch_policy, f, "names CPUs"), 0);
    assert_string_equal(f->run.policy->name, "rr");
}

TEST_IN(auto_selects_again_when_cpus_change, struct reload_fixture, f, set_up_auto, tear_down)
{
    assert_string_equal(f->run.policy->name, "asym");
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-1\n"); /* alike */
    asym_service_update_cpus(&f->s);
    assert_string_equal(f->run.policy->name, "none");
    tree_write(&f->tree, "sys/devices/system/cpu/online", "0-3\n");
    asym_service_update_cpus(&f->s);
    assert_string_equal(f->run.policy->name, "asym");
    assert_int_equal(asym_service_cycle(&f->s), 0);
}

static void lose_the_ledger(struct reload_fixture *f)
{
    for (int i = 0; i < 3; i++)
        asym_service_report_apply(&f->s, -ENOSPC);
}

static void have_the_ledger(struct reload_fixture *f)
{
    for (int i = 0; i < 3; i++)
        asym_service_report_apply(&f->s, 0);
}

TEST_F(a_ledger_that_cannot_be_written_is_logged_once_and_its_return_once)
{
    assert_int_equal(count_lines(have_the_ledger, f, "ledger"), 0);
    assert_int_equal(count_lines(lose_the_ledger, f, "cannot write the ledger"), 1);
    assert_int_equal(count_lines(have_the_ledger, f, "can write the ledger again"), 1);
    assert_int_equal(count_lines(lose_the_ledger, f, "cannot write the ledger"), 1);
}

/* It writes no record, and so says nothing about the ledger. */
TEST_F(a_cycle_without_actions_does_not_show_that_the_ledger_can_be_written)
{
    f->s.ledger_failed = true;
    assert_int_equal(asym_service_cycle(&f->s), 0);
    assert_int_equal(f->s.cycle.n_actions, 0);
    assert_true(f->s.ledger_failed);
}

/* A file stands where the directory of the drop-ins should be. */
TEST_F(a_permanent_policy_that_cannot_be_written_changes_nothing)
{
    tree_write(&f->tree, "rules.d", "no directory\n");
    assert_true(asym_service_set_policy(&f->s, "rr", true, 0, &f->err) < 0);
    assert_string_equal(f->run.policy->name, "pa");
    assert_string_equal(f->run.settings->daemon.policy, "pa");
    assert_null(f->s.control.policy);
    assert_int_equal(f->n_changed, 0);
    /* The user's policy until asymd ends stays, too. */
    assert_int_equal(asym_service_set_policy(&f->s, "rr", false, 0, &f->err), 0);
    assert_true(asym_service_set_policy(&f->s, "none", true, 0, &f->err) < 0);
    assert_non_null(strstr(f->err.text, "/rules.d"));
    assert_string_equal(f->run.policy->name, "rr");
    tree_unlink(&f->tree, "rules.d");
    assert_int_equal(asym_service_reload(&f->s, &f->err), 0);
    assert_string_equal(f->run.policy->name, "rr");
}

/* Starts a process that calls itself so, and sleeps. It ends with the test. */
static pid_t start_named(const char *name)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        prctl(PR_SET_NAME, name);
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    return pid;
}

static void assert_file(const struct reload_fixture *f, const char *name, const char *says)
{
    char path[512], text[1024] = "";
    snprintf(path, sizeof path, "%s/%s", f->tree.path, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    if (!strstr(text, says))
        fail_msg("'%s' is not in '%s'", says, text);
}

/* The rule of a program is as it was if asymd cannot read the configuration again. */
TEST_F(a_lasting_rule_that_cannot_be_in_force_changes_no_file)
{
    struct asym_set_rule said;
    const pid_t child = start_named("lasting");
    assert_int_equal(asym_service_set_rule(&f->s, child, "slow", 0, &said, &f->err), 0);
    assert_file(f, "rules.d/50-set-lasting.conf", "match_comm = \"lasting\"\naction = slow\n");
    tree_write(&f->tree, "asymd.conf", "[asymd]\npolicy = paa\n");
    assert_true(asym_service_set_rule(&f->s, child, "fast", 0, &said, &f->err) < 0);
    assert_file(f, "rules.d/50-set-lasting.conf", "action = slow\n");
    assert_true(asym_service_set_rule(&f->s, child, "auto", 0, &said, &f->err) < 0);
    assert_file(f, "rules.d/50-set-lasting.conf", "action = slow\n");
    write_config(f, "pa", "");
    assert_int_equal(asym_service_set_rule(&f->s, child, "fast", 0, &said, &f->err), 0);
    assert_file(f, "rules.d/50-set-lasting.conf", "action = fast\n");
    assert_string_equal(said.before, "");
    write_config(f, "pa", "[rule first]\nmatch_comm = lasting\naction = fast\n");
    assert_int_equal(asym_service_set_rule(&f->s, child, "slow", 0, &said, &f->err), 0);
    assert_string_equal(said.before, "first");
    assert_non_null(strstr(said.file, "/rules.d/50-set-lasting.conf"));
    assert_int_equal(asym_service_set_rule(&f->s, child, "auto", 0, &said, &f->err), 0);
    assert_int_equal(access(said.file, F_OK), -1);
    assert_int_equal(asym_process_signal(child, SIGKILL), 0);
}

TEST_F(a_program_does_not_change_the_lasting_rule_of_another_one)
{
    struct asym_set_rule said;
    const pid_t child = start_named("lasting");
    tree_write(&f->tree, "rules.d/50-set-lasting.conf",
               "[rule \"set lasting\"]\nmatch_exe = \"/usr/bin/lasting\"\naction = slow\n");
    assert_int_equal(asym_service_set_rule(&f->s, child, "fast", 0, &said, &f->err), -EEXIST);
    assert_int_equal(asym_service_set_rule(&f->s, child, "auto", 0, &said, &f->err), -EEXIST);
    assert_non_null(strstr(f->err.text, "/rules.d/50-set-lasting.conf is of another program"));
    assert_file(f, "rules.d/50-set-lasting.conf", "/usr/bin/lasting\"\naction = slow\n");
    assert_int_equal(asym_process_signal(child, SIGKILL), 0);
}

/* Start a copy of sleep with that path. */
static pid_t start_copy(const char *path)
{
    int ready[2];
    char byte;
    const int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_true(from >= 0 && to >= 0);
    while (sendfile(to, from, NULL, 1 << 20) > 0)
        ;
    close(from);
    close(to);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        execl(path, path, "3600", (char *)NULL);
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    return pid;
}

/* A rule for the end of the path would be one for other programs, too. */
TEST_F(a_path_that_no_rule_can_hold_is_refused)
{
    struct asym_set_rule said;
    char path[512];
    for (int longer = 0; longer < 2; longer++) {
        struct asym_error err = {""};
        const int n = snprintf(path, sizeof path, "%s/", f->tree.path);
        memset(path + n, 'x', sizeof path - (size_t)n);
        path[158 + longer] = '\0';
        const pid_t child = start_copy(path);
        assert_int_equal(asym_service_set_rule(&f->s, child, "slow", 0, &said, &err), longer ? -ENAMETOOLONG : 0);
        if (!longer)
            assert_file(f, "rules.d/50-set-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.conf", "\nmatch_exe = \"/");
        else
            assert_non_null(strstr(err.text, "a rule takes 158 bytes, and the path is longer"));
        assert_int_equal(asym_process_signal(child, SIGKILL), 0);
    }
}

TEST_MAIN
