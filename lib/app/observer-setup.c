/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/observer-setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/settings-setup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "report/report.h"
#include "linux/observe/procfs.h"
#include "linux/perf/sampler.h"

/* A helper process reads the files that can block. Without its program asymd does not read them. */
static int open_reader(struct asym_run *run, struct asym_observer *o, struct asym_error *err)
{
    char buf[ASYM_PATH_SIZE];
    const char *program = asym_path(ASYM_PATH_HELPER, buf);
    if (!run->root.live)
        return 0;
    if (access(program, X_OK) < 0) {
        asym_log_say(&run->log, LOG_WARNING,
                     "%s: %s: asymd leaves programs with one thread alone, and no rule for command lines matches",
                     program, strerror(errno));
        program = NULL;
    }
    int r = asym_proc_reader_new(program, asym_clock_now, &o->reader);
    if (r < 0)
        return asym_fail(err, r, "no memory to observe");
    asym_proc_reader_set(o->reader, run->settings->daemon.cpu_budget * ASYM_OBSERVER_READING_SHARE);
    return 0;
}

/* "bpf: no BTF; and other: no device". */
static void note_absent(void *ctx, const char *name, const char *why)
{
    struct asym_observer *o = ctx;
    const size_t used = strlen(o->without);
    snprintf(o->without + used, sizeof o->without - used, "%s%s: %s", used ? "; and " : "", name, why);
}

int asym_observer_open(struct asym_run *run, struct asym_observer *ret, struct asym_error *err)
{
    struct asym_observer o = {.process_events = NULL};
    int r = open_reader(run, &o, err);
    if (r < 0)
        return r;
    struct asym_error without_events = {"a captured machine has no events"};
    if (run->root.live)
        (void)asym_process_events_open(&o.process_events, &without_events);
    const struct asym_procfs_config config = {
        .root = &run->root,
        .machine = run->machine,
        .process_events = o.process_events,
        .process_events_why = without_events.text,
        .group = (enum asym_grouping)run->settings->daemon.group,
        .pids = run->cli->pids,
        .n_pids = run->cli->n_pids,
        .rules = run->settings->rules,
        .reader = o.reader,
        .profile_of = asym_capabilities_profile_of,
        .wants_build_id = asym_capabilities_wants_build_id,
        .profile_ctx = &run->capabilities,
        .owns_children = true,
    };
    const struct asym_observer_context context = {.settings = run->settings, .procfs = &config};
    r = asym_observers_open(asym_observers, ASYM_N_OBSERVERS, &context, note_absent, &o, &o.observers, err);
    if (r >= 0 && run->root.live && run->settings->daemon.observer == ASYM_OBSERVE_BPF &&
        !o.observers.links[ASYM_OBSERVER_BPF])
        r = asym_fail(err, -EOPNOTSUPP, "asymd.observer is bpf, and asymd cannot observe without %s", o.without);
    if (r < 0) {
        asym_observer_close(&o);
        return r;
    }
    o.source = o.observers.source;
    *ret = o;
    return 0;
}

int asym_observer_count(struct asym_observer *o, const struct asym_run *run, struct asym_error *err)
{
    struct asym_sampler_config config = {.source = o->source};
    memcpy(config.missing, run->capabilities.missing, sizeof config.missing);
    int r = asym_capabilities_counters(&run->capabilities, run->settings, &config.counters, err);
    if (r < 0)
        return r;
    r = asym_sampler_new(&config, &o->sampler);
    if (r < 0)
        return asym_fail(err, r, "no memory to observe");
    o->source = o->sampler;
    return 0;
}

void asym_observer_set_rules(struct asym_observer *o, const struct asym_settings *settings)
{
    asym_procfs_set_rules(o->observers.links[ASYM_OBSERVER_PROCFS], settings->rules);
}

int asym_observer_rule_of(struct asym_observer *o, const struct asym_taskid *id, struct asym_proc *ret)
{
    struct asym_source *procfs = o->observers.links[ASYM_OBSERVER_PROCFS];
    return procfs ? asym_procfs_rule_of(procfs, id, ret) : -ESRCH;
}

void asym_observer_job_each(struct asym_observer *o, int32_t pgrp,
                            void (*fn)(void *ctx, const struct asym_taskid *proc), void *ctx)
{
    struct asym_source *procfs = o->observers.links[ASYM_OBSERVER_PROCFS];
    if (procfs)
        asym_procfs_job_each(procfs, pgrp, fn, ctx);
}

void asym_observer_adopt(struct asym_observer *o, const struct asym_run *run, struct asym_counters *counters)
{
    asym_observer_set_rules(o, run->settings);
    asym_procfs_set_group(o->observers.links[ASYM_OBSERVER_PROCFS], (enum asym_grouping)run->settings->daemon.group);
    asym_sampler_set(o->sampler, counters, run->capabilities.missing);
}

void asym_observer_close(struct asym_observer *o)
{
    if (o->sampler)
        o->sampler->close(o->sampler);
    asym_observers_close(&o->observers);
    asym_process_events_close(o->process_events);
    if (o->reader)
        o->reader->close(o->reader);
    *o = (struct asym_observer){.process_events = NULL};
}

static void warn(void *ctx, bool missed, const char *text)
{
    const struct asym_log *log = ctx;
    if (missed)
        asym_log_say(log, LOG_WARNING, "%s", text);
}

void asym_observer_warn(struct asym_log *log, const struct asym_snapshot *s)
{
    asym_coverage_each(&s->coverage, warn, log);
}
