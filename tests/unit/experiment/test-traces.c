/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace is parsed back: its tracks, its slices and its instants. And the statements of docs/simulator.md about the traces of
 * ./dev traces hold, with their times.
 */
#include <sys/wait.h>

#include <jansson.h>

#include "experiment/traces.h"
#include "report/json.h"
#include "support/record-fixture.h"
#include "support/test.h"
/* The text of an event, or of its arguments; "" where neither has that key. */
static const char *text_of(const json_t *event, const char *key)
{
    json_t *found = json_object_get(event, key);
    found = found ? found : json_object_get(json_object_get(event, "args"), key);
    return found ? json_string_value(found) : "";
}

static double number_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

/* Checks the kinds of the events of a trace. */
struct seen {
    size_t tracks, slices, instants, spins;
    double end[ASYM_MAX_CPUS], ran; /* where the last slice of each CPU ended; microseconds that threads ran */
};

static void take_event(struct seen *seen, json_t *event)
{
    const size_t cpu = (size_t)json_integer_value(json_object_get(event, "tid"));
    const char *kind = text_of(event, "ph");
    json_t *args = json_object_get(event, "args");
    assert_true(cpu < ASYM_MAX_CPUS);
    seen->tracks += strcmp(text_of(event, "name"), "thread_name") == 0;
    seen->instants += strcmp(kind, "i") == 0;
    if (strcmp(kind, "X") != 0)
        return;
    /* Slices of a track do not overlap. */
    const double from = number_of(event, "ts"), length = number_of(event, "dur");
    assert_true(from >= seen->end[cpu] - 0.01);
    seen->end[cpu] = from + length;
    seen->ran += number_of(args, "ran_us");
    assert_string_equal(text_of(event, "cat"), text_of(args, "class"));
    seen->slices++;
}

struct tracer {
    struct asym_seen_trace trace;
    double ran; /* microseconds, by the snapshots */
};

static void add(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                const struct asym_action *actions, size_t n)
{
    struct tracer *t = ctx;
    assert_int_equal(asym_seen_trace_add(&t->trace, s, plan), 0);
    for (size_t i = 0; i < s->n_tasks; i++)
        t->ran += s->tasks[i].running * (double)s->interval;
}

/* Traces a record of 30 threads on four CPUs in 20 samples. Returns the trace, parsed back. */
static json_t *trace(struct tracer *t, const struct record_fixture_plan *plan)
{
    ASYM_CLEANUP(record_fixture_done) struct record_fixture f;
    ASYM_AUTO_FREE char *bytes = NULL;
    size_t len;
    FILE *out = open_memstream(&bytes, &len);
    assert_non_null(out);
    asym_seen_trace_begin(&t->trace, out);
    t->trace.has_service = !plan->noisy;
    record_fixture_make(&f, plan);
    assert_int_equal(asym_seen_trace_end(&t->trace), 0);
    fclose(out);
    json_t *root = json_loads(bytes, 0, NULL);
    assert_non_null(root);
    return root;
}

#define PLAN(...)                                                                                                      \
    &(const struct record_fixture_plan)                                                                                \
    {                                                                                                                  \
        .seed = 4, .threads = 30, .snapshots = 20, .interval = 100 * ASYM_MSEC, .policy = "pa", .plain = true,         \
        __VA_ARGS__                                                                                                    \
    }

TEST(a_trace_is_parsed_back)
{
    struct tracer t = {.ran = 0};
    struct seen seen = {.tracks = 0};
    size_t i;
    json_t *event, *root = trace(&t, PLAN(.noisy = true, .planned = add, .ctx = &t));
    json_array_foreach(json_object_get(root, "traceEvents"), i, event) take_event(&seen, event);
    assert_int_equal(seen.tracks, 4);
    assert_int_equal(seen.slices, t.trace.slices);
    assert_int_equal(seen.instants, t.trace.decisions);
    assert_true(seen.slices > 300 && seen.instants > 0);
    /* 30 threads on four CPUs do not fit; the slices shrink, and the arguments keep what was seen. */
    assert_true(seen.ran > t.ran - (double)seen.slices && seen.ran < t.ran + (double)seen.slices);
    for (unsigned c = 0; c < 4; c++)
        assert_true(seen.end[c] > 0 && seen.end[c] <= 20 * 100e3 + 1);
    json_decref(root);
}

