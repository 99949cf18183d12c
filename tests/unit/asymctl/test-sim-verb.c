/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command asymctl sim, and the figures of an experiment. */
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <jansson.h>

#include "daemon/asymctl/long-verb.h"
#include "report/columns.h"
#include "experiment/experiment.h"
#include "report/json.h"
#include "support/json.h"
#include "support/live.h"
#include "support/process.h"
#include "support/shell.h"
#include "support/test.h"

static const char small[] = "[machine]\ncounts=3,1\nspeeds=1,2\n[run]\nduration=2s\n"
                            "[program serial]\nstep=serial 100G\n"
                            "[program parallel]\nthreads=4\nstep=parallel 400M uniform chunk=1M\nstep=serial 20M\n";

static char path[64];

static int make_file(void **state)
{
    snprintf(path, sizeof path, "/tmp/asym-sim-XXXXXX");
    int fd = mkstemp(path);
    bool done = fd >= 0 && write(fd, small, sizeof small - 1) == (ssize_t)sizeof small - 1;
    return done && close(fd) == 0 ? 0 : -1;
}

static int remove_file(void **state)
{
    return unlink(path);
}

/* Puts a space in place of each line break and its indent, so that a test finds a phrase wherever the line breaks. */
static const char *unwrapped(char *text)
{
    for (char *at = text; (at = strstr(at, "\n  "));)
        memmove(at, at + 2, strlen(at + 2) + 1);
    return text;
}

/* Both outputs of the last asymctl. */
static char output[262144];

static int run(const char *arguments)
{
    return shell_run(output, sizeof output, "'%s/daemon/asymctl' sim %s 2>&1", ASYM_TEST_BIN, arguments);
}

static int run_file(const char *arguments)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s", path, arguments);
    return run(line);
}

/* Its report as JSON, which the caller frees. */
static json_t *report_of(const char *arguments)
{
    char all[256];
    snprintf(all, sizeof all, "--json %s", arguments);
    assert_int_equal(run_file(all), 0);
    return json_of(output);
}

/* Writes a file beside that of the tests, and its name to ret. */
static void write_file(const char *suffix, const char *text, char *ret, size_t size)
{
    snprintf(ret, size, "%s.%s", path, suffix);
    file_write(ret, "%s", text);
}

/* Returns the exit status of a simulation of that scenario, of which no file is left. */
static int run_scenario(const char *scenario, const char *arguments)
{
    char name[80], line[256];
    write_file("own", scenario, name, sizeof name);
    snprintf(line, sizeof line, "%s %s", name, arguments);
    const int status = run(line);
    unlink(name);
    return status;
}

