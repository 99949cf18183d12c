/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The OMPT tool in a process with two OpenMP runtimes, as when a library brings its own. The test plays both: it starts the
 * tool twice and calls it as they would. The tool's state belongs to a process, so each test runs in its own process.
 */
#include <dlfcn.h>
#include <pthread.h>

#include <asym/rtx.h>

#include "omp-tools.h"
#include "support/listener.h"
#include "support/must.h"
#include "support/test.h"

struct runtime {
    ompt_callback_thread_begin_t thread_begin;
    ompt_callback_thread_end_t thread_end;
    ompt_callback_parallel_begin_t parallel_begin;
    ompt_callback_parallel_end_t parallel_end;
    ompt_callback_implicit_task_t implicit_task;
    ompt_callback_sync_region_t wait;
    ompt_data_t thread, region, task;
};

static struct runtime a, b, *starting;

static struct asym_listener listener;
static struct asym_handed handed;

static ompt_set_result_t set_callback(ompt_callbacks_t event, ompt_callback_t callback)
{
    if (event == ompt_callback_thread_begin)
        starting->thread_begin = (ompt_callback_thread_begin_t)callback;
    else if (event == ompt_callback_thread_end)
        starting->thread_end = (ompt_callback_thread_end_t)callback;
    else if (event == ompt_callback_parallel_begin)
        starting->parallel_begin = (ompt_callback_parallel_begin_t)callback;
    else if (event == ompt_callback_parallel_end)
        starting->parallel_end = (ompt_callback_parallel_end_t)callback;
    else if (event == ompt_callback_implicit_task)
        starting->implicit_task = (ompt_callback_implicit_task_t)callback;
    else if (event == ompt_callback_sync_region_wait)
        starting->wait = (ompt_callback_sync_region_t)callback;
    return ompt_set_always;
}

static ompt_interface_fn_t look_up(const char *name)
{
    return strcmp(name, "ompt_set_callback") == 0 ? (ompt_interface_fn_t)set_callback : NULL;
}

static void start_tool(struct runtime *r)
{
    void *tool = dlopen(ASYM_TEST_OMPT, RTLD_NOW | RTLD_LOCAL);
    ompt_start_tool_result_t *(*start)(unsigned int, const char *);
    MUST(tool);
    *(void **)&start = dlsym(tool, "ompt_start_tool");
    MUST(start);
    ompt_start_tool_result_t *result = start(201811, "test");
    starting = r;
    MUST(result && result->initialize(look_up, 0, &result->tool_data) == 1);
    MUST(r->thread_begin && r->thread_end && r->parallel_begin && r->parallel_end && r->implicit_task && r->wait);
}

static void begin_region(struct runtime *r)
{
    r->parallel_begin(&r->task, NULL, &r->region, 4, ompt_parallel_invoker_program, NULL);
}

static void end_region(struct runtime *r)
{
    r->parallel_end(&r->region, &r->task, ompt_parallel_invoker_program, NULL);
}

static void wait_in(struct runtime *r, ompt_scope_endpoint_t endpoint)
{
    r->wait(ompt_sync_region_barrier_implicit, endpoint, &r->region, &r->task, NULL);
}

/* Returns the calling thread's word as asymd sees it; 0: it has no slot. */
static uint64_t word(void)
{
    const struct asym_rtx_slot *slot = asym_handed_slot(&handed, gettid());
    return slot ? __atomic_load_n(&slot->word, __ATOMIC_RELAXED) : 0;
}

static bool is_serial(void)
{
    return word() & ASYM_RTX_SERIAL;
}

static uint64_t state_of(void)
{
    return word() & ASYM_RTX_STATE;
}

static void (*program)(void);

static void start(void)
{
    start_tool(&a);
    start_tool(&b);
    MUST(asym_listener_take(&listener, 10, &handed));
    program();
}

static void in_process(void (*calls)(void))
{
    program = calls;
    asym_listener_run(&listener, start);
}

static void second_begins_in_region(void)
{
    a.thread_begin(ompt_thread_initial, &a.thread);
    MUST(is_serial());
    begin_region(&a);
    MUST(!is_serial());
    b.thread_begin(ompt_thread_initial, &b.thread);
    MUST(!is_serial() && (word() & ASYM_RTX_MASTER));
    begin_region(&b);
    end_region(&b);
    /* The region of the first runtime is still open. */
    MUST(!is_serial());
    end_region(&a);
    MUST(is_serial());
    begin_region(&b);
    MUST(!is_serial());
    end_region(&b);
    MUST(is_serial());
}

