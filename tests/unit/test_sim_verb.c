/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl sim, as its users meet it; and the figures of an experiment. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/macro.h"
#include "daemon/columns.h"
#include "daemon/experiment.h"
#include "daemon/json.h"
#include "support/live.h"

static const char small[] = "[machine]\ncounts=3,1\nspeeds=1,2\n[run]\nduration=2s\n"
                            "[program serial]\nstep=serial 100G\n"
                            "[program parallel]\nthreads=4\nstep=parallel 400M uniform chunk=1M\nstep=serial 20M\n";

static char path[64];

static int make_file(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/asym-sim-XXXXXX");
    int fd = mkstemp(path);
    bool done = fd >= 0 && write(fd, small, sizeof small - 1) == (ssize_t)sizeof small - 1;
    return done && close(fd) == 0 ? 0 : -1;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static int run(const char *arguments, char *ret, size_t size)
{
    char command[1024];
    snprintf(command, sizeof command, "'%s/daemon/asymctl' sim %s 2>&1", ASYM_TEST_BIN, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(ret, 1, size - 1, pipe);
    ret[n] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run_file(const char *arguments, char *ret, size_t size)
{
    char line[512];
    snprintf(line, sizeof line, "%s %s", path, arguments);
    return run(line, ret, size);
}

static void the_table_fits_and_has_a_row_for_each_policy(void **state)
{
    (void)state;
    char text[16384];
    assert_int_equal(run_file("--policy=pa,rr --repeat=3", text, sizeof text), 0);
    static const char *const parts[] = {"S = (3, 1; 1, 2)", "15 of 15 trials", "\nnone ", "\npa ", "\nrr ",
                                        "\nserial "};
    for (size_t i = 0; i < ASYM_LENGTH(parts); i++)
        if (!strstr(text, parts[i]))
            fail_msg("no '%s' in:\n%s", parts[i], text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(asym_columns_of(line) <= ASYM_COLUMNS);
}

static void the_output_does_not_depend_on_the_number_of_workers(void **state)
{
    (void)state;
    static char one[262144], other[262144];
    assert_int_equal(run_file("--json --policy=pa --repeat=4 --workers=1", one, sizeof one), 0);
    assert_int_equal(run_file("--json --policy=pa --repeat=4 --workers=5", other, sizeof other), 0);
    assert_string_equal(one, other);
    assert_int_equal(run_file("--json --policy=pa --repeat=4 --seed=9", other, sizeof other), 0);
    assert_string_not_equal(one, other);
}

static void cpu_time_of_plans_is_printed_only_where_it_is_asked_for(void **state)
{
    (void)state;
    static char text[262144];
    assert_int_equal(run_file("--policy=pa --repeat=2", text, sizeof text), 0);
    assert_null(strstr(text, "us of CPU a plan"));
    assert_int_equal(run_file("--policy=pa --repeat=2 --cost", text, sizeof text), 0);
    assert_non_null(strstr(text, "us of CPU a plan"));
    assert_int_equal(run_file("--policy=pa --repeat=2 --json", text, sizeof text), 0);
    assert_null(strstr(text, "plan_cpu_us"));
    assert_int_equal(run_file("--policy=pa --repeat=2 --json --cost", text, sizeof text), 0);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    json_t *pa = json_array_get(json_object_get(root, "policies"), 1);
    static const char *const keys[] = {"plans_per_s", "threads_per_plan", "plan_cpu_us"};
    double means[3];
    for (size_t i = 0; i < ASYM_LENGTH(keys); i++)
        means[i] = json_number_value(json_object_get(json_object_get(pa, keys[i]), "mean"));
    /* A look every 100 ms for 2 s, the last one at the end, of at most five threads. */
    assert_true(means[0] >= 9 && means[0] <= 10);
    assert_true(means[1] > 1 && means[1] <= 5);
    assert_true(means[2] >= 0 && means[2] < 1e5);
}

/* What the game gains under pa over the stock scheduler, by a scenario and a share from which a CPU is fast. */
static double gain_of_game(const char *fast_from)
{
    static char text[65536];
    char shell[512], line[512];
    snprintf(shell, sizeof shell,
             "sed 's/^speeds = .*/&\\nfast_from = %s/' '%s/scenarios/game-beside-build.ini' > '%s.game'", fast_from,
             ASYM_TEST_SOURCE, path);
    assert_int_equal(system(shell), 0);
    snprintf(line, sizeof line, "%s.game --policy=pa --repeat=2 --json", path);
    assert_int_equal(run(line, text, sizeof text), 0);
    snprintf(line, sizeof line, "%s.game", path);
    assert_int_equal(unlink(line), 0);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    double speedup[2] = {0};
    size_t i;
    json_t *policy;
    json_array_foreach(json_object_get(root, "policies"), i, policy)
    {
        json_t *game = json_array_get(json_object_get(policy, "programs"), 0);
        assert_string_equal(json_string_value(json_object_get(game, "name")), "game");
        assert_true(i < 2);
        speedup[i] = json_real_value(json_object_get(json_object_get(game, "speedup"), "mean"));
    }
    assert_true(speedup[0] > 0);
    return speedup[1] / speedup[0] - 1;
}

/* A Core i9-13900K: with its two favoured cores alone for fast ones, a game of eight threads gained nothing. */
static void a_game_of_eight_threads_gains_from_all_p_cores(void **state)
{
    (void)state;
    assert_true(gain_of_game("80%") > 0.10);
    assert_true(gain_of_game("100%") < 0.05);
}

static void one_run_has_no_confidence(void **state)
{
    (void)state;
    static char text[262144];
    assert_int_equal(run_file("--policy=pa --repeat=1 --cost", text, sizeof text), 0);
    assert_non_null(strstr(text, "us of CPU a plan"));
    assert_null(strstr(text, "+--"));
    assert_int_equal(run_file("--policy=pa --repeat=2 --cost", text, sizeof text), 0);
    assert_non_null(strstr(strstr(text, "us of CPU a plan"), " +-"));
}

static void json_says_what_was_measured(void **state)
{
    (void)state;
    static char text[262144];
    assert_int_equal(run_file("--json --policy=pa --repeat=3", text, sizeof text), 0);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "asymctl.sim/1");
    json_t *pa = json_array_get(json_object_get(root, "policies"), 1);
    json_t *serial = json_array_get(json_object_get(pa, "programs"), 0);
    json_t *speedup = json_object_get(serial, "speedup");
    assert_int_equal(json_array_size(json_object_get(speedup, "values")), 3);
    /* Alone it begins on any CPU, 1.25 on the average; beside the other it is given the fast one. */
    assert_true(json_real_value(json_object_get(speedup, "mean")) > 0.9);
    assert_true(json_is_null(json_object_get(json_object_get(serial, "run_time_s"), "mean")));
}

static void mistakes_are_named_and_end_in_2(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *said;
        int status;
    } rows[] = {
        {"", "needs a scenario", 2},
        {"/nonexistent.ini", "No such file", 2},
        {"FILE --policy=paa", "did you mean 'pa'?", 2},
        {"FILE --repeat=0", "from 1 to 1000", 2},
        {"FILE --polcy=pa", "does not take '--polcy=pa'", 2},
        {"FILE FILE", "does not take", 2},
        {"FILE --trace=/nonexistent/t --repeat=1", "No such file", 1},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[8192], arguments[256] = "";
        const char *file = strstr(rows[i].arguments, "FILE");
        snprintf(arguments, sizeof arguments, "%s%s", file ? path : "", file ? file + 4 : rows[i].arguments);
        const int status = run(arguments, text, sizeof text);
        if (status != rows[i].status || !strstr(text, rows[i].said))
            fail_msg("'%s' ended in %d and said: %s", rows[i].arguments, status, text);
    }
}

static void too_many_programs_are_said_with_the_line_of_the_first_of_those(void **state)
{
    (void)state;
    char text[8192], many[80], line[128];
    snprintf(many, sizeof many, "%s.many", path);
    FILE *out = fopen(many, "w");
    assert_non_null(out);
    fputs("[machine]\ncounts=2\nspeeds=1\n", out);
    for (unsigned i = 0; i < ASYM_SIM_MAX_PROGRAMS + 2; i++)
        fprintf(out, "[program p%u]\nstep=serial 1M\n", i);
    fclose(out);
    assert_int_equal(run(many, text, sizeof text), 2);
    unlink(many);
    snprintf(line, sizeof line, "%s:%u: more than 64 programs", many, 3u + 2 * ASYM_SIM_MAX_PROGRAMS + 1);
    assert_non_null(strstr(text, line));
}

static void the_trace_is_json_with_tracks_runs_and_reasons(void **state)
{
    (void)state;
    char text[16384], arguments[256], trace[80];
    unsigned n[128] = {0};
    snprintf(trace, sizeof trace, "%s.json", path);
    snprintf(arguments, sizeof arguments, "--policy=pa --repeat=1 --trace=%s", trace);
    assert_int_equal(run_file(arguments, text, sizeof text), 0);
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
    /* Four CPUs for two seconds, nearly always busy: the serial steps leave two idle. */
    assert_true(busy > 7e6 && busy <= 8e6);
}

/* Instants of threads that were steered in the trace of such a run. */
static size_t steered(const char *arguments, int status)
{
    char text[16384], line[256], trace[80];
    snprintf(trace, sizeof trace, "%s.json", path);
    snprintf(line, sizeof line, "%s --repeat=1 --trace=%s", arguments, trace);
    assert_int_equal(run_file(line, text, sizeof text), status);
    ASYM_AUTO_JSON json_t *root = json_load_file(trace, 0, NULL);
    unlink(trace);
    assert_non_null(root);
    size_t i, n = 0;
    json_t *e;
    json_array_foreach(json_object_get(root, "traceEvents"), i, e)
        n += strcmp(json_string_value(json_object_get(e, "ph")), "i") == 0;
    return n;
}

static void the_trace_is_of_the_first_policy_named(void **state)
{
    (void)state;
    assert_true(steered("--policy=pa,none", 0) > 0);
    assert_int_equal(steered("--policy=none,pa", 0), 0);
    /* The scenario's own, which is auto. */
    assert_true(steered("", 0) > 0);
}

static void a_trace_that_cannot_be_written_does_not_cost_the_report(void **state)
{
    (void)state;
    char text[16384];
    assert_int_equal(run_file("--policy=pa --repeat=1 --trace=/dev/full", text, sizeof text), 1);
    assert_non_null(strstr(text, "/dev/full: "));
    assert_non_null(strstr(text, "\npa "));
    /* Where it is known beforehand, nothing is run. */
    assert_int_equal(run_file("--policy=pa --repeat=1000 --trace=/nonexistent/t", text, sizeof text), 1);
    assert_null(strstr(text, "\npa "));
}

static void every_mean_has_an_interval(void **state)
{
    (void)state;
    char text[16384];
    assert_int_equal(run_file("--policy=pa --repeat=3", text, sizeof text), 0);
    const char *sure = strstr(text, "\n+- ");
    assert_non_null(sure);
    assert_non_null(strstr(sure, "\npa "));
    assert_non_null(strstr(sure, "\nnone "));
    assert_int_equal(run_file("--policy=pa --repeat=1", text, sizeof text), 0);
    assert_null(strstr(text, "\n+- "));
}

/* Of two programs, from what they did with each seed but one (or all of them). */
static double jitter_without(json_t *programs, size_t n, size_t left_out)
{
    double sum = 0;
    for (size_t i = 0; i < 2; i++) {
        json_t *values = json_object_get(json_object_get(json_array_get(programs, i), "performance"), "values");
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

static void jitter_is_as_sure_as_leaving_out_seeds_says(void **state)
{
    (void)state;
    enum { N = 4 };
    static char text[262144];
    assert_int_equal(run_file("--json --policy=pa --repeat=4", text, sizeof text), 0);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    json_t *none = json_array_get(json_object_get(root, "policies"), 0), *programs = json_object_get(none, "programs");
    double x[N], mean = 0, square = 0;
    for (size_t k = 0; k < N; k++) {
        x[k] = N * jitter_without(programs, N, N) - (N - 1) * jitter_without(programs, N, k);
        mean += x[k] / N;
    }
    for (size_t k = 0; k < N; k++)
        square += (x[k] - mean) * (x[k] - mean);
    const double expected = 3.182 * sqrt(square / (N - 1) / N);
    assert_true(expected > 0);
    assert_true(fabs(json_number_value(json_object_get(none, "jitter_confidence")) / expected - 1) < 1e-6);
    /* Two seeds leave one, which has none. */
    assert_int_equal(run_file("--json --policy=pa --repeat=2", text, sizeof text), 0);
    ASYM_AUTO_JSON json_t *two = json_loads(text, 0, NULL);
    assert_true(
        json_is_null(json_object_get(json_array_get(json_object_get(two, "policies"), 0), "jitter_confidence")));
}

static void jobs_that_are_turned_away_are_counted(void **state)
{
    (void)state;
    static char text[262144];
    char busy[80], line[256];
    snprintf(busy, sizeof busy, "%s.busy", path);
    FILE *out = fopen(busy, "w");
    assert_non_null(out);
    /* About 10,000 arrive in two seconds: one runs, 4096 wait. */
    fputs("[machine]\ncounts=2\nspeeds=1\n[run]\nduration=2s\nalone=no\n"
          "[program a]\nrate=5000\npasses=1\nstep=serial 100G\n",
          out);
    fclose(out);
    snprintf(line, sizeof line, "%s --policy=none --repeat=1", busy);
    assert_int_equal(run(line, text, sizeof text), 0);
    assert_non_null(strstr(text, "a, none: too many waited, and "));
    snprintf(line, sizeof line, "%s --policy=none --repeat=1 --json", busy);
    assert_int_equal(run(line, text, sizeof text), 0);
    unlink(busy);
    ASYM_AUTO_JSON json_t *root = json_loads(text, 0, NULL);
    json_t *program = json_array_get(json_object_get(json_array_get(json_object_get(root, "policies"), 0), "programs"),
                                     0);
    const double n = json_number_value(json_object_get(json_object_get(program, "turned_away"), "mean"));
    assert_true(n > 10000 - 4097 - 500 && n < 10000 - 4097 + 500);
    assert_int_equal(run_file("--policy=none --repeat=1", text, sizeof text), 0);
    assert_null(strstr(text, "turned away"));
}

static void memory_limits_workers_and_then_the_scenario(void **state)
{
    (void)state;
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
    assert_non_null(strstr(err.text, "this machine has 256"));
    asym_scenario_free(s);
}

/* Interrupt a run after a moment: what it prints, and 1. */
static void interrupt(const char *scenario, const char *repeat, char *text, size_t size)
{
    int pipe_fd[2], status;
    assert_int_equal(pipe(pipe_fd), 0);
    pid_t pid = fork();
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
    usleep(400 * 1000);
    asym_live_signal(pid, SIGINT);
    size_t used = 0;
    for (ssize_t n; used < size - 1 && (n = read(pipe_fd[0], text + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    close(pipe_fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_non_null(strstr(text, "\npa "));
    assert_non_null(strstr(text, "interrupted: "));
}

static void ctrl_c_prints_what_is_done(void **state)
{
    (void)state;
    char text[8192];
    interrupt(path, "--repeat=1000", text, sizeof text);
}

static void ctrl_c_ends_a_run_whose_steps_take_no_time_to_speak_of(void **state)
{
    (void)state;
    char text[8192], tiny[80];
    snprintf(tiny, sizeof tiny, "%s.tiny", path);
    FILE *out = fopen(tiny, "w");
    assert_non_null(out);
    /* Twenty thousand million events, two hundred million of them before the first look. */
    fputs("[machine]\ncounts=2\nspeeds=1\n[run]\nduration=10000s\n[program a]\ncount=2\nstep=serial 1k\n", out);
    fclose(out);
    interrupt(tiny, "--repeat=1", text, sizeof text);
    unlink(tiny);
    assert_non_null(strstr(text, "0 of 3 trials"));
}

static void figures_of_an_experiment(void **state)
{
    (void)state;
    struct asym_scenario *s;
    static const char text[] =
        "[machine]\ncounts=2\nspeeds=1\n[run]\nuntil=done\nduration=100s\n"
        "[scheduler]\nswitch_cost=0ns\ntick_cost=0ns\n"
        "[program a]\npasses=1\nstep=serial 1G\n[program b]\naffinity=0\npasses=1\nstep=serial 1G\n"
        "[program c]\naffinity=0\npasses=1\nstep=serial 1G\n";
    const volatile sig_atomic_t stop = 0;
    assert_int_equal(asym_scenario_parse(text, sizeof text - 1, "t", &s, NULL), 0);
    struct asym_experiment x = {.scenario = s, .n_policies = 1, .repeat = 2, .seed = 1};
    x.policies[0] = asym_policy_find("none");
    assert_int_equal(asym_experiment_init(&x), 0);
    assert_true(isnan(asym_experiment_value(&x, ASYM_FIGURE_THROUGHPUT, 0, 0, 0)));
    assert_int_equal(asym_sim_trials_run(x.trials, x.n_trials, 2, &stop, NULL, NULL), 0);
    assert_int_equal(asym_experiment_finished(&x), 8);
    /* b and c halve CPU 0; a has the other, or shares with them until it is taken away at a tick. */
    const struct asym_estimate b = asym_experiment_estimate(&x, ASYM_FIGURE_SPEEDUP, 0, 1);
    assert_true(fabs(b.mean - 0.5) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_TOTAL, 0, 0).mean - 2) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_CPU_TIME, 0, 1).mean - 1) < 1e-6);
    /* Two of 2 s, and one of 1 s, or of more where it shared. */
    const double turnaround = asym_experiment_estimate(&x, ASYM_FIGURE_TURNAROUND, 0, 0).mean;
    assert_true(fabs(turnaround - 5.0 / 3) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_FAIRNESS, 0, 0).mean - 0.5) < 0.01);
    assert_true(fabs(asym_experiment_estimate(&x, ASYM_FIGURE_THROUGHPUT, 0, 0).mean - 1.5e9) < 2e7);
    asym_experiment_done(&x);
    asym_scenario_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_fits_and_has_a_row_for_each_policy),
        cmocka_unit_test(the_output_does_not_depend_on_the_number_of_workers),
        cmocka_unit_test(cpu_time_of_plans_is_printed_only_where_it_is_asked_for),
        cmocka_unit_test(a_game_of_eight_threads_gains_from_all_p_cores),
        cmocka_unit_test(one_run_has_no_confidence),
        cmocka_unit_test(json_says_what_was_measured),
        cmocka_unit_test(mistakes_are_named_and_end_in_2),
        cmocka_unit_test(too_many_programs_are_said_with_the_line_of_the_first_of_those),
        cmocka_unit_test(the_trace_is_json_with_tracks_runs_and_reasons),
        cmocka_unit_test(the_trace_is_of_the_first_policy_named),
        cmocka_unit_test(a_trace_that_cannot_be_written_does_not_cost_the_report),
        cmocka_unit_test(every_mean_has_an_interval),
        cmocka_unit_test(jitter_is_as_sure_as_leaving_out_seeds_says),
        cmocka_unit_test(jobs_that_are_turned_away_are_counted),
        cmocka_unit_test(memory_limits_workers_and_then_the_scenario),
        cmocka_unit_test(ctrl_c_prints_what_is_done),
        cmocka_unit_test(ctrl_c_ends_a_run_whose_steps_take_no_time_to_speak_of),
        cmocka_unit_test(figures_of_an_experiment),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
