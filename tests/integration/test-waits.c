/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs of which it is known who waits for whom, on this kernel; and the answers of asymctl why. */
#include <dirent.h>
#include <signal.h>

#include <jansson.h>

#include "linux/observe/waits-kernel.h"
#include "report/json.h"
#include "support/live.h"
#include "support/rounds.h"
#include "support/service.h"
#include "support/test.h"

enum { THREADS = 8, APP = 3, SECONDS = 1 };

/* The threads of a load, in the order in which it has started them; the first one only waits for the others. */
struct measured {
    struct asym_waits_thread thread[THREADS];
    size_t n;
};

static struct asym_phases *phases;
static struct asym_waits *waits;

static int open_it(void **state __attribute__((unused)))
{
    static const struct asym_phases_limits none = {.gap = 1000, .settle = 200};
    struct asym_error err;
    if (asym_phases_open(&none, &phases, &err) < 0 || asym_waits_open(phases, &waits, &err) < 0)
        fail_msg("this test needs BPF programs: %s", err.text);
    return 0;
}

static int close_it(void **state __attribute__((unused)))
{
    asym_waits_close(waits);
    asym_phases_close(phases);
    return 0;
}

#define TEST_F(name) TEST_WITH(name, open_it, close_it)

static void add(void *ctx, const struct asym_waits_thread *t)
{
    struct measured *m = ctx;
    size_t i = m->n++;
    assert_true(i < THREADS);
    for (; i > 0 && m->thread[i - 1].tid > t->tid; i--)
        m->thread[i] = m->thread[i - 1];
    m->thread[i] = *t;
}

static pid_t start_load(const char *kind)
{
    return asym_live_start((const char *const[]){"tests/load-waits", kind, "60", NULL}, -1);
}

static struct measured measure(const char *kind, int n)
{
    struct measured m = {.n = 0};
    struct asym_error err;
    const pid_t pid = start_load(kind);
    asym_live_await_load(pid, n);
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
    asym_live_sleep(0.3);
    assert_int_equal(asym_waits_start(waits, &err), 0);
    asym_live_sleep(SECONDS);
    asym_waits_each(waits, APP, add, &m);
    asym_waits_stop(waits);
    asym_live_end(pid, SIGKILL);
    assert_int_equal(m.n, n);
    for (size_t i = 0; i < m.n; i++)
        print_message("%s %zu: slept %.2f s, by the kernel %.2f s\n", kind, i, (double)m.thread[i].slept_ns / 1e9,
                      (double)m.thread[i].kernel_ns / 1e9);
    return m;
}

/* The share of its sleeps for which a thread has waited for another one. */
static double share(const struct measured *m, size_t waiter, size_t waker)
{
    const struct asym_waits_thread *t = &m->thread[waiter];
    double ns = 0;
    for (size_t i = 0; i < t->n; i++)
        ns += t->waits[i].tid == m->thread[waker].tid ? (double)t->waits[i].ns : 0;
    print_message("%zu waits for %zu: %.2f of its sleep\n", waiter, waker, ns / ((double)t->slept_ns + 1));
    return ns / ((double)t->slept_ns + 1);
}

/*
 * The stages take 1, 3 and 1.2 ms: the slow one keeps the other two waiting, and waits for neither. On a busy host all of them
 * sleep less, because they wait for a CPU.
 */
TEST_F(the_stages_of_a_pipeline_wait_for_the_slow_one)
{
    const struct measured m = measure("pipeline", 4);
    assert_true(share(&m, 1, 2) > 0.7);
    assert_true(share(&m, 3, 2) > 0.7);
    assert_true(share(&m, 1, 3) < 0.2 && share(&m, 3, 1) < 0.2);
    assert_true(m.thread[2].slept_ns < m.thread[1].slept_ns / 4);
    assert_true(m.thread[2].slept_ns < m.thread[3].slept_ns / 4);
}

/* The lock is free for 0.3 of 3.3 ms. A nap ends by a timer. */
TEST_F(a_thread_that_needs_a_lock_waits_for_the_one_that_holds_it)
{
    const struct measured m = measure("held", 3);
    const struct asym_waits_thread *waiter = &m.thread[2];
    const double waited = (double)(waiter->slept_ns - waiter->kernel_ns);
    assert_true(waited > (double)waiter->slept_ns / 10);
    assert_true(share(&m, 2, 1) * (double)waiter->slept_ns > 0.7 * waited);
}

/* The interrupts of the timers come while the busy thread of the same program runs: that one has woken none. */
TEST_F(threads_that_sleep_until_a_time_wait_for_no_thread)
{
    const struct measured m = measure("serial", 5);
    for (size_t i = 2; i < 5; i++) {
        assert_true(m.thread[i].kernel_ns + m.thread[i].asleep_ns > m.thread[i].slept_ns * 99 / 100);
        assert_true(m.thread[i].kernel_ns > SECONDS * UINT64_C(500000000));
        assert_true(share(&m, i, 1) < 0.01);
    }
}

