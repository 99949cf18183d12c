/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dry run and --once where asymd sees very little or very much. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/mask.h"
#include "linux/sys/thread.h"
#include "linux/sys/elf.h"
#include "support/live.h"
#include "support/service.h"
#include "support/shell.h"
#include "support/tree.h"
#include "support/test.h"

#define BOOST "--set=policy.serial-first.serial_boost=-5"

static char asymd[4096], said[1 << 20];

/* A shell prepares the surroundings before it starts asymd; $A is asymd. */
static int run_shell(const char *command)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    setenv("A", asymd, 1);
    return asym_live_run(argv, said, sizeof said);
}

TEST_WITH(in_a_child_pid_namespace_nothing_is_steered_and_it_says_so, asym_service_set_up, asym_service_tear_down)
{
    char command[512];
    assert_int_equal(run_shell("unshare --pid --fork --kill-child \"$A\" --dry-run --duration=20ms"), 0);
    assert_has(said, "0 of 0 threads would move");
    assert_has(said, "in PID namespaces that asymd cannot map");
    assert_has(said, "the proc connector's PIDs");
    pid_t load = asym_service_spin("4");
    asym_live_settle(load, 4);
    snprintf(command, sizeof command,
             "unshare --pid --fork --kill-child \"$A\" --once --duration=300ms --slow=1 --set=asymd.state_dir=%s",
             asym_service_dir());
    assert_int_equal(run_shell(command), 0);
    assert_has(said, "steered 0 of 0 threads");
    assert_has(said, "in PID namespaces that asymd cannot map");
    assert_int_equal(asym_live_narrow_threads(load, asym_live_cpus()), 0);
}

/* Root sees all processes, so the test runs as the user nobody, who may not even read the build tree: hence the copy. */
TEST_WITH(under_hidepid_it_reports_that_others_are_not_seen, asym_service_set_up, asym_service_tear_down)
{
    assert_int_equal(run_shell("cp \"$A\" /tmp/asymd-hidepid.$$ && chmod 755 /tmp/asymd-hidepid.$$ &&"
                               "unshare --mount sh -c 'mount -t proc -o hidepid=2 proc /proc &&"
                               " setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" --dry-run --duration=20ms'"
                               " /tmp/asymd-hidepid.$$; r=$?; rm -f /tmp/asymd-hidepid.$$; exit $r"),
                     0);
    assert_has(said, "Saw 1 process and followed 1 thread");
    assert_has(said, "because /proc is mounted with hidepid");
}

TEST_WITH(want_of_descriptors_is_reported, asym_service_set_up, asym_service_tear_down)
{
    char command[256];
    const pid_t load = asym_live_start((const char *const[]){"tests/load-pulse", "40", "600", NULL}, -1);
    asym_live_settle(load, 40);
    snprintf(command, sizeof command, "ulimit -n 16; \"$A\" --dry-run --duration=500ms --pid=%d", (int)load);
    assert_int_equal(run_shell(command), 0);
    assert_has(said, "followed 40 threads");
    assert_has(said, "without a kept descriptor");
    asym_live_end(load, SIGKILL);
    /* The test does not fix how many asymd needs, only that asymd reports too few. Inherited descriptors would count, too. */
    int status = 0;
    for (int n = 9; status == 0 && n >= 4; n--) {
        snprintf(command, sizeof command,
                 "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n %d; \"$A\" --dry-run --duration=20ms", n);
        status = run_shell(command);
    }
    assert_int_equal(status, 1);
    /* The second where a PMU is the first that asymd has no descriptor for. */
    if (!strstr(said, "Too many open files"))
        assert_has(said, "no file descriptors left");
}

TEST_WITH(twenty_thousand_threads_are_all_seen, asym_service_set_up, asym_service_tear_down)
{
    char ready[64] = "";
    int output;
    const char *const load_argv[] = {"tests/load-sleepers", "20000", "100", "120", NULL};
    pid_t load = asym_live_start_piped(load_argv, &output);
    assert_true(read(output, ready, sizeof ready - 1) > 0);
    close(output);
    if (strcmp(ready, "ready\n") != 0)
        fail_msg("this machine lets us have no 20,000 threads: %s", ready);
    const char *const argv[] = {
        ASYM_SERVICE, "--dry-run", "--json", "--slow=1", "--duration=300ms", asym_live_pid_option(load), NULL};
    assert_int_equal(asym_live_run(argv, said, sizeof said), 0);
    json_t *root = json_loads(said, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "coverage"), "threads")), 20000);
    assert_int_equal(json_integer_value(json_object_get(root, "moves")), 0);
    json_decref(root);
    asym_live_end(load, SIGTERM);
}

