/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes as the user names them, in a /proc that the test writes; and the verbs that take a name, with processes of the test. */
#include <fcntl.h>
#include <signal.h>

#include "daemon/asymctl/process-name.h"
#include "support/fake-service.h"
#include "support/process.h"
#include "support/tree.h"
#include "support/shell.h"
#include "support/test.h"

enum { SELF = 90 };

static void write_process(const struct tree *t, unsigned pid, unsigned parent, char state, unsigned ticks,
                          const char *comm, const char *cmdline, size_t len)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%u/stat", pid);
    tree_write(
        t, path,
        "%u (%s) %c %u 1 1 0 -1 4194304 0 0 0 0 %u 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 "
        "0 0 0 0 0 0 0 0\n",
        pid, comm, state, parent, ticks);
    snprintf(path, sizeof path, "proc/%u/cmdline", pid);
    tree_write_bytes(t, path, cmdline, len);
}

#define PROCESS(pid, parent, state, ticks, comm, cmdline)                                                              \
    write_process(&tree, pid, parent, state, ticks, comm, cmdline, sizeof(cmdline) - 1)

static struct tree tree;
static struct asym_root root;

static int make_processes(void **state)
{
    tree_make(&tree);
    tree_plain(&tree, 1);
    PROCESS(2, 0, 'S', 0, "kswapd0", "");
    PROCESS(20, 1, 'S', 3, "cc1", "/usr/lib/gcc/cc1\0-quiet\0a.c\0");
    PROCESS(21, 1, 'S', 7, "cc1", "/usr/lib/gcc/cc1\0-quiet\0b.c\0");
    PROCESS(22, 1, 'Z', 9, "cc1", "");
    PROCESS(30, 1, 'S', 1, "a-name-of-sixte", "/opt/My Games/a-name-of-sixteen-and-more\0--level=2\0");
    PROCESS(31, 1, 'S', 1, "Render", "C:\\Games\\Racer 2\\racer.exe\0-full\0");
    PROCESS(32, 1, 'S', 1, "python3", "python3\0/usr/bin/server.py\0");
    PROCESS(33, 1, 'S', 1, "nginx", "nginx: worker process");
    PROCESS(34, 1, 'S', 1, "game", "./bin/game\0-f\0");
    PROCESS(80, 1, 'S', 1, "sh", "sh\0-c\0asymctl why server.py\0");
    PROCESS(SELF, 80, 'R', 1, "asymctl", "asymctl\0why\0server.py\0");
    assert_int_equal(asym_root_open(tree.path, &root, NULL), 0);
    return 0;
}

static int remove_processes(void **state)
{
    asym_root_done(&root);
    tree_remove(&tree);
    return 0;
}

TEST_WITH(a_command_line_begins_with_the_name_of_the_program, make_processes, remove_processes)
{
    static const struct {
        uint32_t pid;
        const char *command;
    } rows[] = {
        {20, "cc1 -quiet a.c"},  {30, "a-name-of-sixteen-and-more --level=2"},
        {31, "racer.exe -full"}, {33, "nginx: worker process"},
        {34, "game -f"},         {2, ""},
    };
    char command[ASYM_COMMAND_SIZE];
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        assert_int_equal(asym_command_of(&root, rows[i].pid, command), strlen(rows[i].command));
        assert_string_equal(command, rows[i].command);
    }
    assert_true(asym_command_of(&root, 4711, command) < 0);
}

TEST_WITH(processes_are_found_by_name_or_else_by_command_line, make_processes, remove_processes)
{
    static const struct {
        const char *name;
        size_t n;
        uint32_t first;
        bool by_command_line;
    } rows[] = {
        {"cc1", 2, 21, false},                        /* not the zombie; the one with the most CPU time comes first */
        {"a-name-of-sixteen-and-more", 1, 30, false}, /* the kernel has cut the name */
        {"Render", 1, 31, false},                     /* the name of the first thread */
        {"racer.exe", 1, 31, false},
        {"server.py", 1, 32, true}, /* neither asymctl nor the shell that runs it */
        {"worker process", 1, 33, true},
        {"asymctl", 1, SELF, false},
        {"kswapd0", 1, 2, false},
        {"-quiet", 2, 21, true},
        {"nothing", 0, 0, true},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        ASYM_CLEANUP(asym_named_processes_done) struct asym_named_processes found;
        assert_int_equal(asym_named_processes_find(&root, rows[i].name, SELF, &found), 0);
        assert_int_equal(found.n, rows[i].n);
        assert_int_equal(found.by_command_line, rows[i].by_command_line);
        if (found.n > 0)
            assert_int_equal(found.process[0].pid, rows[i].first);
    }
}