/* Two decisions a sample: one is on a CPU, the other is of a thread that ran on none, before the trace. */
static void add_decisions(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                          const struct asym_action *actions, size_t n)
{
    struct tracer *t = ctx;
    json_auto_t *d = json_pack("{s:i, s:i, s:i, s:i, s:o, s:s, s:s, s:s}", "tid", 7, "from", -1, "to", 2, "nice", -3,
                               "comm", asym_json_text("a\"\x1b\xff"), "class", "HP", "what", "steer", "reason",
                               "a spare fast CPU");
    add(ctx, number, s, plan, actions, n);
    assert_int_equal(asym_seen_trace_decide(&t->trace, s->now, d), 0);
    json_object_set_new(d, "to", json_integer(-1));
    json_object_set_new(d, "what", json_string("release"));
    assert_int_equal(asym_seen_trace_decide(&t->trace, 0, d), 0);
}

static void check_decision(size_t *n, double length, const json_t *event)
{
    if (strcmp(text_of(event, "ph"), "i") != 0)
        return;
    const bool is_first = (*n)++ % 2 == 0;
    assert_string_equal(text_of(event, "cat"), "asymd");
    assert_string_equal(text_of(event, "s"), is_first ? "t" : "p");
    assert_true(number_of(event, "tid") == (is_first ? 2 : 0));
    assert_string_equal(text_of(json_object_get(event, "args"), "why"), "a spare fast CPU");
    assert_non_null(strstr(text_of(event, "name"), is_first ? "steer a\"" : "release a\""));
    assert_true(is_first ? number_of(event, "ts") <= length : number_of(event, "ts") < 1);
}

TEST(decisions_of_a_service_stand_in_place_of_the_plans)
{
    struct tracer t = {.ran = 0};
    size_t i, n = 0;
    json_t *event, *root = trace(&t, PLAN(.planned = add_decisions, .ctx = &t));
    json_array_foreach(json_object_get(root, "traceEvents"), i, event) check_decision(&n, 20 * 100e3 + 1, event);
    assert_int_equal(n, 40);
    assert_int_equal(t.trace.decisions, 40);
    json_decref(root);
}

/* Makes the trace of a scenario as shipped, under the policy that it names. */
static json_t *trace_of(const char *scenario)
{
    char path[] = "/tmp/asym-trace-XXXXXX", command[1024];
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(command, sizeof command, "'%s/daemon/asymctl' sim '%s/scenarios/%s.ini' --repeat=1 --trace=%s >/dev/null",
             ASYM_TEST_BIN, ASYM_TEST_SOURCE, scenario, path);
    const int status = system(command);
    json_t *trace = json_load_file(path, 0, NULL);
    unlink(path);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_non_null(trace);
    return trace;
}

/* Returns the milliseconds that a thread runs between two times on CPUs first to last as class (NULL: any). */
static double ran(json_t *trace, const char *thread, double from, double to, int first, int last, const char *class)
{
    double sum = 0;
    size_t i;
    json_t *e;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, e)
    {
        const double begin = number_of(e, "ts") / 1e3, end = begin + number_of(e, "dur") / 1e3;
        const int cpu = (int)number_of(e, "tid");
        if (strcmp(text_of(e, "ph"), "X") == 0 && strcmp(text_of(e, "name"), thread) == 0 && cpu >= first &&
            cpu <= last && (!class || strcmp(text_of(e, "cat"), class) == 0) && end > from && begin < to)
            sum += ASYM_MIN(end, to) - ASYM_MAX(begin, from);
    }
    return sum;
}

static void runs_all(json_t *trace, const char *thread, double from, double to, int first, int last, const char *class)
{
    const double ms = ran(trace, thread, from, to, first, last, class);
    if (ms < 0.98 * (to - from))
        fail_msg("%s runs on CPUs %d-%d for %.1f of %.1f ms from %.1f ms on", thread, first, last, ms, to - from, from);
}

/* Checks that asymd steers a thread at that time, in ms, for a reason with that beginning. */
static void is_steered(json_t *trace, double at, const char *thread, const char *name, const char *why)
{
    ASYM_AUTO_FREE char *seen = strdup("");
    size_t i;
    json_t *e;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, e)
    {
        const double off = number_of(e, "ts") / 1e3 - at;
        if (strcmp(text_of(e, "ph"), "i") != 0 || off < -0.001 || off > 0.001 ||
            strcmp(text_of(e, "thread"), thread) != 0)
            continue;
        if (strcmp(text_of(e, "name"), name) == 0 && strncmp(text_of(e, "why"), why, strlen(why)) == 0)
            return;
        free(seen);
        assert_true(asprintf(&seen, "%s: %s", text_of(e, "name"), text_of(e, "why")) > 0);
    }
    fail_msg("%s at %g ms: no '%s: %s'; but '%s'", thread, at, name, why, seen);
}