TEST_WITH(a_policy_that_no_machine_can_run_is_refused_with_its_reason, asym_service_set_up, asym_service_tear_down)
{
    static const char *const modes[] = {"--dry-run --duration=20ms", "--once --duration=20ms"};
    char command[256];
    for (size_t i = 0; i < ASYM_LENGTH(modes); i++) {
        snprintf(command, sizeof command, "\"$A\" --policy=smt-icount --set=asymd.state_dir=%s %s", asym_service_dir(),
                 modes[i]);
        assert_int_equal(run_shell(command), 3);
        assert_has(said, "policy smt-icount cannot run on a live machine: no stock x86 or Arm kernel");
        assert_has(said, "Policies that can run here: none, pa");
    }
    assert_int_equal(run_shell("\"$A\" --policy=smt-icount --check"), 3);
    assert_has(said, "smt-icount cannot run on a live machine");
}

/* On a machine with one CPU, every plan gives the same place. */
TEST_WITH(on_one_cpu_it_says_that_there_is_one, asym_service_set_up, asym_service_tear_down)
{
    ASYM_CLEANUP(tree_remove) struct tree t;
    char root[96];
    tree_make(&t);
    tree_machine(&t, "0", "0");
    tree_cpu(&t, 0, 0, 0, "0", "0");
    tree_mkdir(&t, "proc");
    snprintf(root, sizeof root, "--root=%s", t.path);
    const char *const argv[] = {ASYM_SERVICE, "--dry-run", root, NULL};
    assert_int_equal(asym_live_run(argv, said, sizeof said), 0);
    assert_has(said, "1 CPU,");
    assert_has(said, "asymd prefers no CPU: there is one usable CPU.");
    const char *const slow[] = {ASYM_SERVICE, "--dry-run", root, "--slow=1", NULL};
    assert_int_equal(asym_live_run(slow, said, sizeof said), 2);
    assert_has(said, "asymmetry.slow");
}

/* asymd must not take the masks that the first run set for the threads' own choice. */
TEST_WITH(a_second_once_plans_as_if_there_had_been_no_first, asym_service_set_up, asym_service_tear_down)
{
    char text[4096];
    int cpus = asym_live_cpus();
    pid_t load = asym_service_spin("3");
    asym_live_settle(load, 3);
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {ASYM_SERVICE, "--once",           asym_service_dir_option(),
                                    "--slow=1",   "--duration=300ms", asym_live_pid_option(load),
                                    NULL};
        assert_int_equal(asym_live_run(argv, text, sizeof text), 0);
        assert_non_null(strstr(text, "steered 3 of 3 threads"));
        assert_true(!!strstr(text, "left by an earlier asymd: restored 3 threads") == (i > 0));
        assert_int_equal(asym_live_narrow_threads(load, cpus), 3);
    }
    const char *const elsewhere[] = {ASYM_SERVICE, "--restore", "--set=asymd.state_dir=/proc", NULL};
    assert_int_equal(asym_live_run(elsewhere, text, sizeof text), 1);
    assert_non_null(strstr(text, "no asymd has kept its ledger there"));
    assert_int_equal(asym_service_restore(text, sizeof text), 0);
    assert_non_null(strstr(text, "restored 3 threads"));
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
}

