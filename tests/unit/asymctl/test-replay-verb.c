/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands asymctl replay and asymctl sim --from, on a record in a file. */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "report/columns.h"
#include "daemon/asymctl/long-verb.h"
#include "support/process.h"
#include "support/record-fixture.h"
#include "support/tree.h"
#include "support/shell.h"
#include "support/test.h"

enum { LONG_SNAPSHOTS = 12000 };

/* 12 threads on four CPUs, two of which are fast. */
static void write_record(const char *name, unsigned snapshots)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f;
    record_fixture_make(&f, &(struct record_fixture_plan){.seed = 3,
                                                          .threads = 12,
                                                          .snapshots = snapshots,
                                                          .interval = 100 * ASYM_MSEC,
                                                          .policy = "pa",
                                                          .plain = true,
                                                          .noisy = true});
    tree_write_bytes(&the_tree, name, f.bytes, f.len);
}

/* 4 s, and so long that a test can see a pass of a replay, and interrupt it, before the next passes end. */
static int make_record(void **state)
{
    tree_make(&the_tree);
    write_record("a.rec", 40);
    write_record("long.rec", LONG_SNAPSHOTS);
    return 0;
}

/* Returns the exit status of asymctl with these arguments, in the folder of the record. */
static int run_verb(const char *arguments, char *ret, size_t size)
{
    return shell_run(ret, size, "cd '%s' && env -u COLUMNS '%s/daemon/asymctl' %s 2>&1", the_tree.path, ASYM_TEST_BIN,
                     arguments);
}

static int run(const char *arguments, char *ret, size_t size)
{
    char line[512];
    snprintf(line, sizeof line, "replay a.rec %s", arguments);
    return run_verb(line, ret, size);
}

TEST(it_says_what_the_record_has_and_plans_have_no_json)
{
    char text[65536];
    assert_int_equal(run("", text, sizeof text), 0);
    assert_has(text, " s from the first of 40 snapshots to the last, 12 threads in all");
    assert_int_equal(run("--plans --json", text, sizeof text), 2);
    assert_has(text, "asymctl: replay: --plans prints lines to compare, and has no --json\n");
}

/* The whole way from a record to a result, and what asymctl says that it could not know. */
TEST(a_record_is_simulated_with_what_it_does_not_tell)
{
    char text[65536];
    assert_int_equal(run_verb("sim --from=a.rec --policy=pa --repeat=2", text, sizeof text), 0);
    assert_has(text, "The scenario has ");
    assert_has(text, "A record does not tell: how programs use memory and what they gain from each\n"
                     "  type of core (the simulator takes the speed of the core); where threads wait\n"
                     "  for each other (a parallel phase is one step, in chunks of 1 M); phases\n"
                     "  shorter than a sample; what starts when another program ends.\n");
    assert_has(text, "2 cores at 2x, 2 cores at 1x");
    assert_has(text, "\nnone ");
    assert_has(text, "\npa ");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(asym_columns_of(line) <= ASYM_COLUMNS_DEFAULT);
}

/* Writes the first part of a record, without its last bytes. */
static void write_cut(const char *name, unsigned snapshots, size_t without)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f;
    record_fixture_make(
        &f, &(struct record_fixture_plan){
                .seed = 3, .threads = 12, .snapshots = snapshots, .interval = ASYM_SEC, .policy = "pa", .plain = true});
    tree_write_bytes(&the_tree, name, f.bytes, f.len - without);
}

