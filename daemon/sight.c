/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/sight.h"

#include <inttypes.h>
#include <stdio.h>

typedef void say_fn(void *ctx, bool missed, const char *text);

static void each_missed(const struct asym_sight *s, say_fn *fn, void *ctx)
{
    char text[256];
    if (s->hidepid)
        fn(ctx, true, "Not seen: processes of other users, as /proc is mounted with hidepid; run as root to see them.");
    if (s->n_denied > 0) {
        snprintf(text, sizeof text, "Not seen: %" PRIu32 " process%s that may not be read; run as root to see them.",
                 s->n_denied, s->n_denied == 1 ? "" : "es");
        fn(ctx, true, text);
    }
    if (s->n_foreign > 0) {
        snprintf(text, sizeof text, "Not steered: %" PRIu32 " process%s in PID namespaces that cannot be mapped.",
                 s->n_foreign, s->n_foreign == 1 ? "" : "es");
        fn(ctx, true, text);
    }
    if (s->n_unread > 0) {
        snprintf(text, sizeof text,
                 "Not read: what %" PRIu32
                 " process%s mapped, or their command lines: the kernel does not answer in time, or "
                 "asymd-helper is missing. They are left alone while they have one thread.",
                 s->n_unread, s->n_unread == 1 ? " has" : "es have");
        fn(ctx, true, text);
    }
    if (s->n_uncounted > 0) {
        snprintf(text, sizeof text, "Not counted: %" PRIu32 " thread%s that the policy asks for: %s.", s->n_uncounted,
                 s->n_uncounted == 1 ? "" : "s", s->uncounted_why ? s->uncounted_why : "");
        fn(ctx, true, text);
    }
    if (s->sampled)
        fn(ctx, true,
           "Runnable counts are those of the moment, not of the interval: this kernel has no /proc/PID/schedstat "
           "(CONFIG_SCHED_INFO).");
}

static void each_remark(const struct asym_sight *s, say_fn *fn, void *ctx)
{
    char text[256];
    if (!s->births) {
        snprintf(text, sizeof text, "Births and deaths do not come as events: %s.",
                 s->births_why ? s->births_why : "/proc is scanned instead");
        fn(ctx, false, text);
    }
    if (s->n_unkept > 0) {
        snprintf(text, sizeof text,
                 "%" PRIu32 " thread%s read without a kept descriptor, at a cost; raise the limit of open files.",
                 s->n_unkept, s->n_unkept == 1 ? " was" : "s were");
        fn(ctx, false, text);
    }
    if (s->n_lost_events > 0) {
        snprintf(text, sizeof text, "Birth events overflowed %" PRIu64 " time%s: everything was scanned anew.",
                 s->n_lost_events, s->n_lost_events == 1 ? "" : "s");
        fn(ctx, false, text);
    }
}

void asym_sight_each(const struct asym_sight *s, void (*fn)(void *ctx, bool missed, const char *text), void *ctx)
{
    each_missed(s, fn, ctx);
    each_remark(s, fn, ctx);
}