TEST(the_table_fits_and_has_a_row_for_each_policy)
{
    char head[16384];
    assert_int_equal(run_file("--policy=pa,auto --repeat=3"), 0);
    static const char *const parts[] = {"3 cores at 1x, 1 core at 2x;", "\nnone ", "\npa ", "\nasym ", "\nserial "};
    for (size_t i = 0; i < ASYM_LENGTH(parts); i++)
        assert_has(output, parts[i]);
    assert_has(unwrapped(strcpy(head, output)), "15 of 15 trials, 3 seeds from 1; auto is asym");
    for (char *line = strtok(output, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(asym_columns_of(line) <= ASYM_COLUMNS_DEFAULT);
}

TEST(the_output_does_not_depend_on_the_number_of_workers)
{
    assert_int_equal(run_file("--json --policy=pa --repeat=4 --workers=1"), 0);
    ASYM_AUTO_FREE char *one = strdup(output);
    assert_int_equal(run_file("--json --policy=pa --repeat=4 --workers=5"), 0);
    assert_string_equal(one, output);
    assert_int_equal(run_file("--json --policy=pa --repeat=4 --seed=9"), 0);
    assert_string_not_equal(one, output);
}

TEST(cpu_time_of_plans_is_printed_only_where_it_is_asked_for)
{
    assert_int_equal(run_file("--policy=pa --repeat=2"), 0);
    assert_null(strstr(output, "us of CPU a plan"));
    assert_int_equal(run_file("--policy=pa --repeat=2 --cost"), 0);
    assert_has(output, "us of CPU a plan");
    assert_has(output, "Two seeds are too");
    assert_int_equal(run_file("--policy=pa --repeat=2 --json"), 0);
    assert_null(strstr(output, "plan_cpu_us"));
    ASYM_AUTO_JSON json_t *root = report_of("--policy=pa,auto --repeat=2 --cost");
    assert_json(root, "{'auto': 'asym'}");
    static const char *const keys[] = {"policies.1.plans_per_s.mean", "policies.1.threads_per_plan.mean",
                                       "policies.1.plan_cpu_us.mean"};
    double means[3];
    for (size_t i = 0; i < ASYM_LENGTH(keys); i++)
        means[i] = json_number_value(json_at(root, keys[i]));
    /* A sample every 100 ms for 2 s, the last one at the end, of at most five threads. */
    assert_true(means[0] >= 9 && means[0] <= 10);
    assert_true(means[1] > 1 && means[1] <= 5);
    assert_true(means[2] >= 0 && means[2] < 1e5);
}

/* Returns the game's gain under pa over the stock scheduler, with fast_from as given. */
static double gain_of_game(const char *fast_from)
{
    char shell[512], line[512];
    snprintf(shell, sizeof shell,
             "sed 's/^speeds = .*/&\\nfast_from = %s/' '%s/scenarios/game-beside-build.ini' > '%s.game'", fast_from,
             ASYM_TEST_SOURCE, path);
    assert_int_equal(system(shell), 0);
    snprintf(line, sizeof line, "%s.game --policy=pa --repeat=2 --json", path);
    assert_int_equal(run(line), 0);
    snprintf(line, sizeof line, "%s.game", path);
    assert_int_equal(unlink(line), 0);
    ASYM_AUTO_JSON json_t *root = json_of(output);
    assert_json(json_at(root, "policies.0.programs.0"), "{'name': 'game'}");
    assert_json(json_at(root, "policies.1.programs.0"), "{'name': 'game'}");
    assert_int_equal(json_array_size(json_at(root, "policies")), 2);
    const double stock = json_real_value(json_at(root, "policies.0.programs.0.speedup.mean"));
    assert_true(stock > 0);
    return json_real_value(json_at(root, "policies.1.programs.0.speedup.mean")) / stock - 1;
}

/* A Core i9-13900K: when only its two favoured cores counted as fast, a game of eight threads gained nothing. */
TEST(a_game_of_eight_threads_gains_from_all_p_cores)
{
    assert_true(gain_of_game("80%") > 0.10);
    assert_true(gain_of_game("100%") < 0.05);
}

TEST(each_mean_has_an_interval_but_for_one_run)
{
    assert_int_equal(run_file("--policy=pa --repeat=1 --cost"), 0);
    assert_has(output, "us of CPU a plan");
    assert_null(strstr(output, "+--"));
    assert_null(strstr(output, "\n+- "));
    assert_int_equal(run_file("--policy=pa --repeat=2 --cost"), 0);
    assert_has(strstr(output, "us of CPU a plan"), " +-");
    const char *sure = strstr(output, "\n+- ");
    assert_non_null(sure);
    assert_has(sure, "\npa ");
    assert_has(sure, "\nnone ");
}

TEST(json_says_what_was_measured)
{
    ASYM_AUTO_JSON json_t *root = report_of("--policy=pa --repeat=3");
    assert_json(root, "{'schema': 'asymctl.sim/1'}");
    json_t *serial = json_at(root, "policies.1.programs.0");
    assert_int_equal(json_array_size(json_at(serial, "speedup.values")), 3);
    /* Alone the program begins on any CPU, of mean speed 1.25; beside the other it gets the fast one. */
    assert_true(json_real_value(json_at(serial, "speedup.mean")) > 0.9);
    assert_json(serial, "{'run_time_s': {'mean': null}}");
}

/* Returns the share of busy CPU time of one program on four CPUs, one of which is twice as fast, under pa. */
static double busy_with(const char *program)
{
    char scenario[512];
    snprintf(scenario, sizeof scenario, "[machine]\ncounts=3,1\nspeeds=1,2\n[run]\nduration=2s\n[program p]\n%s\n",
             program);
    assert_int_equal(run_scenario(scenario, "--policy=pa --json"), 0);
    ASYM_AUTO_JSON json_t *root = json_of(output);
    return json_number_value(json_at(root, "policies.1.busy.mean"));
}

/* One thread keeps one of four CPUs busy, however fast it is, and five threads keep all busy, also if they spin. */
TEST(busy_is_the_share_of_cpu_time_that_is_used)
{
    assert_float_equal(busy_with("step=serial 100G"), 0.25, 1e-6);
    assert_float_equal(busy_with("threads=5\nstep=parallel 100G"), 1, 1e-6);
    assert_float_equal(busy_with("threads=4\nspin=forever\nstep=parallel 1M\nstep=serial 100G"), 1, 1e-6);
}

TEST(too_many_programs_are_reported_with_the_line_of_the_first_too_many)
{
    char many[80], line[128];
    snprintf(many, sizeof many, "%s.many", path);
    FILE *out = fopen(many, "w");
    assert_non_null(out);
    fputs("[machine]\ncounts=2\nspeeds=1\n", out);
    for (unsigned i = 0; i < ASYM_SIM_MAX_PROGRAMS + 2; i++)
        fprintf(out, "[program p%u]\nstep=serial 1M\n", i);
    fclose(out);
    assert_int_equal(run(many), 2);
    unlink(many);
    snprintf(line, sizeof line, "%s:%u: more than 64 programs", many, 3u + 2 * ASYM_SIM_MAX_PROGRAMS + 1);
    assert_has(output, line);
}

TEST(the_trace_is_json_with_tracks_runs_and_reasons)
{
    char arguments[256], trace[80];
    unsigned n[128] = {0};
    snprintf(trace, sizeof trace, "%s.json", path);
    snprintf(arguments, sizeof arguments, "--policy=pa --repeat=1 --trace=%s", trace);
    assert_int_equal(run_file(arguments), 0);
    ASYM_AUTO_JSON json_t *root = json_load_file(trace, 0, NULL);
    unlink(trace);
    assert_non_null(root);
    double busy = 0;
    size_t i;
    json_t *e;
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
    {
        const char *kind = json_string_value(json_object_get(e, "ph"));
        n[(unsigned char)kind[0] % 128]++;
        busy += kind[0] == 'X' ? json_number_value(json_object_get(e, "dur")) : 0;
        if (kind[0] == 'i')
            assert_true(strlen(json_string_value(json_object_get(json_object_get(e, "args"), "why"))) > 0);
    }
    assert_true(n['M'] >= 9 && n['C'] == 4 && n['i'] > 0 && n['X'] > 100);
    /* Four CPUs are busy nearly all of two seconds; the serial steps leave two idle. */
    assert_true(busy > 7e6 && busy <= 8e6);
}

/* Returns the number of steering instants in the trace of such a run. */
static size_t steered(const char *arguments, int status)
{
    char line[256], trace[80];
    snprintf(trace, sizeof trace, "%s.json", path);
    snprintf(line, sizeof line, "%s --repeat=1 --trace=%s", arguments, trace);
    assert_int_equal(run_file(line), status);
    ASYM_AUTO_JSON json_t *root = json_load_file(trace, 0, NULL);
    unlink(trace);
    assert_non_null(root);
    size_t i, n = 0;
    json_t *e;
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
        n += strcmp(json_string_value(json_object_get(e, "ph")), "i") == 0;
    return n;
}

TEST(the_trace_is_of_the_first_policy_named)
{
    assert_true(steered("--policy=pa,none", 0) > 0);
    assert_int_equal(steered("--policy=none,pa", 0), 0);
    /* The scenario's own policy, which is auto. */
    assert_true(steered("", 0) > 0);
}

TEST(a_trace_that_cannot_be_written_does_not_cost_the_report)
{
    assert_int_equal(run_file("--policy=pa --repeat=1 --trace=/dev/full"), 1);
    assert_has(output, "/dev/full: ");
    assert_has(output, "\npa ");
    /* A fault that is known before the run starts no trial. */
    assert_int_equal(run_file("--policy=pa --repeat=1000 --trace=/nonexistent/t"), 1);
    assert_null(strstr(output, "\npa "));
}

/* Returns the jitter of two programs over all seeds but one (or over all of them). */
static double jitter_without(json_t *programs, size_t n, size_t left_out)
{
    double sum = 0;
    for (size_t i = 0; i < 2; i++) {
        json_t *values = json_at(json_array_get(programs, i), "performance.values");
        double mean = 0, square = 0;
        const double m = (double)(left_out < n ? n - 1 : n);
        for (size_t k = 0; k < n; k++)
            mean += k == left_out ? 0 : 1 / json_number_value(json_array_get(values, k)) / m;
        for (size_t k = 0; k < n; k++) {
            const double off = 1 / json_number_value(json_array_get(values, k)) / mean - 1;
            square += k == left_out ? 0 : off * off / m;
        }
        sum += sqrt(square) / 2;
    }
    return sum;
}

TEST(jitter_is_as_sure_as_leaving_out_seeds_says)
{
    enum { N = 4 };
    ASYM_AUTO_JSON json_t *root = report_of("--policy=pa --repeat=4");
    json_t *programs = json_at(root, "policies.0.programs");
    double x[N], mean = 0, square = 0;
    for (size_t k = 0; k < N; k++) {
        x[k] = N * jitter_without(programs, N, N) - (N - 1) * jitter_without(programs, N, k);
        mean += x[k] / N;
    }
    for (size_t k = 0; k < N; k++)
        square += (x[k] - mean) * (x[k] - mean);
    const double expected = 3.182 * sqrt(square / (N - 1) / N);
    assert_true(expected > 0);
    assert_true(fabs(json_number_value(json_at(root, "policies.0.jitter_confidence")) / expected - 1) < 1e-6);
    /* Without one of two seeds there is one left, which has no jitter. */
    ASYM_AUTO_JSON json_t *two = report_of("--policy=pa --repeat=2");
    assert_json(json_at(two, "policies.0"), "{'jitter_confidence': null}");
}

TEST(the_head_gives_speeds_relative_to_the_slowest_core)
{
    static const char scenario[] = "[machine]\ncounts=2,1,3\nspeeds=5.5,5.8,4.3\n[run]\nduration=10ms\nalone=no\n"
                                   "[program a]\nstep=serial 1G\n";
    assert_int_equal(run_scenario(scenario, "--policy=none --repeat=1"), 0);
    assert_has(unwrapped(output), ": 2 cores at 1.28x, 1 core at 1.35x, 3 cores at 1x; 6 CPUs");
}

TEST(jobs_that_are_turned_away_are_counted)
{
    /* About 10,000 jobs arrive in two seconds: one runs, 4096 wait. */
    static const char scenario[] = "[machine]\ncounts=2\nspeeds=1\n[run]\nduration=2s\nalone=no\n"
                                   "[program a]\nrate=5000\npasses=1\nstep=serial 100G\n";
    assert_int_equal(run_scenario(scenario, "--policy=none --repeat=1"), 0);
    assert_has(output, "a, none: ");
    assert_has(output, " jobs a run were turned away");
    assert_int_equal(run_scenario(scenario, "--policy=none --repeat=1 --json"), 0);
    ASYM_AUTO_JSON json_t *root = json_of(output);
    const double n = json_number_value(json_at(root, "policies.0.programs.0.turned_away.mean"));
    assert_true(n > 10000 - 4097 - 500 && n < 10000 - 4097 + 500);
    assert_int_equal(run_file("--policy=none --repeat=1"), 0);
    assert_null(strstr(output, "turned away"));
}

TEST(memory_limits_workers_and_then_the_scenario)
{
    struct asym_scenario *s;
    struct asym_error err = {""};
    static const char text[] = "[machine]\ncounts=2\nspeeds=1\n[program small]\nstep=serial 1G\n"
                               "[program large]\nthreads=1000\ncount=500\nstep=parallel 1G\n";
    unsigned workers = 8;
    assert_int_equal(asym_scenario_parse(text, sizeof text - 1, "t", &s, NULL), 0);
    assert_int_equal(asym_sim_trials_fit(s, "t", UINT64_MAX, &workers, &err), 0);
    assert_int_equal(workers, 8);
    /* Half a million threads take some 700 MiB. */
    assert_int_equal(asym_sim_trials_fit(s, "t", UINT64_C(2) << 30, &workers, &err), 0);
    assert_in_range(workers, 1, 3);
    assert_int_equal(asym_sim_trials_fit(s, "t", UINT64_C(256) << 20, &workers, &err), -EINVAL);
    static const char where[] = "t:6: program large: 500001 threads";
    assert_true(strncmp(err.text, where, strlen(where)) == 0);
    assert_has(err.text, "this machine has 256");
    asym_scenario_free(s);
}

/* Start asymctl sim. *ret_out is a pipe with its output and errors. */
static pid_t start(const char *scenario, const char *repeat, int *ret_out)
{
    int pipe_fd[2];
    assert_int_equal(pipe(pipe_fd), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        char program[256];
        snprintf(program, sizeof program, "%s/daemon/asymctl", ASYM_TEST_BIN);
        dup2(pipe_fd[1], 1);
        dup2(pipe_fd[1], 2);
        close(pipe_fd[0]);
        execl(program, "asymctl", "sim", scenario, "--policy=pa", repeat, (char *)NULL);
        _exit(127);
    }
    close(pipe_fd[1]);
    *ret_out = pipe_fd[0];
    return pid;
}

/* Read all that it prints, and reap it. Returns its status as waitpid(2) does. */
static int finish(pid_t pid, int out, char *text, size_t size)
{
    size_t used = 0;
    int status;
    for (ssize_t n; used < size - 1 && (n = read(out, text + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    close(out);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/*
 * Wait until it catches SIGINT, which would end it before, and its trials have run 200 ms of CPU time. Returns 0; -ESRCH: it has
 * ended before; -ETIMEDOUT after a minute.
 */
static int wait_for_trials(pid_t pid)
{
    clockid_t clock;
    struct timespec used = {0};
    for (int i = 0; i < 6000; i++) {
        if (asym_process_state(pid) == 'Z')
            return -ESRCH;
        if (asym_process_catches(pid, SIGINT) && clock_getcpuclockid(pid, &clock) == 0 &&
            clock_gettime(clock, &used) == 0 && (used.tv_sec > 0 || used.tv_nsec > 200 * 1000 * 1000))
            return 0;
        usleep(10 * 1000);
    }
    return -ETIMEDOUT;
}

/* Interrupts a run while its trials run, and checks its output and its exit status 1. Returns the number of finished trials. */
static unsigned interrupt(const char *scenario, const char *repeat)
{
    unsigned done, all;
    int out;
    const pid_t pid = start(scenario, repeat, &out);
    const int r = wait_for_trials(pid);
    asym_live_signal(pid, r < 0 ? SIGKILL : SIGINT);
    const int status = finish(pid, out, output, sizeof output);
    if (r < 0)
        fail_msg("asymctl sim was not interrupted: %s; status %#x:\n%s",
                 r == -ESRCH ? "it ended before that" : "no trial in a minute", (unsigned)status, output);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_has(output, "\npa ");
    const char *said = strstr(output, "interrupted: ");
    assert_non_null(said);
    assert_int_equal(sscanf(said, "interrupted: %u of %u trials are done", &done, &all), 2);
    assert_true(done < all);
    return done;
}

TEST(an_asymctl_that_ends_early_is_not_waited_for)
{
    int out;
    const pid_t pid = start("/no/such/scenario.ini", "--repeat=1", &out);
    assert_int_equal(wait_for_trials(pid), -ESRCH);
    const int status = finish(pid, out, output, sizeof output);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    assert_has(output, "/no/such/scenario.ini: ");
}

TEST(ctrl_c_prints_what_is_done)
{
    const unsigned done = interrupt(path, "--repeat=1000");
    assert_true(done > 0);
    assert_has(unwrapped(output), "partial result: ");
    /* A seed has four trials: stock, pa, and each program alone. Two complete seeds can be compared. */
    if (done >= 12)
        assert_has(strstr(output, "\npa "), " %");
}

TEST(ctrl_c_ends_a_run_whose_steps_take_no_time_to_speak_of)
{
    char tiny[80];
    /* The run has 2e10 events, 2e8 of them before the first sample. */
    write_file("tiny", "[machine]\ncounts=2\nspeeds=1\n[run]\nduration=10000s\n[program a]\ncount=2\nstep=serial 1k\n",
               tiny, sizeof tiny);
    assert_int_equal(interrupt(tiny, "--repeat=1"), 0);
    unlink(tiny);
    assert_has(output, "0 of 3 trials");
}

TEST(figures_of_an_experiment)
{
    struct asym_scenario *s;
    static const char text[] =
        "[machine]\ncounts=2\nspeeds=1\n[run]\nuntil=done\nduration=100s\n"
        "[scheduler]\nswitch_cost=0ns\ntick_cost=0ns\n"
        "[program a]\npasses=1\nstep=serial 1G\n[program b]\naffinity=0\npasses=1\nstep=serial 1G\n"
        "[program c]\naffinity=0\npasses=1\nstep=serial 1G\n";
    const volatile sig_atomic_t stop = 0;
    assert_int_equal(asym_scenario_parse(text, sizeof text - 1, "t", &s, NULL), 0);
    ASYM_CLEANUP(asym_experiment_done)
    struct asym_experiment x = {.scenario = s, .n_policies = 1, .repeat = 2, .seed = 1};
    x.policies[0] = asym_policy_find("none");
    assert_int_equal(asym_experiment_init(&x), 0);
    assert_true(isnan(asym_experiment_value(&x, ASYM_FIGURE_THROUGHPUT, 0, 0, 0)));
    assert_int_equal(asym_sim_trials_run(x.trials, x.n_trials, x.repeat, 2, &stop, NULL, NULL), 0);
    assert_int_equal(asym_experiment_finished(&x), 8);
    /* b and c share CPU 0; a has the other CPU, or shares with them until a tick moves it. */
    const struct asym_estimate b = asym_experiment_estimate(&x, ASYM_FIGURE_SPEEDUP, 0, 1);
    assert_true(fabs(b.mean - 0.5) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_TOTAL, 0, 0).mean - 2) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_CPU_TIME, 0, 1).mean - 1) < 1e-6);
    /* Two run times of 2 s, and one of 1 s, or more if it shared. */
    const double turnaround = asym_experiment_estimate(&x, ASYM_FIGURE_TURNAROUND, 0, 0).mean;
    assert_true(fabs(turnaround - 5.0 / 3) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_FAIRNESS, 0, 0).mean - 0.5) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_THROUGHPUT, 0, 0).mean - 1.5e9) < 2e7);
    asym_scenario_free(s);
}

