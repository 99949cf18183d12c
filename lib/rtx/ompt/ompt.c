/* SPDX-License-Identifier: MIT */
/*
 * The OMPT tool. OpenMP runtimes with OMPT (LLVM's) load it by OMP_TOOL_LIBRARIES. It reports to asymd what the threads of an
 * unchanged program do (OpenMP 5.0, chapter 4; Saez 2010, 2.2).
 *
 * A serial phase lasts from the initial thread's parallel_end to its next parallel_begin. A thread is SPINNING from the begin
 * of a wait in a synchronisation region to its end. For a worker the end comes only at the next fork, or its task ends there and
 * then, and it stays SPINNING: asymd takes a wait that is still open in a serial phase for idleness. A task that runs during a
 * wait is work.
 *
 * With ASYM_RTX_MASTER=active in the environment it reports no phases: the master then has a fast CPU whenever it works, also in
 * parallel regions, "simply because this thread will likely act as the serial thread" (Saez 2010, 2.2.2).
 *
 * The tool does not call ompt_get_state: it gives less information, and only on the calling thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <asym/rtx.h>

#include "omp-tools.h"

/* Maximum depth of nested waits that are recorded. Deeper waits are only counted, and their tasks count as work. */
#define WAITS_KEPT 16

/* Values of parallel_data, set by the initial thread that began the region. */
enum { REGION_NOT_COUNTED, REGION_COUNTED };

static _Thread_local struct {
    struct asym_rtx_slot *slot;
    unsigned runtimes; /* runtimes that use this thread; its word covers all of them */
    unsigned n_waits;
    unsigned regions; /* open parallel regions of an initial thread */
    bool is_initial, is_master;
    const ompt_data_t *waiting[WAITS_KEPT]; /* the waiting tasks, the innermost last */
} self __attribute__((tls_model("initial-exec")));

/* A process may have several initial threads and several runtimes: its first initial thread is the master. */
static bool has_master;

static bool reports_phases = true;

static void on_thread_begin(ompt_thread_t type, ompt_data_t *thread_data)
{
    (void)thread_data;
    self.slot = asym_rtx_thread();
    /* Another runtime already uses the thread, perhaps in a region or a task: keep its state. */
    if (self.runtimes++ > 0)
        return;
    self.n_waits = self.regions = 0;
    self.is_initial = type == ompt_thread_initial;
    if (!self.is_initial || __atomic_test_and_set(&has_master, __ATOMIC_RELAXED))
        return;
    self.is_master = true;
    asym_rtx_master(1);
    if (reports_phases)
        asym_rtx_serial_begin();
}

static void on_thread_end(ompt_data_t *thread_data)
{
    (void)thread_data;
    if (self.runtimes > 1) {
        self.runtimes--;
        return;
    }
    self.runtimes = 0;
    if (self.is_master)
        __atomic_clear(&has_master, __ATOMIC_RELAXED);
    self.is_initial = self.is_master = false;
    self.slot = NULL;
    asym_rtx_thread_leave();
}

/* A region of one thread does not count: if(0), num_threads(1), or a thread limit of one. */
static void on_parallel_begin(ompt_data_t *task_data, const ompt_frame_t *frame, ompt_data_t *parallel_data,
                              unsigned int requested, int flags, const void *code)
{
    (void)task_data;
    (void)frame;
    (void)flags;
    (void)code;
    const bool counts = self.is_initial && requested != 1;
    parallel_data->value = counts ? REGION_COUNTED : REGION_NOT_COUNTED;
    if (counts && self.regions++ == 0 && self.is_master && reports_phases)
        asym_rtx_serial_end();
}

static void on_parallel_end(ompt_data_t *parallel_data, ompt_data_t *task_data, int flags, const void *code)
{
    (void)task_data;
    (void)flags;
    (void)code;
    if (!self.is_initial || parallel_data->value != REGION_COUNTED || self.regions == 0)
        return;
    if (--self.regions == 0 && self.is_master && reports_phases)
        asym_rtx_serial_begin();
}

static void on_implicit_task(ompt_scope_endpoint_t endpoint, ompt_data_t *parallel_data, ompt_data_t *task_data,
                             unsigned int n, unsigned int index, int flags)
{
    (void)parallel_data;
    (void)task_data;
    (void)n;
    if (index == 0 || (unsigned)flags & ompt_task_initial)
        return;
    /* A worker comes from the pool and goes back there, so no earlier wait is open. */
    self.n_waits = 0;
    asym_rtx_set(self.slot, endpoint == ompt_scope_begin ? ASYM_RTX_WORKING : ASYM_RTX_SPINNING);
}

static void on_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *parallel_data,
                    ompt_data_t *task_data, const void *code)
{
    (void)kind;
    (void)parallel_data;
    (void)code;
    if (endpoint == ompt_scope_begin) {
        if (self.n_waits < WAITS_KEPT)
            self.waiting[self.n_waits] = task_data;
        self.n_waits++;
        asym_rtx_set(self.slot, ASYM_RTX_SPINNING);
    } else if (endpoint == ompt_scope_end && self.n_waits > 0) {
        self.n_waits--;
        asym_rtx_set(self.slot, ASYM_RTX_WORKING);
    }
}

static void on_task_schedule(ompt_data_t *prior, ompt_task_status_t status, ompt_data_t *next)
{
    (void)prior;
    (void)status;
    if (self.n_waits == 0)
        return;
    const bool waits = self.n_waits <= WAITS_KEPT && next && self.waiting[self.n_waits - 1] == next;
    asym_rtx_set(self.slot, waits ? ASYM_RTX_SPINNING : ASYM_RTX_WORKING);
}

static const struct {
    ompt_callbacks_t event;
    ompt_callback_t callback;
} callbacks[] = {
    {ompt_callback_thread_begin, (ompt_callback_t)on_thread_begin},
    {ompt_callback_thread_end, (ompt_callback_t)on_thread_end},
    {ompt_callback_parallel_begin, (ompt_callback_t)on_parallel_begin},
    {ompt_callback_parallel_end, (ompt_callback_t)on_parallel_end},
    {ompt_callback_implicit_task, (ompt_callback_t)on_implicit_task},
    {ompt_callback_sync_region_wait, (ompt_callback_t)on_wait},
    {ompt_callback_task_schedule, (ompt_callback_t)on_task_schedule},
};

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool_data)
{
    (void)device;
    (void)tool_data;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    if (!set || asym_rtx_join(NULL) < 0)
        return 0;
    const char *master = secure_getenv("ASYM_RTX_MASTER");
    reports_phases = !master || strcmp(master, "active") != 0;
    for (size_t i = 0; i < sizeof callbacks / sizeof callbacks[0]; i++)
        set(callbacks[i].event, callbacks[i].callback);
    return 1;
}

/* The rest of the program is serial: the thread's last word stays valid until the program ends. */
static void finalize(ompt_data_t *tool_data)
{
    (void)tool_data;
}

/* omp-tools.h does not declare this function. */
__attribute__((visibility("default"))) ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version,
                                                                                 const char *runtime_version);
ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version, const char *runtime_version)
{
    static ompt_start_tool_result_t result = {.initialize = initialize, .finalize = finalize};
    (void)omp_version;
    (void)runtime_version;
    return &result;
}
