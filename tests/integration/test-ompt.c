/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The OMPT tool in OpenMP programs without any knowledge of asymd, on LLVM's runtime: the page shows what their threads do,
 * with waits that spin and waits that sleep.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/wait.h>

#include <asym/rtx.h>

#include "omp-tools.h"

#include "support/listener.h"
#include "support/live.h"
#include "support/process.h"
#include "support/rounds.h"
#include "support/test.h"

#define PROGRAMS ASYM_TEST_BIN "/tests/omp/"

struct program {
    pid_t pid;
    FILE *say, *answers;
};

/* tool and preload, unless NULL, are variables in the environment of the program only. */
static struct program start_command(const char *const *argv, const char *tool, const char *preload)
{
    int down[2], up[2];
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    fflush(NULL);
    struct program p = {.pid = asym_process_fork()};
    if (p.pid == 0) {
        alarm(120);
        dup2(down[0], STDIN_FILENO);
        dup2(up[1], STDOUT_FILENO);
        for (int fd = 3; fd < 100; fd++)
            close(fd);
        if (tool)
            setenv("OMP_TOOL_LIBRARIES", tool, 1);
        if (preload)
            setenv("LD_PRELOAD", preload, 1);
        /* This ThreadSanitizer does not support as much address randomisation as current kernels use. */
        personality(ADDR_NO_RANDOMIZE);
        execv(argv[0], (char **)(uintptr_t)argv);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    p.say = fdopen(down[1], "w");
    p.answers = fdopen(up[0], "r");
    assert_true(p.pid > 0 && p.say && p.answers);
    return p;
}

static struct program start_program(const char *path, const char *tool, const char *preload, const char *argument)
{
    const char *const argv[] = {path, argument, NULL};
    return start_command(argv, tool, preload);
}

static int end_program(struct program *p)
{
    int status;
    fclose(p->say);
    fclose(p->answers);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    return status;
}

static void step(struct program *p, const char *line)
{
    char answer[32];
    assert_true(fprintf(p->say, "%s\n", line) > 0 && fflush(p->say) == 0);
    assert_non_null(fgets(answer, sizeof answer, p->answers));
    assert_string_equal(answer, "so\n");
}

/* The first step, in which the program joins. */
static void step_and_join(struct program *p, const char *line, struct asym_listener *l, struct asym_handed *ret)
{
    step(p, line);
    assert_true(asym_listener_take(l, 10, ret));
    assert_int_equal(ret->page->magic, ASYM_RTX_MAGIC);
}

struct seen {
    int working, spinning, masters;
    bool serial;
};

static struct seen read_page(const struct asym_handed *h)
{
    struct seen s = {0};
    for (uint32_t i = 0; i < h->page->n_slots; i++) {
        const struct asym_rtx_slot *slot = (const void *)((const char *)h->page + h->page->header_size +
                                                          (size_t)i * h->page->slot_size);
        const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_RELAXED);
        if (slot->tid == 0)
            continue;
        s.working += (word & ASYM_RTX_STATE) == ASYM_RTX_WORKING;
        s.spinning += (word & ASYM_RTX_STATE) == ASYM_RTX_SPINNING;
        s.masters += (word & ASYM_RTX_MASTER) != 0;
        s.serial |= (word & ASYM_RTX_SERIAL) != 0;
    }
    return s;
}

/* A step, and the state of the page after it; spinning -1: any. */
struct step {
    const char *line;
    int working, spinning;
    bool serial;
};

static const struct step steps[] = {
    {"serial", 1, 0, true},
    {"parallel 4", 4, 0, false},
    {"serial", 1, 3, true},
    {"barrier 4", 1, 3, false},
    {"serial", 1, 3, true},
    {"task 4", 2, 2, false},
    {"parallel 2", 2, 2, false},
    {"parallel 1", 1, -1, true},
    {"parallel 5", 5, 0, false},
    {"serial", 1, 4, true},
    {"nested 2", 4, -1, false},
    {"serial", 1, -1, true},
    /* The initial thread waits for a thread that it created: OpenMP counts that as work. */
    {"threads 3", 4, -1, true},
    {"serial", 1, -1, true},
};