TEST(a_list_has_the_first_ten_and_says_what_to_type)
{
    static struct asym_named_process processes[12];
    const struct asym_named_processes found = {.process = processes, .n = ASYM_LENGTH(processes)};
    for (size_t i = 0; i < ASYM_LENGTH(processes); i++)
        processes[i] = (struct asym_named_process){
            .pid = 100 + (uint32_t)i, .uid = 4294967294, .cpu_time = (12 - i) * ASYM_SEC, .command = "evil\033[2J one"};
    ASYM_AUTO_FREE char *text = PRINTED(asym_named_processes_list(&found, "evil", "why", out));
    assert_non_null(strstr(text, "12 processes have the name evil:\n"
                                 "PID  USER        CPU TIME  COMMAND\n"
                                 "100  4294967294      12 s  evil\\x1b[2J one\n"
                                 "101  4294967294      11 s  evil\\x1b[2J one\n"));
    assert_non_null(strstr(text, "\n109  "));
    assert_null(strstr(text, "\n110  "));
    assert_non_null(strstr(text, "\nand 2 more, which have used less CPU time\n"
                                 "Give the PID of one: asymctl why 100\n"));
}

/* Starts a process that sleeps, with this name, and waits until it has the name. It ends with the test. */
static pid_t start_named(const char *name)
{
    int ends[2];
    char none;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        execl("/bin/sleep", name, "600", NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &none, 1), 0); /* exec closes the other end */
    close(ends[0]);
    return pid;
}

/* Returns the exit status of asymctl VERB NAME REST; ret gets both outputs. */
static int run(const char *verb, const char *name, const char *rest, char *ret, size_t size)
{
    return shell_run(ret, size, "LC_ALL=C '%s/daemon/asymctl' %s '%s' %s 2>&1", ASYM_TEST_BIN, verb, name, rest);
}

static const struct {
    const char *verb, *rest, *call, *said;
} verbs[] = {
    {"why", "", "", ") has 8 runnable threads"},
    {"set", "fast", "SetProgram", "keeps process"},
    {"watch", "", "", "decision"},
};

TEST(each_verb_takes_a_name)
{
    char name[64], text[8192], calls[64];
    snprintf(name, sizeof name, "asymctl-test-single-%d", (int)getpid());
    const pid_t pid = start_named(name);
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++) {
        fake_service_start(FAKE_SERVICE_ENDS);
        const int status = run(verbs[i].verb, name, verbs[i].rest, text, sizeof text);
        /* The service ends while watch waits. */
        assert_int_equal(status, strcmp(verbs[i].verb, "watch") == 0 ? 5 : 0);
        assert_non_null(strstr(text, verbs[i].said));
        snprintf(calls, sizeof calls, "%s %d%s%s;", verbs[i].call, (int)pid, *verbs[i].rest ? " " : "", verbs[i].rest);
        assert_string_equal(fake_service_calls(), *verbs[i].call ? calls : "");
        fake_service_stop();
    }
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
}

TEST(a_name_of_several_processes_or_of_none_changes_nothing)
{
    char name[64], text[8192];
    snprintf(name, sizeof name, "asymctl-test-twin-%d", (int)getpid());
    const pid_t twins[] = {start_named(name), start_named(name)};
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++) {
        fake_service_start(FAKE_SERVICE_PLAIN);
        assert_int_equal(run(verbs[i].verb, name, verbs[i].rest, text, sizeof text), i == 0 ? 0 : 2);
        assert_non_null(strstr(text, "2 processes have the name asymctl-test-twin-"));
        assert_int_equal(run(verbs[i].verb, "nothing-has-\t-this-name", verbs[i].rest, text, sizeof text), 1);
        assert_non_null(strstr(text, "no process has the name nothing-has-\\x09-this-name, and none has it in its"));
        assert_string_equal(fake_service_calls(), "");
        fake_service_stop();
    }
    fake_service_start(FAKE_SERVICE_PLAIN);
    assert_int_equal(run("why", name, "--json", text, sizeof text), 0);
    fake_service_stop();
    for (size_t i = 0; i < ASYM_LENGTH(twins); i++) {
        char id[32];
        snprintf(id, sizeof id, "\"id\": %d,", (int)twins[i]);
        assert_non_null(strstr(text, id));
        assert_int_equal(asym_process_signal(twins[i], SIGKILL), 0);
    }
}

/* Any user can start a process that has the name of another program among its arguments. */
TEST(a_name_among_the_arguments_of_one_process_changes_nothing)
{
    char name[64], arguments[96], text[8192];
    snprintf(name, sizeof name, "asymctl-test-argument-%d", (int)getpid());
    snprintf(arguments, sizeof arguments, "asymctl-test-other %s", name);
    const pid_t pid = start_named(arguments);
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++) {
        fake_service_start(FAKE_SERVICE_PLAIN);
        assert_int_equal(run(verbs[i].verb, name, verbs[i].rest, text, sizeof text), i == 0 ? 0 : 2);
        if (i > 0)
            assert_non_null(
                strstr(text, "1 process has in the command line, but not as a name: asymctl-test-argument-"));
        assert_string_equal(fake_service_calls(), "");
        fake_service_stop();
    }
    assert_int_equal(asym_process_signal(pid, SIGKILL), 0);
}

/* The fake service knows no process of that number either. */
/* The kernel gives no number above 4194304 (PID_MAX_LIMIT): any smaller one may be that of a thread of this machine. */
TEST(watch_waits_for_no_process_that_does_not_exist)
{
    char text[1024];
    fake_service_start(FAKE_SERVICE_PLAIN);
    assert_int_equal(run("watch", "4194305", "", text, sizeof text), 1);
    fake_service_stop();
    assert_string_equal(text, "asymctl: watch: there is no process or thread 4194305\n");
}

TEST_MAIN
