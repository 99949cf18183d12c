/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests what asymd and asymctl do when standard output cannot be written. --once and --restore are in integration.oneshot. */
#include <fcntl.h>
#include <sys/wait.h>

#include "app/command-line.h"
#include "daemon/asymctl/verb.h"
#include "daemon/asymd/mode.h"
#include "support/fake-service.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/shell.h"
#include "support/test.h"

/* %s is the root of a captured machine. These modes print more and less than the buffer of the C library holds. */
static const char *const asymd_runs[] = {
    "--help",
    "--help-config",
    "--version",
    "--print-config",
    "--check --root=%s",
    "--check --json --root=%s",
    "--dry-run --root=%s",
    "--dry-run --json --root=%s",
};

#define SCENARIO "'" ASYM_TEST_SOURCE "/scenarios/big-little.ini' --repeat=1"

/* asymctl says on stderr where its configuration comes from if no asymd answers; not if the caller names it. */
#define CONFIG " --config=/dev/null"

#define RECORD "'" ASYM_TEST_BIN "/test-output.record'"

/* record comes before the verbs that read what it wrote. */
static const char *const asymctl_runs[] = {
    "record --time=100ms" CONFIG " " RECORD,
    "record --time=100ms --json" CONFIG " " RECORD,
    "replay " RECORD,
    "replay --json " RECORD,
    "replay --plans " RECORD,
    "record --trace --time=100ms" CONFIG " " RECORD ".json",
    "record --trace --time=100ms --json" CONFIG " " RECORD ".json",
    "--help",
    "--version",
    "help",
    "help sim",
    "policies",
    "policies --json",
    "check",
    "check --json",
    "rules" CONFIG,
    "rules --json" CONFIG,
    "rules test no-such-prog" CONFIG,
    "sim " SCENARIO,
    "sim --json " SCENARIO,
};

/* These ask a running asymd. */
static const char *const service_runs[] = {
    "status",  "status --json",   "why 4711",       "why --json 4711", "policy",  "policy --json",
    "pause",   "pause --json",    "resume",         "release 1",       "adopt 1", "set 1 slow",
    "metrics", "metrics --table", "metrics --json", "reload",
};

/* Runs the program with stdout on the file, and returns its exit status; ret gets stderr. */
static int run(const char *program, const char *arguments, const char *file, char *ret, size_t size)
{
    return shell_run(ret, size, "'%s/daemon/%s' %s 2>&1 >%s", ASYM_TEST_BIN, program, arguments, file);
}

static void expect_failure(const char *program, const char *arguments)
{
    /* The C library keeps no errno of a write before the last one. */
    char wanted[2][128], said[4096];
    for (size_t i = 0; i < ASYM_LENGTH(wanted); i++)
        snprintf(wanted[i], sizeof wanted[i], "%s: cannot write to standard output: %s\n", program,
                 strerror(i == 0 ? ENOSPC : EIO));
    const int done = run(program, arguments, "/dev/null", said, sizeof said);
    assert_true(done == ASYM_EXIT_DONE || done == ASYM_EXIT_NO_SIGNAL);
    const int status = run(program, arguments, "/dev/full", said, sizeof said);
    /* No other message is about the failed write. */
    if (status != ASYM_EXIT_FAILED || (strcmp(said, wanted[0]) != 0 && strcmp(said, wanted[1]) != 0))
        fail_msg("%s %s: exit status %d, said: %s", program, arguments, status, said);
}

TEST(every_mode_of_asymd_says_so_and_fails)
{
    ASYM_CLEANUP(tree_remove) struct tree machine;
    tree_make(&machine);
    tree_plain(&machine, 4);
    for (size_t i = 0; i < ASYM_LENGTH(asymd_runs); i++) {
        char arguments[128];
        snprintf(arguments, sizeof arguments, asymd_runs[i], machine.path);
        expect_failure("asymd", arguments);
    }
}

TEST(every_verb_of_asymctl_says_so_and_fails)
{
    for (size_t i = 0; i < ASYM_LENGTH(asymctl_runs); i++)
        expect_failure("asymctl", asymctl_runs[i]);
    fake_service_start(FAKE_SERVICE_PLAIN);
    for (size_t i = 0; i < ASYM_LENGTH(service_runs); i++)
        expect_failure("asymctl", service_runs[i]);
    fake_service_stop();
}

static bool is_run(const char *const *runs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const size_t word = strcspn(runs[i], " ");
        if (word == strlen(name) && strncmp(runs[i], name, word) == 0)
            return true;
    }
    return false;
}

/* A new mode or verb that prints needs a row above. */
TEST(no_mode_and_no_verb_is_left_out)
{
    /*
     * profile needs hardware counters; the service and run print nothing of their own; watch is in test-service-verbs.c, trial in
     * integration/test-trial.c, and tests/top.py has top.
     */
    static const char *const elsewhere[] = {"--service", "--once", "--restore", "profile",
                                            "run",       "watch",  "top",       "trial"};
    for (size_t i = 0; i < ASYM_N_MODES; i++)
        if (asym_modes[i]->name && !is_run(elsewhere, ASYM_LENGTH(elsewhere), asym_modes[i]->name) &&
            !is_run(asymd_runs, ASYM_LENGTH(asymd_runs), asym_modes[i]->name))
            fail_msg("asymd_runs in " __FILE__ " has no row for the mode %s", asym_modes[i]->name);
    for (size_t i = 0; asym_verb_at(i); i++)
        if (!is_run(elsewhere, ASYM_LENGTH(elsewhere), asym_verb_at(i)->name) &&
            !is_run(asymctl_runs, ASYM_LENGTH(asymctl_runs), asym_verb_at(i)->name) &&
            !is_run(service_runs, ASYM_LENGTH(service_runs), asym_verb_at(i)->name))
            fail_msg("asymctl_runs in " __FILE__ " (or service_runs, if it asks asymd) has no row for the verb %s",
                     asym_verb_at(i)->name);
}

/* The child writes to its stdout, which it has pointed to the file. Returns the result of two calls. */
static int end_twice(const char *file, size_t bytes, bool recover)
{
    fflush(NULL);
    const pid_t pid = asym_process_fork();
    if (pid > 0) {
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
    }
    char buffer[64];
    const int fd = open(file, O_WRONLY | O_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    dup2(fd, STDOUT_FILENO);
    for (size_t i = 0; i < bytes; i++)
        putchar('x');
    if (recover)
        dup2(null, STDOUT_FILENO);
    const int first = asym_output_end();
    _exit(-(first < 0 && asym_output_end() == 0 ? 0 : first));
}

TEST(an_early_write_that_failed_is_not_forgotten)
{
    assert_int_equal(end_twice("/dev/null", 10, false), 0);
    assert_int_equal(end_twice("/dev/full", 0, false), 0);
    assert_int_equal(end_twice("/dev/full", 10, false), ENOSPC);
    assert_int_equal(end_twice("/dev/full", 100, false), ENOSPC);
    /* The last write succeeds. */
    assert_int_equal(end_twice("/dev/full", 100, true), EIO);
}

TEST_MAIN