/* The threads are steered and restored all the same. */
TEST_WITH(a_full_standard_output_is_an_error, asym_service_set_up, asym_service_tear_down)
{
    char command[512];
    const int cpus = asym_live_cpus();
    pid_t load = asym_service_spin("3");
    asym_live_settle(load, 3);
    snprintf(command, sizeof command,
             "\"$A\" --once --slow=1 --duration=300ms --pid=%d --set=asymd.state_dir=%s >/dev/full", (int)load,
             asym_service_dir());
    assert_int_equal(run_shell(command), 1);
    assert_has(said, "cannot write to standard output: No space left on device");
    const int steered = asym_live_narrow_threads(load, cpus);
    if (steered != 3)
        fail_msg("%d of 3 threads are steered: %s", steered, said);
    snprintf(command, sizeof command, "\"$A\" --restore --set=asymd.state_dir=%s >/dev/full", asym_service_dir());
    assert_int_equal(run_shell(command), 1);
    assert_has(said, "cannot write to standard output: No space left on device");
    assert_int_equal(asym_live_narrow_threads(load, cpus), 0);
}

/* Returns how many masks of the program the dry run would narrow, and whether it would boost a thread. */
static int dry_run(pid_t load, const char *policy, bool *ret_boosts)
{
    const char *const argv[] = {ASYM_SERVICE,
                                "--dry-run",
                                "--json",
                                asym_service_dir_option(),
                                asym_live_text("--slow=%d", asym_live_cpus() / 2),
                                asym_live_pid_option(load),
                                policy,
                                "--duration=300ms",
                                BOOST,
                                NULL};
    assert_int_equal(asym_live_run(argv, said, sizeof said), 0);
    json_t *root = json_loads(said, 0, NULL), *thread;
    if (!root)
        fail_msg("no JSON: %s", said);
    size_t i;
    int n = 0;
    json_array_foreach(json_object_get(json_array_get(json_object_get(root, "applications"), 0), "threads"), i, thread)
    {
        n += !json_equal(json_object_get(thread, "mask"), json_object_get(thread, "old_mask"));
    }
    json_decref(root);
    *ret_boosts = strstr(said, "\"new_nice\": -5");
    return n;
}

/*
 * For a serial program, with and without a boost, and for a parallel one: the dry run does not take the service's masks for the
 * threads' own.
 */
TEST_WITH(beside_a_service_it_plans_as_if_there_were_none, asym_service_set_up, asym_service_tear_down)
{
    static const struct {
        const char *threads, *policy;
        bool boosted;
    } cases[] = {{"1", "--policy=pa", false}, {"3", "--policy=pa", false}, {"1", "--policy=serial-first", true}};
    const int cpus = asym_live_cpus();
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        const char *const more[] = {cases[i].policy, BOOST, NULL};
        const int n = atoi(cases[i].threads);
        bool boosts;
        pid_t load = asym_service_spin(cases[i].threads), service = asym_service_start(load, more);
        assert_true(asym_live_await(asym_live_narrow_threads, load, cpus, n, ASYM_LIVE_PATIENCE));
        /* The kernel counts a wait for a CPU when it ends: on a busy machine a short observation may miss a thread. */
        const double end = asym_live_now() + ASYM_LIVE_PATIENCE;
        int moves;
        while ((moves = dry_run(load, cases[i].policy, &boosts)) != n && asym_live_now() < end)
            ;
        assert_int_equal(moves, n);
        assert_int_equal(boosts, cases[i].boosted);
        /* The service still steers all threads, and restores them at its end. */
        assert_int_equal(asym_live_narrow_threads(load, cpus), n);
        asym_live_end(service, SIGTERM);
        assert_int_equal(asym_live_odd_threads(load, cpus, 0), 0);
        asym_live_end(load, SIGKILL);
    }
}

/* Only its owner may read the ledger. */
TEST_WITH(a_user_without_access_to_the_ledger_gets_a_note_and_a_plan, asym_service_set_up, asym_service_tear_down)
{
    static const char sentence[] = "may count as the thread's own here: ";
    char command[1024];
    pid_t load = asym_service_spin("1");
    asym_live_settle(load, 1);
    asym_service_start(load, NULL);
    assert_true(asym_live_await(asym_live_narrow_threads, load, asym_live_cpus(), 1, ASYM_LIVE_PATIENCE));
    assert_int_equal(chmod(asym_service_dir(), 0755), 0);
    snprintf(command, sizeof command,
             "cp \"$A\" %s/asymd && setpriv --reuid=65534 --regid=65534 --clear-groups %s/asymd --dry-run --slow=1 "
             "--pid=%d --set=asymd.state_dir=%s",
             asym_service_dir(), asym_service_dir(), (int)load, asym_service_dir());
    assert_int_equal(run_shell(command), 0);
    assert_has(said, "/ledger: Permission denied");
    assert_has(said, "has an affinity of its own");
    const char *first = strstr(said, sentence);
    assert_non_null(first);
    assert_null(strstr(first + 1, sentence));
    /* Without a ledger, asymd prints nothing about it. */
    snprintf(command, sizeof command, "\"$A\" --dry-run --pid=%d --set=asymd.state_dir=%s/none", (int)load,
             asym_service_dir());
    assert_int_equal(run_shell(command), 0);
    assert_null(strstr(said, sentence));
}

