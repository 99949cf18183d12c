/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Events that asymd answers at once, with a plan before the next sample: the reports of programs (RTX), and serial phases that the
 * kernel saw (BPF). After an answer asymd rests, however many events come.
 *
 * While an asker wants it, asymd waits for events with a real-time priority. An answer, the begin of a sample and that of the
 * housekeeping keep it until their limit (linux/sys/realtime.h): a phase that begins while asymd waits for a CPU without it wakes
 * no one, and waits with asymd. asymd handles each other event, and the rest of a sample, without it. The kernel wakes a real-time
 * thread on the CPU on which it slept, whichever thread runs there. So asymd sleeps once more without that priority, for the
 * shortest time: the kernel then wakes it on an idle CPU, if there is one; on a machine without one, asymd waits for its turn
 * there.
 */
#ifndef ASYM_APP_PROMPT_H
#define ASYM_APP_PROMPT_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include <asym/types.h>

#include "app/log.h"

struct asym_prompt;

/** One whose events asymd answers at once. */
struct asym_asker {
    int fd;                     /**< readable: there are events; borrowed */
    void (*receive)(void *ctx); /**< call it before serve; no one is charged for it. NULL: nothing to do */
    bool (*serve)(void *ctx);   /**< takes the events. Returns whether asymd has to plan */
    void (*charge)(void *ctx, asym_usec cost); /**< the CPU time of serve and of the plan, in microseconds */
    asym_usec (*due)(void *ctx);               /**< when serve has work without an event; 0: never. NULL: never */
    void *ctx;
    const char *without; /**< what asymd does worse if it has no real-time priority: "asymd sees phases later" */
    /* The rest belongs to the functions below. */
    struct asym_prompt *prompt; /* NULL: not added */
    sd_event_source *io, *rest; /* rest: a timer, until which the next answer waits */
    bool wants;
};

/** All zero: no one asks. */
struct asym_prompt {
    int (*plan)(void *userdata); /**< plans at once. Returns 0; -errno: the loop cannot end */
    asym_usec (*others_pay)(
        void *userdata);           /**< the CPU time so far that a plan has used and others pay, in microseconds */
    sd_event_source *housekeeping; /**< borrowed; before all but answers. NULL: none */
    sd_event_source *sample;       /**< borrowed; a sample begins, before all others. NULL: none will */
    void *userdata;
    const struct asym_log *log;
    asym_usec spent; /**< CPU time of all answers so far, in microseconds; it has its own budgets */
    /* The rest belongs to the functions below. */
    struct asym_asker *askers[2];
    bool is_realtime;
    bool has_failed; /* the kernel has refused the priority, so asymd does not ask again */
};

/** Answer this asker from the loop, before other events that are pending. Borrowed until asym_prompt_remove. Returns 0; -errno. */
int asym_prompt_add(struct asym_prompt *p, struct asym_asker *asker, sd_event *event);

/** Answer it no more. It may be one that was not added. */
void asym_prompt_remove(struct asym_asker *asker);

/** Say whether the asker, which was added, wants the priority. Logs that the kernel refuses it, once. */
void asym_prompt_want(struct asym_asker *asker, bool wants);

/**
 * Run the next event of the loop, like sd_event_run. Returns 1: it ran one; 0: none came in timeout microseconds, or the loop ends;
 * -errno.
 */
int asym_prompt_run_event(struct asym_prompt *p, sd_event *event, uint64_t timeout);

#endif
