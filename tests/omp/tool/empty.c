/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tool that asks for the same events as libasym-ompt.so and does nothing: what the runtime itself takes for having a tool,
 * which no tool can save. For the benchmark.
 */
#include <stddef.h>

#include "omp-tools.h"

/* Whatever a callback is given, it is in registers or on the caller's stack. */
static void nothing(void)
{
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool_data)
{
    static const ompt_callbacks_t events[] = {
        ompt_callback_thread_begin,  ompt_callback_thread_end,    ompt_callback_parallel_begin,
        ompt_callback_parallel_end,  ompt_callback_implicit_task, ompt_callback_sync_region_wait,
        ompt_callback_task_schedule,
    };
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    (void)device;
    (void)tool_data;
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        set(events[i], (ompt_callback_t)nothing);
    return 1;
}

static void finalize(ompt_data_t *tool_data)
{
    (void)tool_data;
}

__attribute__((visibility("default"))) ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version,
                                                                                 const char *runtime_version);
ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version, const char *runtime_version)
{
    static ompt_start_tool_result_t result = {.initialize = initialize, .finalize = finalize};
    (void)omp_version;
    (void)runtime_version;
    return &result;
}
