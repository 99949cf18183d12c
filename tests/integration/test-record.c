/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl record and trace on this machine: ended by Ctrl-C, killed, beside a service; and a record simulated. */
#include <signal.h>
#include <sys/stat.h>

#include "support/live.h"
#include "support/process.h"
#include "support/service.h"
#include "support/shell.h"
#include "support/tree.h"
#include "support/test.h"

static char said[1 << 18];

/* Returns whether the process has a handler for SIGINT. For asym_live_await. */
static int catches_ctrl_c(pid_t pid, int unused)
{
    return asym_process_catches(pid, SIGINT);
}

static off_t size_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* Waits until the recorder has written a segment of snapshots, which it does every 5 s: the file is longer than the head. */
static void await_snapshots(const char *part, off_t head)
{
    for (const double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.05))
        if (size_of(part) > head)
            return;
    fail_msg("%s has %lld bytes, no more than its head", part, (long long)size_of(part));
}

/* Records a load of four threads twice at the same time, and ends one recorder by Ctrl-C, the other by SIGKILL. */
static void record_and_kill(const char *ended, const char *killed)
{
    static const char *const load[] = {"tests/load-spin", "4", "120", NULL};
    const char *const paths[] = {ended, killed};
    const int signals[] = {SIGINT, SIGKILL}, statuses[] = {0, 128 + SIGKILL};
    const pid_t spin = asym_live_start(load, -1);
    pid_t recorders[2];
    off_t heads[2];
    char parts[2][160];
    asym_live_settle(spin, 4);
    const char *pid = asym_live_pid_option(spin);
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {"daemon/asymctl", "record", paths[i], "--time=100s", pid, NULL};
        recorders[i] = asym_live_start(argv, -1);
        snprintf(parts[i], sizeof parts[i], "%s.part", paths[i]);
        /* The recorder writes the head before it catches SIGINT. */
        assert_true(asym_live_await(catches_ctrl_c, recorders[i], 0, 1, ASYM_LIVE_PATIENCE));
        heads[i] = size_of(parts[i]);
    }
    for (int i = 0; i < 2; i++) {
        await_snapshots(parts[i], heads[i]);
        asym_live_signal(recorders[i], signals[i]);
        assert_int_equal(asym_live_wait(recorders[i]), statuses[i]);
    }
    asym_live_end(spin, SIGKILL);
}

static int replay(const char *path)
{
    const char *const argv[] = {"daemon/asymctl", "replay", path, "--policy=pa,rr", NULL};
    return asym_live_run(argv, said, sizeof said);
}

TEST(ctrl_c_ends_a_record_that_makes_the_same_plans_again_and_a_kill_leaves_what_is_written)
{
    ASYM_CLEANUP(tree_remove) struct tree tree;
    char path[128], killed[128], part[140];
    struct stat st;
    tree_make(&tree);
    snprintf(path, sizeof path, "%s/a.rec", tree.path);
    snprintf(killed, sizeof killed, "%s/b.rec", tree.path);
    record_and_kill(path, killed);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(part, sizeof part, "%s.part", path);
    assert_int_not_equal(access(part, F_OK), 0);
    assert_int_equal(replay(path), 0);
    assert_has(said, "byte for byte");
    assert_has(said, "all ");
    assert_null(strstr(said, "the file ends"));
    /* No argument of the load is in the record; its name is. */
    const char *const plans[] = {"daemon/asymctl", "replay", path, "--plans", NULL};
    assert_int_equal(asym_live_run(plans, said, sizeof said), 0);
    assert_has(said, "load-spin");
    assert_int_not_equal(access(killed, F_OK), 0);
    snprintf(part, sizeof part, "%s.part", killed);
    assert_int_equal(replay(part), 0);
    assert_has(said, "the file ends without the segment that ends a record");
    assert_has(said, "byte for byte");
}

/* Returns how many calls asymd has run, with the one of this question. */
static unsigned long count_calls(void)
{
    static const char *const metrics[] = {"daemon/asymctl", "metrics", NULL};
    static const char name[] = "\nasymd_bus_calls_total ";
    const char *at = asym_live_run(metrics, said, sizeof said) == 0 ? strstr(said, name) : NULL;
    return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

/* Waits until the trace asks for the decisions of asymd: there are other calls than those of the test. */
static void await_question(void)
{
    unsigned long before = count_calls();
    for (const double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.05)) {
        const unsigned long now = count_calls();
        if (now > before + 1)
            return;
        before = now;
    }
    fail_msg("the trace does not ask asymd: %s", said);
}

