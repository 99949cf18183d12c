/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace is parsed back: its tracks, its slices and its instants. */

#include <jansson.h>

#include "experiment/traces.h"
#include "support/record-fixture.h"
#include "support/test.h"

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
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
    struct record_fixture f;
    char *bytes = NULL;
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
    free(bytes);
    record_fixture_done(&f);
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
    struct asym_seen_decision d = {.at = s->now,
                                   .tid = 7,
                                   .from = -1,
                                   .to = 2,
                                   .nice = -3,
                                   .comm = "a\"\x1b\xff",
                                   .class = "HP",
                                   .what = "steer",
                                   .reason = "a spare fast CPU"};
    add(ctx, number, s, plan, actions, n);
    assert_int_equal(asym_seen_trace_decide(&t->trace, &d), 0);
    d.to = -1;
    d.at = 0;
    d.what = "release";
    assert_int_equal(asym_seen_trace_decide(&t->trace, &d), 0);
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

TEST_MAIN