static double value_at(const json_t *root, const char *at)
{
    return json_number_value(json_at(root, at));
}

/* Returns by how many percent pa has more than stock. */
static double more_percent(const json_t *root, const char *figure)
{
    char stock[64], pa[64];
    snprintf(stock, sizeof stock, "policies.0.%s.mean", figure);
    snprintf(pa, sizeof pa, "policies.1.%s.mean", figure);
    return 100 * (value_at(root, pa) / value_at(root, stock) - 1);
}

/* The table says the same as the JSON. */
TEST(policies_are_compared_with_stock)
{
    char shown[32];
    ASYM_AUTO_JSON json_t *root = report_of("--policy=pa --repeat=5");
    assert_json(json_at(root, "policies.0"), "{'against_stock_percent': null}");
    assert_json(json_at(root, "policies.1"), "{'against_stock_percent': {'of': 'mean_speedup'},"
                                             " 'work_against_stock_percent': {'of': 'throughput'}}");
    const double gain = more_percent(root, "mean_speedup"),
                 confidence = value_at(root, "policies.1.against_stock_percent.confidence");
    assert_true(fabs(value_at(root, "policies.1.against_stock_percent.mean") - gain) < 1e-6);
    assert_true(confidence > 0 && fabs(gain) > 1);
    assert_true(fabs(value_at(root, "policies.1.work_against_stock_percent.mean") - more_percent(root, "throughput")) <
                1e-6);
    assert_int_equal(run_file("--policy=pa --repeat=5"), 0);
    snprintf(shown, sizeof shown, "  %+.1f +-%.1f %%", gain, confidence);
    assert_has(strstr(output, "\npa "), shown);
}

TEST(progress_says_what_is_left)
{
    char text[200];
    assert_string_equal(asym_progress_text(10, 12, 60, "trials", 100, text, sizeof text),
                        "[########................................] 12 of 60 trials, 40 s left");
    assert_has(asym_progress_text(10, 11.9, 60, "trials", 100, text, sizeof text), "] 11 of 60 trials, ");
    assert_string_equal(asym_progress_text(10, 0, 60, "trials", 100, text, sizeof text),
                        "[........................................] 0 of 60 trials");
    assert_string_equal(asym_progress_text(300, 1, 3, "trials", 40, text, sizeof text),
                        "[###.......] 1 of 3 trials, 10 min left");
    for (size_t columns = 40; columns < 120; columns++)
        assert_true(strlen(asym_progress_text(1e6, 999, 64000, "trials", columns, text, sizeof text)) < columns);
    assert_non_null(
        strstr(asym_progress_text(5, 60, 60, "trials", 80, text, sizeof text), "####] 60 of 60 trials, 0 s left"));
}

TEST_MAIN_WITH(make_file, remove_file)