/* Once sim --from was silent, and simulated the first part as if it were all. */
TEST(a_record_without_its_end_is_used_and_each_verb_says_where_it_ends)
{
    static const char *const verbs[] = {"replay cut.rec", "replay cut.rec --json", "replay cut.rec --plans",
                                        "sim --from=cut.rec --policy=pa --repeat=1",
                                        "sim --from=cut.rec --policy=pa --repeat=1 --json"};
    static const size_t without[] = {10, 100};
    static char text[1 << 22];
    for (size_t i = 0; i < ASYM_LENGTH(without); i++)
        for (size_t v = 0; v < ASYM_LENGTH(verbs); v++) {
            write_cut("cut.rec", 40, without[i]);
            assert_int_equal(run_verb(verbs[v], text, sizeof text), 0);
            assert_has(text, "asymctl: cut.rec: byte ");
            assert_has(text, ": the file ends inside it: the recorder was killed, or the file was cut\n");
        }
    /* Without a whole segment the cut is the reason why there is nothing to simulate. */
    write_cut("cut.rec", 4, 100);
    assert_int_equal(run_verb("sim --from=cut.rec", text, sizeof text), 2);
    assert_has(text, "segment 1: the file ends inside it: the recorder was killed, or the file was cut\n"
                     "asymctl: no application of the record ran\n");
}

/* Once a FIFO without a writer kept the verb for ever. */
TEST(a_pipe_is_refused_with_the_way_around)
{
    static const char *const commands[] = {"replay fifo", "sim --from=fifo", "replay /dev/stdin"};
    static char text[1 << 16];
    char path[128];
    snprintf(path, sizeof path, "%s/fifo", the_tree.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    for (size_t i = 0; i < ASYM_LENGTH(commands); i++) {
        assert_int_equal(shell_run(text, sizeof text, "cd '%s' && cat a.rec | timeout 60 '%s/daemon/asymctl' %s 2>&1",
                                   the_tree.path, ASYM_TEST_BIN, commands[i]),
                         2);
        assert_has(
            text, " is a pipe, and asymctl reads a record more than once: write the record to a file, and name that\n");
    }
}

/* The exit status depends neither on the fault of the file nor on the verb. */
TEST(an_input_file_that_cannot_be_read_ends_each_verb_in_2)
{
    static const char *const files[] = {"missing", ".", "loop", "junk", "damaged.rec", "damaged-late.rec"};
    static const char *const verbs[] = {
        "sim %s",
        "sim --from=%s",
        "sim --from=a.rec --machine=%s",
        "replay %s",
        "replay %s --json",
        "replay %s --plans",
        "check --config=%s",
        "rules --config=%s",
        "rules test 1 --config=%s",
        "record out.rec --config=%s",
        "record --trace out.json --config=%s",
        "profile --config=%s --output=out -- true",
    };
    struct record_fixture f;
    record_fixture_make(
        &f, &(struct record_fixture_plan){
                .seed = 3, .threads = 12, .snapshots = 40, .interval = ASYM_SEC, .policy = "pa", .plain = true});
    f.bytes[f.len - 100] ^= 1;
    tree_write_bytes(&the_tree, "damaged-late.rec", f.bytes, f.len);
    tree_write_bytes(&the_tree, "damaged.rec", f.bytes, 60);
    record_fixture_done(&f);
    tree_link(&the_tree, "loop", "loop");
    tree_write(&the_tree, "junk", "no file of asymd\n");
    for (size_t v = 0; v < ASYM_LENGTH(verbs); v++)
        for (size_t i = 0; i < ASYM_LENGTH(files); i++) {
            static char text[1 << 22];
            char arguments[128], wanted[64];
            const char *at = strstr(verbs[v], "%s");
            snprintf(arguments, sizeof arguments, "%.*s%s%s", (int)(at - verbs[v]), verbs[v], files[i], at + 2);
            const int status = run_verb(arguments, text, sizeof text);
            snprintf(wanted, sizeof wanted, "asymctl: %s:", files[i]);
            if (status != 2 || !strstr(text, wanted))
                fail_msg("asymctl %s ended in %d and said: %s", arguments, status, text);
        }
}

#define LONG_POLICIES "--policy=pa,rr,serial-first,busyfcs,mintlp,throughput"

/* Starts a replay of the long record on the CPU of the test. Its standard error is a terminal. Returns its PID. */
static pid_t start_long(const char *option, int *ret_out, int *ret_terminal)
{
    int out[2];
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0 && pipe(out) == 0);
    /* On one CPU the scheduler divides the time fairly: on a busy machine asymctl never runs on for long while the test waits. */
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET((size_t)sched_getcpu(), &cpu);
    assert_int_equal(sched_setaffinity(0, sizeof cpu, &cpu), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        if (dup2(out[1], 1) == 1 && dup2(slave, 2) == 2 && chdir(the_tree.path) == 0)
            execl(ASYM_TEST_BIN "/daemon/asymctl", "asymctl", "replay", "long.rec", LONG_POLICIES, option, NULL);
        _exit(127);
    }
    close(out[1]);
    close(slave);
    *ret_out = out[0];
    *ret_terminal = terminal;
    return pid;
}

