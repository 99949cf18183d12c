/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mask.h"
#include "base/text.h"
#include "report/columns.h"

struct listener {
    void (*fn)(void *ctx, bool missed, const char *text);
    void *ctx;
    bool missed;
};

/* Says it of n things, unless there are none. */
static __attribute__((format(printf, 3, 4))) void say(const struct listener *l, uint64_t n, const char *format, ...)
{
    char text[256];
    va_list args;
    if (n == 0)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    l->fn(l->ctx, l->missed, text);
}

static void each_missed(const struct asym_coverage *s, const struct listener *l)
{
    say(l, s->hidepid,
        "Not seen: processes of other users, because /proc is mounted with hidepid. Run as root to see them.");
    say(l, s->n_denied, "Not seen: %" PRIu32 " process%s that this user may not read. Run as root to see them.",
        s->n_denied, s->n_denied == 1 ? "" : "es");
    say(l, s->n_foreign, "Not steered: %" PRIu32 " process%s in PID namespaces that asymd cannot map.", s->n_foreign,
        s->n_foreign == 1 ? "" : "es");
    say(l, s->n_unread,
        "Not read: the memory map or command line of %" PRIu32
        " process%s. The kernel does not answer in time, or asymd-helper is missing. asymd leaves such a process alone "
        "while it has one thread.",
        s->n_unread, s->n_unread == 1 ? "" : "es");
    say(l, s->n_uncounted, "Not counted: %" PRIu32 " thread%s whose counters the policy needs: %s.", s->n_uncounted,
        s->n_uncounted == 1 ? "" : "s", s->uncounted_why ? s->uncounted_why : "");
    say(l, s->sampled,
        "The number of runnable threads is sampled, not averaged over the interval: this kernel has no "
        "/proc/PID/schedstat (CONFIG_SCHED_INFO).");
}

static void each_remark(const struct asym_coverage *s, const struct listener *l)
{
    say(l, !s->process_events, "asymd receives no process events: %s.",
        s->process_events_why ? s->process_events_why : "it scans /proc instead");
    say(l, s->n_unkept,
        "%" PRIu32 " thread%s read without a kept descriptor, which costs CPU time. Raise the limit of open files.",
        s->n_unkept, s->n_unkept == 1 ? " was" : "s were");
    for (size_t i = 0; i < ASYM_N_OBSERVERS; i++)
        if (s->remarks[i])
            l->fn(l->ctx, l->missed, s->remarks[i]);
    say(l, s->n_lost_events,
        "The kernel dropped process events %" PRIu64
        " time%s, because asymd read them too slowly; it scanned every process again.",
        s->n_lost_events, s->n_lost_events == 1 ? "" : "s");
}

void asym_coverage_each(const struct asym_coverage *s, void (*fn)(void *ctx, bool missed, const char *text), void *ctx)
{
    each_missed(s, &(struct listener){fn, ctx, true});
    each_remark(s, &(struct listener){fn, ctx, false});
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
