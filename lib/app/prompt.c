/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/prompt.h"

#include <errno.h>
#include <time.h>

#include "app/own-cpu-time.h"
#include "base/macro.h"

int asym_prompt_add(struct asym_prompt *p, sd_event_source *source)
{
    for (size_t i = 0; i < ASYM_LENGTH(p->sources); i++) {
        if (p->sources[i])
            continue;
        /* If several events are pending, the answer comes first: dispatch() knows by that which one is next. */
        const int r = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
            p->sources[i] = source;
        return r < 0 ? r : 0;
    }
    return -ENOSPC;
}

int asym_prompt_want(struct asym_prompt *p, unsigned who, bool wants)
{
    p->wanted = wants ? p->wanted | who : p->wanted & ~who;
    const bool want = p->wanted != 0;
    if (want == p->is_realtime || (want && p->has_failed))
        return 0;
    const int r = asym_realtime_set(want);
    if (r >= 0)
        p->is_realtime = want;
    else
        p->has_failed = true;
    return r;
}

/*
 * The kernel looks for an idle CPU only when a thread wakes, and not for a real-time thread (select_task_rq_rt). A trace shows
 * the cost: a sample ran on the CPU of a working thread, with a better nice value. The thread waited 36 to 670 ms of a slow
 * guest's clock in 8 of 13 runs, and a barrier waited for it, while another slow CPU was idle.
 */
static void move_to_idle_cpu(void)
{
    const struct timespec shortest = {.tv_nsec = 1};
    nanosleep(&shortest, NULL);
}

static bool is_answer(const struct asym_prompt *p)
{
    for (size_t i = 0; i < ASYM_LENGTH(p->sources) && p->sources[i]; i++)
        if (sd_event_source_get_pending(p->sources[i]) > 0)
            return true;
    return false;
}

/* Runs the next event that is pending. If it is no answer, asymd handles it without the real-time priority. */
static int dispatch(struct asym_prompt *p, sd_event *event)
{
    const bool lower = p->is_realtime && !is_answer(p);
    if (lower && asym_realtime_set(false) >= 0)
        move_to_idle_cpu();
    const int r = sd_event_dispatch(event);
    /* asymd ends without the priority. If raising it fails, the next answer tries again. */
    const int loop = sd_event_get_state(event);
    if (lower && p->is_realtime && loop != SD_EVENT_EXITING && loop != SD_EVENT_FINISHED)
        p->is_realtime = asym_realtime_set(true) == 0;
    return r;
}

int asym_prompt_run_event(struct asym_prompt *p, sd_event *event, uint64_t timeout)
{
    int r = sd_event_prepare(event);
    if (r == 0)
        r = sd_event_wait(event, timeout);
    if (r > 0)
        r = dispatch(p, event);
    return r;
}