TEST(serial_phases_have_a_fast_core)
{
    ASYM_AUTO_JSON json_t *trace = trace_of("serial-phases");
    /* At 0.5 s asymd begins to steer: the single-threaded program has a fast core, the eight threads have the others. */
    is_steered(trace, 500, "single.0/0", "steered to 6", "few threads: a fast CPU each");
    is_steered(trace, 500, "phases.0/2", "steered to 7", "parallel: a spare fast CPU");
    runs_all(trace, "single.0/0", 500, 2600, 6, 6, "MP");
    /* From 0.69 s its master is alone; the sample at 0.8 s sees that. */
    runs_all(trace, "phases.0/0", 691, 800, 0, 5, NULL);
    is_steered(trace, 800, "phases.0/0", "steered to 6-7", "serial phase: on a fast CPU for up to 1 s");
    runs_all(trace, "phases.0/0", 800, 1740, 7, 7, "SP");
    assert_true(ran(trace, "phases.0/1", 700, 1700, 0, 7, NULL) < 1);
    /* The sample at 1.8 s sees eight threads again: the master stays on its CPU. */
    is_steered(trace, 1800, "phases.0/0", "steered to 7", "parallel: a spare fast CPU");
    is_steered(trace, 1800, "phases.0/4", "steered to 0-5", "highly parallel:");
    /* Little of the interval before 2.6 s was parallel: its mean counts too few threads for one interval. The eight threads have
     * slept for nearly all of the last second, so a busy one keeps off their CPUs. */
    is_steered(trace, 2600, "single.0/0", "steered to 2", "few threads: waits for its turn");
    is_steered(trace, 2700, "single.0/0", "steered to 6-7", "few threads: a fast CPU each");
}

TEST(copies_go_to_the_fastest_cores_and_follow_when_one_is_free)
{
    ASYM_AUTO_JSON json_t *trace = trace_of("eight-speeds");
    runs_all(trace, "task.0/0", 0, 500, 0, 0, NULL);
    runs_all(trace, "task.3/0", 0, 500, 1, 1, NULL);
    is_steered(trace, 500, "task.0/0", "steered to 4", "served soonest here: 1 of 1 threads on a CPU of speed 5.00");
    is_steered(trace, 500, "task.3/0", "steered to 6", "served soonest here: 1 of 1 threads on a CPU of speed 7.00");
    runs_all(trace, "task.1/0", 500, 4500, 7, 7, NULL);
    /* The fastest core is free from 4.5 s on; asymd moves the slowest of the remaining three there. */
    assert_true(ran(trace, "task.1/0", 4502, 1e6, 0, 7, NULL) < 1);
    is_steered(trace, 4600, "task.0/0", "steered to 7", "moved to less load: 0.12 here, 0.20 where it was");
    runs_all(trace, "task.0/0", 4600, 6476, 7, 7, NULL);
}

TEST(phases_are_followed_by_what_they_stall)
{
    ASYM_AUTO_JSON json_t *trace = trace_of("memory");
    /* After 50 ms of counting, asymd places threads by stall time per instruction: those that compute get faster cores. */
    is_steered(trace, 500, "stall.0/0", "steered to 3", "measured for");
    is_steered(trace, 550, "stall.0/0", "steered to 1", "stalls 2.050 ns");
    is_steered(trace, 550, "compute.0/0", "steered to 3", "stalls 0.040 ns");
    is_steered(trace, 550, "compute.1/0", "steered to 2", "stalls 0.040 ns");
    runs_all(trace, "stall.0/0", 551, 1169, 1, 1, NULL);
    /* The program with phases computes from 1.4 s on, which asymd sees at 1.42 s; at 1.75 s it sees that the program stalls. */
    is_steered(trace, 1420, "phases.0/0", "steered to 3", "measured for");
    runs_all(trace, "phases.0/0", 1441, 1749, 3, 3, NULL);
    is_steered(trace, 1750, "phases.0/0", "steered to 2", "stalls 2.200 ns");
    is_steered(trace, 1750, "compute.0/0", "steered to 3", "stalls 0.040 ns");
}

TEST_MAIN
