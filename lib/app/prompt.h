/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Events that asymd answers at once: the reports of programs (RTX), and serial phases that the kernel saw (BPF). While the service
 * wants them, asymd waits for events with a real-time priority. Only an answer keeps the priority: samples, calls over the bus, and
 * reloads take as long as the processes or the users of the machine make them, so asymd handles each other event without it. The
 * kernel wakes a real-time thread on the CPU on which it slept, whichever thread runs there. So asymd sleeps once more without
 * that priority, for the shortest time: the kernel then wakes it on an idle CPU, if there is one; on a machine without one, asymd
 * waits for its turn there.
 */
#ifndef ASYM_APP_PROMPT_H
#define ASYM_APP_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

/** The parts of the service that want the priority, one bit each. */
enum { ASYM_PROMPT_RTX = 1 << 0, ASYM_PROMPT_BPF = 1 << 1 };

/** All zero: no part wants it. */
struct asym_prompt {
    sd_event_source *sources[4]; /**< borrowed; ended by NULL if there are fewer */
    unsigned wanted;
    bool is_realtime;
    bool has_failed; /**< the kernel has refused it, so asymd does not ask again */
};

/** Answer this source at once, before others that are pending. Borrowed until asymd ends. Returns 0; -errno. */
int asym_prompt_add(struct asym_prompt *p, sd_event_source *source);

/** Say whether who wants the priority. Returns 0; -errno: the kernel refuses it, once; later calls return 0. */
int asym_prompt_want(struct asym_prompt *p, unsigned who, bool wants);

/**
 * Run the next event of the loop, like sd_event_run. Returns 1: it ran one; 0: none came in timeout microseconds, or the loop ends;
 * -errno.
 */
int asym_prompt_run_event(struct asym_prompt *p, sd_event *event, uint64_t timeout);

#endif