/* asymctl writes the file in blocks, and goes on with samples: each sample brings the next block nearer. */
static void await_in_file(const char *path, const char *text)
{
    for (const double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.05)) {
        file_read(path, said, sizeof said);
        if (strstr(said, text))
            return;
    }
    fail_msg("%s has no '%s'", path, text);
}

/* Its --slow is on no command line but its own. Alone, asymctl finds CPUs that are alike here, under which no thread is placed. */
static void assert_record_has_the_machine_of_the_service(const struct tree *tree, const char *pid)
{
    char path[128];
    snprintf(path, sizeof path, "%s/a.rec", tree->path);
    const char *const record[] = {"daemon/asymctl", "record", path, "--time=300ms", pid, NULL};
    assert_int_equal(asym_live_run(record, said, sizeof said), 0);
    assert_int_equal(replay(path), 0);
    assert_has(said, "\nMade again under pa: ");
    assert_has(said, "Some CPUs only count as slow: asymmetry.slow names them");
    assert_null(strstr(said, "are alike"));
}

/* A pause takes the masks back, and the trace has the decisions that did it. */
TEST_WITH(a_record_has_the_machine_of_a_running_service_and_a_trace_its_decisions, asym_service_set_up,
          asym_service_tear_down)
{
    ASYM_CLEANUP(tree_remove) struct tree tree;
    char path[128], part[140];
    tree_make(&tree);
    snprintf(path, sizeof path, "%s/a.json", tree.path);
    snprintf(part, sizeof part, "%s.part", path);
    const pid_t load = asym_service_steer("3", NULL);
    /* asymd steers the four threads of the load. */
    assert_true(asym_live_await(asym_live_narrow_threads, load, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE));
    asym_service_export_bus();
    const char *pid = asym_live_pid_option(load);
    assert_record_has_the_machine_of_the_service(&tree, pid);
    const char *const tracing[] = {"daemon/asymctl",     "record", "--trace", path, "--time=100s", pid,
                                   "--config=/dev/null", NULL};
    const char *const pausing[] = {"daemon/asymctl", "pause", NULL};
    const pid_t trace = asym_live_start(tracing, -1);
    await_question();
    assert_int_equal(asym_live_run(pausing, said, sizeof said), 0);
    await_in_file(part, "\"name\":\"release load-spin\"");
    assert_int_equal(asym_live_narrow_threads(load, asym_live_cpus()), 0);
    asym_live_signal(trace, SIGINT);
    assert_int_equal(asym_live_wait(trace), 0);
    file_read(path, said, sizeof said);
    assert_has(said, "\"name\":\"release load-spin\"");
    assert_has(said, "\"cat\":\"asymd\"");
}

/* The scenario has the machine and the load of the record, and asymctl says what a record does not tell. */
TEST(a_record_becomes_a_scenario_that_is_simulated)
{
    static const char *const load[] = {"tests/load-spin", "4", "60", NULL};
    ASYM_CLEANUP(tree_remove) struct tree tree;
    char path[128], from[160];
    tree_make(&tree);
    snprintf(path, sizeof path, "%s/a.rec", tree.path);
    snprintf(from, sizeof from, "--from=%s", path);
    const pid_t spin = asym_live_start(load, -1);
    asym_live_settle(spin, 4);
    const char *pid = asym_live_pid_option(spin);
    const char *const record[] = {"daemon/asymctl", "record", path, "--time=3s", pid, NULL};
    assert_int_equal(asym_live_run(record, said, sizeof said), 0);
    asym_live_end(spin, SIGKILL);
    const char *const sim[] = {"daemon/asymctl", "sim", from, "--policy=pa", "--repeat=2", NULL};
    if (asym_live_run(sim, said, sizeof said) != 0)
        fail_msg("asymctl sim --from failed: %s", said);
    assert_has(said, "load-spin");
    assert_has(said, "\nnone ");
    assert_has(said, "\npa ");
    assert_has(said, "The scenario has ");
    assert_has(said, "A record does not tell: ");
    /* On another machine the same programs run. */
    const char *const other[] = {
        "daemon/asymctl", "sim",        from, "--machine=" ASYM_TEST_SOURCE "/scenarios/big-little.ini",
        "--policy=pa",    "--repeat=2", NULL};
    assert_int_equal(asym_live_run(other, said, sizeof said), 0);
    assert_has(said, "load-spin");
}

TEST_MAIN