/* The program says that it has done a step when its first thread has: the others may still wait for a CPU. */
static void await_page(const struct asym_handed *h, const struct step *want)
{
    struct seen s = {0};
    bool right = false;
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; !right && asym_live_now() < end;) {
        s = read_page(h);
        right = s.working == want->working && (want->spinning < 0 || s.spinning == want->spinning) &&
                s.serial == want->serial && s.masters == 1;
        if (!right)
            asym_live_sleep(0.01);
    }
    if (!right)
        fail_msg("%s: %d work, %d spin, %d masters, %s", want->line, s.working, s.spinning, s.masters,
                 s.serial ? "serial" : "parallel");
}

static void check_steps(const char *path, const char *preload)
{
    ASYM_CLEANUP(asym_listener_done) struct asym_listener l;
    ASYM_CLEANUP(asym_handed_done) struct asym_handed h;
    asym_listener_open(&l);
    struct program p = start_program(path, ASYM_TEST_OMPT, preload, NULL);
    for (size_t i = 0; i < ASYM_LENGTH(steps); i++) {
        if (i == 0)
            step_and_join(&p, steps[i].line, &l, &h);
        else
            step(&p, steps[i].line);
        await_page(&h, &steps[i]);
    }
    fputs("end\n", p.say);
    assert_int_equal(end_program(&p), 0);
}

TEST(the_page_shows_what_threads_do)
{
    static const char *const waits[] = {"infinite", "200", "0"};
    for (size_t i = 0; i < ASYM_LENGTH(waits); i++) {
        setenv("KMP_BLOCKTIME", waits[i], 1);
        check_steps(PROGRAMS "steps-clang", NULL);
    }
    unsetenv("KMP_BLOCKTIME");
}

TEST(a_program_of_gcc_reports_on_the_other_runtime)
{
    check_steps(PROGRAMS "steps-gcc", "libomp.so.5");
}

TEST(asymctl_run_makes_programs_report)
{
    static const char asymctl[] = ASYM_TEST_BIN "/daemon/asymctl", tool[] = "--tool=" ASYM_TEST_OMPT;
    static const char *const commands[][7] = {
        {asymctl, "run", tool, "--", PROGRAMS "steps-clang"},
        {asymctl, "run", "--gcc", tool, PROGRAMS "steps-gcc"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(commands); i++) {
        ASYM_CLEANUP(asym_listener_done) struct asym_listener l;
        ASYM_CLEANUP(asym_handed_done) struct asym_handed h;
        asym_listener_open(&l);
        struct program p = start_command(commands[i], NULL, NULL);
        step_and_join(&p, "parallel 3", &l, &h);
        await_page(&h, &(struct step){"parallel 3", 3, 0, false});
        fputs("end\n", p.say);
        assert_int_equal(end_program(&p), 0);
    }
}

/* asymctl run prints an error where the tool cannot be used, and the program runs without it. */
TEST(asymctl_run_says_where_it_cannot)
{
    static const struct {
        const char *arguments, *said;
        int status;
    } cases[] = {
        {"run --gcc --tool=" ASYM_TEST_OMPT " " PROGRAMS "steps-static", "statically linked", 0},
        {"run --tool=" ASYM_TEST_OMPT " " PROGRAMS "steps-gcc", "--gcc", 0},
        {"run --tool=" ASYM_TEST_OMPT " /tmp/asym-suid-test", "set-user-ID", 0},
        {"run --tool=/nonexistent.so -- true", "/nonexistent.so", 0},
        {"run --tool=" ASYM_TEST_OMPT " no-such-program-here", "no such program", 127},
        {"run --tool=" ASYM_TEST_OMPT " /dev/null", "Permission denied", 126},
        {"run --gc -- true", "unknown option --gc", 2},
        {"run --gcc", "needs a program", 2},
    };
    char text[1024], command[1024];
    assert_int_equal(system("cp /bin/true /tmp/asym-suid-test && chmod u+s /tmp/asym-suid-test"), 0);
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        snprintf(command, sizeof command, "echo end | '%s/daemon/asymctl' %s 2>&1", ASYM_TEST_BIN, cases[i].arguments);
        FILE *pipe = popen(command, "r");
        size_t n = fread(text, 1, sizeof text - 1, pipe);
        text[n] = '\0';
        const int status = pclose(pipe);
        if (!strstr(text, cases[i].said))
            fail_msg("%s: no '%s' in: %s", cases[i].arguments, cases[i].said, text);
        assert_int_equal(WEXITSTATUS(status), cases[i].status);
    }
    unlink("/tmp/asym-suid-test");
}