/* A short sleep has ended before a later user asks, and a detached program measures nothing. */
TEST_F(a_new_measurement_has_nothing_of_an_earlier_one)
{
    struct measured m = {.n = 0};
    struct asym_error err;
    const pid_t pid = start_load("pingpong");
    asym_live_await_load(pid, 3);
    assert_int_equal(asym_phases_follow(phases, (int32_t)pid, APP), 0);
    assert_int_equal(asym_waits_start(waits, &err), 0);
    asym_live_sleep(0.5);
    asym_waits_each(waits, APP, add, &m);
    assert_true(m.thread[1].n > 0 && m.thread[1].slept_ns > 0);
    asym_waits_stop(waits);
    asym_live_sleep(0.5);
    m.n = 0;
    asym_waits_each(waits, APP, add, &m);
    const uint64_t waited = m.thread[1].waits[0].ns;
    asym_live_sleep(0.3);
    m.n = 0;
    asym_waits_each(waits, APP, add, &m);
    assert_int_equal(m.thread[1].waits[0].ns, waited);
    assert_int_equal(asym_waits_start(waits, &err), 0);
    m.n = 0;
    asym_waits_each(waits, APP, add, &m);
    assert_true(m.thread[1].slept_ns < 500000000);
    asym_live_end(pid, SIGKILL);
}

static pid_t start_service(pid_t load, const char *observer)
{
    asym_service_export_bus();
    return asym_service_start(load, (const char *const[]){observer, NULL});
}

static int ask(const char *option, pid_t id, char *text, size_t size)
{
    char number[16];
    snprintf(number, sizeof number, "%d", (int)id);
    return asym_live_run((const char *const[]){"daemon/asymctl", "why", number, option, NULL}, text, size);
}

/* Ask until the answer has this text: asymd must have seen the program. */
static void await_answer(pid_t id, const char *wanted)
{
    static char text[65536];
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; asym_live_now() < end; asym_live_sleep(0.2))
        if (ask(NULL, id, text, sizeof text) == 0 && strstr(text, wanted))
            return;
    fail_msg("no \"%s\" in %s", wanted, text);
}

/* Returns whether the process has a BPF program at this event of the kernel. */
static bool is_attached(pid_t pid, const char *event)
{
    char path[320], text[1024];
    bool is = false;
    snprintf(path, sizeof path, "/proc/%d/fdinfo", (int)pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *d; (d = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", (int)pid, d->d_name);
        is |= file_read(path, text, sizeof text) > 0 && strstr(text, event);
    }
    closedir(dir);
    return is;
}

static int detached(pid_t pid, int unused __attribute__((unused)))
{
    return !is_attached(pid, "sched_waking");
}

static void check_json(pid_t load)
{
    static char text[262144];
    assert_int_equal(ask("--json", load, text, sizeof text), 0);
    json_auto_t *json = json_loads(text, 0, NULL);
    const json_t *w = json_object_get(json_array_get(json_object_get(json, "explanations"), 0), "waits"), *thread, *f;
    size_t i, k, n = 0;
    assert_true(asym_json_get_flag(w, "measuring") && asym_json_get_int(w, "measured_us") >= 2000000);
    json_array_foreach(json_object_get(w, "threads"), i, thread)
    {
        assert_int_equal(asym_json_get_int(thread, "pid"), load);
        assert_string_equal(asym_json_get_text(thread, "comm"), "load-waits");
        json_array_foreach(json_object_get(thread, "waits_for"), k, f) n += asym_json_get_int(f, "time_us") > 200000;
    }
    assert_true(n >= 2);
}

TEST_WITH(why_says_who_waits_for_whom_and_measures_only_then, asym_service_set_up, asym_service_tear_down)
{
    const pid_t load = start_load("pipeline");
    asym_live_settle(load, 4);
    const pid_t asymd = start_service(load, "--set=asymd.observer=bpf");
    await_answer(load, "asymd measures for 2 s who waits for whom");
    assert_true(is_attached(asymd, "sched_switch"));
    assert_true(is_attached(asymd, "sched_waking"));
    await_answer(load, " s for load-waits (");
    check_json(load);
    /* asymd measures for 5 s after the last question. */
    if (asym_rounds_are_all()) {
        assert_true(asym_live_await(detached, asymd, 0, 1, ASYM_LIVE_PATIENCE));
        assert_true(is_attached(asymd, "sched_switch"));
    }
    asym_live_end(load, SIGKILL);
}

TEST_WITH(without_bpf_why_says_that_it_is_not_known, asym_service_set_up, asym_service_tear_down)
{
    const pid_t load = start_load("pipeline");
    asym_live_settle(load, 4);
    start_service(load, "--set=asymd.observer=procfs");
    await_answer(load, "Who waits for whom is not known: asymd observes without BPF programs");
    asym_live_end(load, SIGKILL);
}

TEST_MAIN