TEST(the_serial_phase_after_both_regions_is_reported)
{
    in_process(second_begins_in_region);
}

static void one_ends(void)
{
    a.thread_begin(ompt_thread_initial, &a.thread);
    b.thread_begin(ompt_thread_initial, &b.thread);
    b.thread_end(&b.thread);
    MUST(is_serial() && (word() & ASYM_RTX_MASTER));
    begin_region(&a);
    wait_in(&a, ompt_scope_begin);
    MUST(state_of() == ASYM_RTX_SPINNING);
    wait_in(&a, ompt_scope_end);
    MUST(state_of() == ASYM_RTX_WORKING);
    end_region(&a);
    MUST(is_serial());
    a.thread_end(&a.thread);
    MUST(word() == 0 && asym_handed_used(&handed) == 0);
    /* The state is the initial one again. */
    a.thread_begin(ompt_thread_initial, &a.thread);
    MUST(is_serial() && (word() & ASYM_RTX_MASTER));
}

TEST(the_slot_stays_until_the_last_one_ends)
{
    in_process(one_ends);
}

static void task_in_wait(void)
{
    a.thread_begin(ompt_thread_initial, &a.thread);
    begin_region(&a);
    wait_in(&a, ompt_scope_begin);
    /* A task that runs during the wait calls a library with its own runtime. */
    b.thread_begin(ompt_thread_initial, &b.thread);
    begin_region(&b);
    wait_in(&b, ompt_scope_begin);
    wait_in(&b, ompt_scope_end);
    end_region(&b);
    MUST(!is_serial());
    wait_in(&a, ompt_scope_end);
    MUST(state_of() == ASYM_RTX_WORKING);
    wait_in(&a, ompt_scope_begin);
    b.thread_end(&b.thread);
    MUST(state_of() == ASYM_RTX_SPINNING);
    wait_in(&a, ompt_scope_end);
    end_region(&a);
    MUST(is_serial());
}

TEST(waits_of_the_one_are_not_forgotten_for_the_other)
{
    in_process(task_in_wait);
}

static void *work(void *arg)
{
    a.thread_begin(ompt_thread_worker, &a.thread);
    a.implicit_task(ompt_scope_begin, &a.region, &a.task, 4, 1, ompt_task_implicit);
    b.thread_begin(ompt_thread_initial, &b.thread);
    MUST(state_of() == ASYM_RTX_WORKING && !(word() & ASYM_RTX_MARKS));
    begin_region(&b);
    end_region(&b);
    MUST(!(word() & ASYM_RTX_MARKS));
    b.thread_end(&b.thread);
    MUST(state_of() == ASYM_RTX_WORKING);
    a.thread_end(&a.thread);
    MUST(word() == 0);
    return NULL;
}

static void worker_is_initial_elsewhere(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, NULL) == 0);
    a.thread_begin(ompt_thread_initial, &a.thread);
    MUST(is_serial() && (word() & ASYM_RTX_MASTER));
}

TEST(a_worker_of_the_one_is_no_master_by_the_other)
{
    in_process(worker_is_initial_elsewhere);
}

static void without_phases(void)
{
    a.thread_begin(ompt_thread_initial, &a.thread);
    MUST((word() & ASYM_RTX_MASTER) && !(word() & ASYM_RTX_PHASES) && !is_serial());
    begin_region(&a);
    MUST((word() & ASYM_RTX_MASTER) && state_of() == ASYM_RTX_WORKING);
    wait_in(&a, ompt_scope_begin);
    MUST(state_of() == ASYM_RTX_SPINNING);
    wait_in(&a, ompt_scope_end);
    end_region(&a);
    MUST((word() & ASYM_RTX_MASTER) && !(word() & ASYM_RTX_PHASES) && state_of() == ASYM_RTX_WORKING);
}

/* asymd takes a master without phases for one whenever it works (Saez 2010, 2.2.2). */
TEST(a_master_may_be_one_whenever_it_is_active)
{
    setenv("ASYM_RTX_MASTER", "active", 1);
    in_process(without_phases);
    unsetenv("ASYM_RTX_MASTER");
}

TEST_MAIN