/*
 * The kernel counts a wait for a CPU when it ends. Beside many other programs one lasts for a third of a second: then a thread that
 * never pauses looks in one observation as if it had.
 */
TEST(a_program_that_spins_and_does_not_report_is_suspected)
{
    static char text[262144];
    setenv("KMP_BLOCKTIME", "infinite", 1);
    struct program p = start_program(PROGRAMS "steps-clang", "", NULL, NULL);
    unsetenv("KMP_BLOCKTIME");
    step(&p, "barrier 2");
    asym_live_sleep(0.7);
    const char *const dry[] = {"daemon/asymd", "--dry-run", "--json", asym_live_pid_option(p.pid), NULL};
    const double end = asym_live_now() + ASYM_LIVE_PATIENCE;
    do
        assert_int_equal(asym_live_run(dry, text, sizeof text), 0);
    while (!strstr(text, "\"rtx\": \"suspect\"") && asym_live_now() < end);
    assert_non_null(strstr(text, "\"rtx\": \"suspect\""));
    fputs("end\n", p.say);
    assert_int_equal(end_program(&p), 0);
}

TEST(without_a_daemon_the_program_does_not_notice)
{
    char answer[128];
    setenv(ASYM_RTX_DIR_ENV, "/nonexistent/rtx", 1);
    struct program p = start_program(PROGRAMS "churn-clang", ASYM_TEST_OMPT, NULL, "1");
    assert_non_null(fgets(answer, sizeof answer, p.answers));
    assert_int_equal(end_program(&p), 0);
}

/* Each runtime has a copy of the tool, with its own page. */
TEST(two_runtimes_in_one_process_do_no_harm)
{
    char answer[32] = "";
    ASYM_CLEANUP(asym_listener_done) struct asym_listener l;
    struct asym_handed h[2];
    asym_listener_open(&l);
    setenv("KMP_DUPLICATE_LIB_OK", "TRUE", 1);
    struct program p = start_program(PROGRAMS "twice-clang", ASYM_TEST_OMPT, NULL, NULL);
    unsetenv("KMP_DUPLICATE_LIB_OK");
    for (size_t i = 0; i < ASYM_LENGTH(h); i++) {
        assert_true(asym_listener_take(&l, 10, &h[i]));
        assert_int_equal(h[i].pid, p.pid);
    }
    assert_non_null(fgets(answer, sizeof answer, p.answers));
    assert_string_equal(answer, "tools=2\n");
    assert_int_equal(end_program(&p), 0);
    for (size_t i = 0; i < ASYM_LENGTH(h); i++)
        asym_handed_done(&h[i]);
}

/* The same sanitizer instruments the tool and the program, so that each sees the accesses of the other. */
static void it_is_clean_under(const char *sanitizer)
{
    char path[256], tool[256], answer[128] = "";
    ASYM_CLEANUP(asym_listener_done) struct asym_listener l;
    ASYM_CLEANUP(asym_handed_done) struct asym_handed h;
    snprintf(path, sizeof path, PROGRAMS "churn-%s", sanitizer);
    snprintf(tool, sizeof tool, PROGRAMS "ompt-%s.so", sanitizer);
    asym_listener_open(&l);
    struct program p = start_program(path, tool, NULL, asym_rounds_are_all() ? "3" : "1");
    assert_true(asym_listener_take(&l, 20, &h));
    assert_non_null(fgets(answer, sizeof answer, p.answers));
    print_message("%s: %s", sanitizer, answer);
    assert_true(asym_handed_woken(&h) > 0);
    assert_int_equal(end_program(&p), 0);
}

