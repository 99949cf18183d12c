/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mask.h"
#include "base/text.h"
#include "report/columns.h"

typedef void say_fn(void *ctx, bool missed, const char *text);

static void each_missed(const struct asym_coverage *s, say_fn *fn, void *ctx)
{
    char text[256];
    if (s->hidepid)
        fn(ctx, true,
           "Not seen: processes of other users, because /proc is mounted with hidepid. Run as root to see them.");
    if (s->n_denied > 0) {
        snprintf(text, sizeof text,
                 "Not seen: %" PRIu32 " process%s that this user may not read. Run as root to see them.", s->n_denied,
                 s->n_denied == 1 ? "" : "es");
        fn(ctx, true, text);
    }
    if (s->n_foreign > 0) {
        snprintf(text, sizeof text, "Not steered: %" PRIu32 " process%s in PID namespaces that asymd cannot map.",
                 s->n_foreign, s->n_foreign == 1 ? "" : "es");
        fn(ctx, true, text);
    }
    if (s->n_unread > 0) {
        snprintf(text, sizeof text,
                 "Not read: the memory map or command line of %" PRIu32
                 " process%s. The kernel does not answer in time, or asymd-helper is missing. asymd leaves such a "
                 "process alone while it has one thread.",
                 s->n_unread, s->n_unread == 1 ? "" : "es");
        fn(ctx, true, text);
    }
    if (s->n_uncounted > 0) {
        snprintf(text, sizeof text, "Not counted: %" PRIu32 " thread%s whose counters the policy needs: %s.",
                 s->n_uncounted, s->n_uncounted == 1 ? "" : "s", s->uncounted_why ? s->uncounted_why : "");
        fn(ctx, true, text);
    }
    if (s->sampled)
        fn(ctx, true,
           "The number of runnable threads is sampled, not averaged over the interval: this kernel has no "
           "/proc/PID/schedstat "
           "(CONFIG_SCHED_INFO).");
}

static void each_remark(const struct asym_coverage *s, say_fn *fn, void *ctx)
{
    char text[256];
    if (!s->process_events) {
        snprintf(text, sizeof text, "asymd receives no process events: %s.",
                 s->process_events_why ? s->process_events_why : "it scans /proc instead");
        fn(ctx, false, text);
    }
    if (s->n_unkept > 0) {
        snprintf(text, sizeof text,
                 "%" PRIu32
                 " thread%s read without a kept descriptor, which costs CPU time. Raise the limit of open files.",
                 s->n_unkept, s->n_unkept == 1 ? " was" : "s were");
        fn(ctx, false, text);
    }
    for (size_t i = 0; i < ASYM_N_OBSERVERS; i++)
        if (s->remarks[i])
            fn(ctx, false, s->remarks[i]);
    if (s->n_lost_events > 0) {
        snprintf(text, sizeof text,
                 "The kernel dropped process events %" PRIu64
                 " time%s, because asymd read them too slowly; it scanned every process again.",
                 s->n_lost_events, s->n_lost_events == 1 ? "" : "s");
        fn(ctx, false, text);
    }
}

void asym_coverage_each(const struct asym_coverage *s, void (*fn)(void *ctx, bool missed, const char *text), void *ctx)
{
    each_missed(s, fn, ctx);
    each_remark(s, fn, ctx);
}

/* The machine in words. */

const struct asym_alike *asym_describe_alike(const struct asym_machine *m, const struct asym_topology_notes *notes)
{
    const struct asym_situation_facts facts = {
        .machine = m,
        .hidden = notes && notes->hidden,
        .unordered = notes && notes->unordered,
        .unknown = notes && notes->unknown,
    };
    return asym_situation_alike(&facts);
}

static void format_size(uint32_t kib, char *buf, size_t size)
{
    if (kib == 0)
        snprintf(buf, size, "none");
    else if (kib % 1024 == 0)
        snprintf(buf, size, "%" PRIu32 " MiB", kib / 1024);
    else
        snprintf(buf, size, "%" PRIu32 " KiB", kib);
}

bool asym_describe_favoured(const struct asym_machine *m, unsigned type, char *buf, size_t size)
{
    struct asym_mask favoured;
    if (!asym_machine_favoured(m, type, &favoured))
        return false;
    asym_columns_cpus(&favoured, 64, buf, size);
    return true;
}

bool asym_describe_l3(const struct asym_machine *m, char *buf, size_t size)
{
    struct asym_mask left = m->usable;
    char line[256];
    struct asym_text text = asym_text_in(line, sizeof line);
    unsigned groups = 0;
    for (; !asym_mask_empty(&left); groups++) {
        const uint32_t kib = m->cpus[asym_mask_next(&left, 0)].l3_kib;
        struct asym_mask alike = {0};
        char cpus[96], amount[32];
        ASYM_MASK_FOREACH (c, &left)
            if (m->cpus[c].l3_kib == kib)
                asym_mask_set(&alike, (unsigned)c);
        left = asym_mask_minus(&left, &alike);
        format_size(kib, amount, sizeof amount);
        asym_text_add(&text, "%s %s on %s", groups ? "," : "L3:", amount,
                      asym_mask_format_list(&alike, cpus, sizeof cpus));
    }
    if (groups < 2)
        return false;
    snprintf(buf, size, "%s", line);
    return true;
}