/* Reads until the text has the wanted part; NULL: until the end. */
static void read_until(int fd, const char *wanted, char *text, size_t size)
{
    size_t used = strlen(text);
    for (ssize_t n; used + 1 < size && (!wanted || !strstr(text, wanted));) {
        n = read(fd, text + used, size - 1 - used);
        if (n <= 0)
            break;
        text[used += (size_t)n] = '\0';
    }
    if (wanted)
        assert_has(text, wanted);
}

/* Before asymctl catches SIGINT, the signal would end it. */
static void await_handler(pid_t pid)
{
    for (int i = 0; i < 60 * 1000; i++) {
        if (asym_process_catches(pid, SIGINT))
            return;
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        usleep(1000);
    }
    fail_msg("asymctl does not catch SIGINT");
}

TEST(a_long_replay_shows_its_progress_and_ctrl_c_prints_what_is_done)
{
    static char errors[1 << 20], table[65536];
    unsigned done = 0;
    int out, terminal, status;
    const pid_t pid = start_long(NULL, &out, &terminal);
    /*
     * The bar is due after ASYM_PROGRESS_AFTER. asymctl is stopped for most of that time, so a fast machine does not end the replay
     * before. The time between two stops grows, because a busy machine gives asymctl little of it.
     */
    struct pollfd bar = {.fd = terminal, .events = POLLIN};
    await_handler(pid);
    for (int i = 0; i < 200 && poll(&bar, 1, 20 + 5 * i) == 0; i++) {
        assert_int_equal(asym_process_stop(pid), 0);
        usleep((useconds_t)(ASYM_PROGRESS_AFTER * 1e6 / 2));
        asym_process_signal(pid, SIGCONT);
    }
    assert_int_equal(bar.revents & POLLIN, POLLIN);
    for (unsigned pass = 0; pass < 3;) {
        *errors = '\0';
        read_until(terminal, " of 8 passes, ", errors, sizeof errors);
        pass = (unsigned)strtoul(strstr(errors, " of 8 passes, ") - 1, NULL, 10);
    }
    asym_process_signal(pid, SIGINT);
    read_until(out, NULL, table, sizeof table);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    read_until(terminal, " policies are done", errors, sizeof errors);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_int_equal(sscanf(strstr(errors, "interrupted: "), "interrupted: %u of 7 policies", &done), 1);
    assert_in_range(done, 2, 6);
    /* The line of the bar is empty again before the message. */
    assert_has(errors, "\r\033[Kasymctl: interrupted: ");
    assert_has(table, "\nseen ");
    assert_has(table, "\npa ");
    assert_null(strstr(table, "\nthroughput "));
    assert_has(table, "byte for byte");
    close(out);
    close(terminal);
}

TEST(an_interruption_before_the_first_policy_prints_no_table)
{
    static char errors[1 << 20], table[65536];
    int out, terminal, status;
    const pid_t pid = start_long("--json", &out, &terminal);
    await_handler(pid);
    asym_process_signal(pid, SIGINT);
    read_until(out, NULL, table, sizeof table);
    read_until(terminal, "interrupted: 0 of 7 policies are done", errors, sizeof errors);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_string_equal(table, "");
    close(out);
    close(terminal);
}

TEST_MAIN_WITH(make_record, the_tree_remove)