TEST(thread_sanitizer)
{
    /* The runtime is not instrumented: suppress reports about its own accesses. */
    char options[256];
    snprintf(options, sizeof options, "halt_on_error=1 ignore_noninstrumented_modules=1 suppressions=%s/omp/tsan.supp",
             ASYM_TEST_SOURCE "/tests");
    setenv("TSAN_OPTIONS", options, 1);
    it_is_clean_under("tsan");
    unsetenv("TSAN_OPTIONS");
}

TEST(address_sanitizer)
{
    /* The runtime never frees the memory of its threads. */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    it_is_clean_under("asan");
    unsetenv("ASAN_OPTIONS");
}

/* --- the tool without a runtime --- */

static ompt_callback_t registered[64];

static ompt_set_result_t keep(ompt_callbacks_t event, ompt_callback_t callback)
{
    assert_in_range(event, 0, ASYM_LENGTH(registered) - 1);
    registered[event] = callback;
    return ompt_set_always;
}

static ompt_interface_fn_t look_up(const char *name)
{
    return strcmp(name, "ompt_set_callback") == 0 ? (ompt_interface_fn_t)keep : NULL;
}

static void load_tool(void)
{
    void *tool = dlopen(ASYM_TEST_OMPT, RTLD_NOW);
    assert_non_null(tool);
    ompt_start_tool_result_t *(*start)(unsigned, const char *);
    *(void **)&start = dlsym(tool, "ompt_start_tool");
    assert_non_null(start);
    ompt_start_tool_result_t *result = start(201811, "a test");
    assert_int_equal(result->initialize(look_up, 0, &result->tool_data), 1);
}

static void on_implicit_task(ompt_scope_endpoint_t endpoint)
{
    ompt_data_t region = {0}, task = {0};
    ((ompt_callback_implicit_task_t)registered[ompt_callback_implicit_task])(
        endpoint, endpoint == ompt_scope_begin ? &region : NULL, &task, 4, 3, ompt_task_implicit);
}

static void on_wait(ompt_scope_endpoint_t endpoint)
{
    ompt_data_t region = {0}, task = {0};
    ((ompt_callback_sync_region_t)registered[ompt_callback_sync_region_wait])(
        ompt_sync_region_barrier_implicit, endpoint, endpoint == ompt_scope_begin ? &region : NULL, &task, NULL);
}

/*
 * A worker that comes to the last barrier of a region when a next, smaller region has begun: LLVM's runtime says at once that its
 * wait and its task have ended, and leaves it in the pool.
 */
TEST(a_worker_whose_task_has_ended_does_not_work)
{
    ASYM_CLEANUP(asym_listener_done) struct asym_listener l;
    ASYM_CLEANUP(asym_handed_done) struct asym_handed h;
    asym_listener_open(&l);
    load_tool();
    assert_true(asym_listener_take(&l, 10, &h));
    ((ompt_callback_thread_begin_t)registered[ompt_callback_thread_begin])(ompt_thread_worker, NULL);
    for (int round = 0; round < 2; round++) {
        on_implicit_task(ompt_scope_begin);
        assert_int_equal(read_page(&h).working, 1);
        on_wait(ompt_scope_begin);
        assert_int_equal(read_page(&h).spinning, 1);
        on_wait(ompt_scope_end);
        on_implicit_task(ompt_scope_end);
        assert_int_equal(read_page(&h).working, 0);
        assert_int_equal(read_page(&h).spinning, 1);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return test_run(NULL, NULL);
}