static pid_t spin_as(const char *path)
{
    char command[512];
    snprintf(command, sizeof command, "cp %s/tests/load-spin %s", ASYM_TEST_BIN, path);
    assert_int_equal(system(command), 0);
    const char *const argv[] = {path, "1", "120", NULL};
    return asym_live_start(argv, -1);
}

static int first_cpu(pid_t pid)
{
    struct asym_mask found;
    assert_int_equal(asym_thread_get_mask(pid, &found), 0);
    assert_int_equal(asym_mask_count(&found), 1);
    return asym_mask_next(&found, 0);
}

/* One program computes, the other waits for memory. */
static void write_profiles(const char *file, const char *computes, const char *waits, const char *build_id)
{
    file_write(file,
               "[%s]\nbuild_id = %s\nips.fast = 2000000000\nmpki.fast = 0\nips.slow = 1000000000\n"
               "[%s]\nips.fast = 220000000\nmpki.fast = 50\nips.slow = 200000000\n",
               computes, build_id, waits);
}

/* Two copies of one program with different paths: the profile decides which copy gets the fast CPU. */
TEST_WITH(a_profile_decides_which_thread_has_the_fast_cpu, asym_service_set_up, asym_service_tear_down)
{
    static const char *const policies[] = {"--policy=static-ipc", "--policy=hass"};
    char path[2][128], file[128];
    char id[ASYM_BUILD_ID_MAX] = "";
    pid_t pids[2];
    snprintf(file, sizeof file, "%s/profiles", asym_service_dir());
    for (int k = 0; k < 2; k++) {
        snprintf(path[k], sizeof path[k], "%s/load-%d", asym_service_dir(), k);
        pids[k] = spin_as(path[k]);
    }
    const char *argv[] = {ASYM_SERVICE,
                          "--once",
                          asym_service_dir_option(),
                          "--slow=1-1",
                          "--set=enforce.pin=cpu",
                          "--duration=300ms",
                          asym_live_text("--set=counters.profiles=%s", file),
                          asym_live_pid_option(pids[0]),
                          asym_live_pid_option(pids[1]),
                          NULL,
                          NULL};
    int fd = open(path[0], O_RDONLY | O_CLOEXEC);
    assert_int_equal(asym_elf_build_id(fd, id), 0);
    close(fd);
    for (int k = 0; k < 2; k++)
        asym_live_settle(pids[k], 1);
    for (int i = 0; i < 4; i++) {
        const int computes = i % 2;
        argv[9] = policies[i / 2];
        write_profiles(file, path[computes], path[1 - computes], id);
        int r = asym_live_run(argv, said, sizeof said);
        if (r != 0)
            fail_msg("status %d: %s", r, said);
        assert_int_equal(first_cpu(pids[computes]), 0);
        assert_int_equal(first_cpu(pids[1 - computes]), 1);
    }
    assert_int_equal(asym_service_restore(said, sizeof said), 0);
    /* The profile belongs to another build of the computing program, so that program has none. */
    write_profiles(file, path[0], path[1], "0123456789abcdef");
    argv[1] = "--dry-run";
    argv[9] = policies[0];
    assert_int_equal(asym_live_run(argv, said, sizeof said), 0);
    assert_has(said, "no profile of its program");
    for (int k = 0; k < 2; k++)
        asym_live_end(pids[k], SIGKILL);
}

int main(void)
{
    snprintf(asymd, sizeof asymd, "%s/daemon/asymd", ASYM_TEST_BIN);
    return test_run(NULL, NULL);
}
