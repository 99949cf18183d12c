/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target: a record whose samples, profiles and speeds are as extreme as the format allows gives each policy a plan.
 * Random bytes as a segment (fuzz-record) make such snapshots too rarely, so the bytes choose figures here.
 */
#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <asym/engine.h>

#include "base/macro.h"
#include "config/settings.h"
#include "record/record.h"

enum { CPUS = 8, APPS = 3, TASKS = 24, PROFILES = 3, SNAPSHOTS = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The choices. After the last byte each choice is the first one. */
static const uint8_t *bytes, *end;

static unsigned choose(unsigned n)
{
    return bytes < end ? *bytes++ % n : 0;
}

static double figure(void)
{
    static const double figures[] = {0,       -1,  1,   -0.0, 1e-308, 5e-324, 1e308, -1e308,
                                     DBL_MAX, 3e9, 1e9, 1e-9, 0.5,    1e18,   1e30,  -DBL_MAX};
    return figures[choose(ASYM_LENGTH(figures))];
}

struct facts {
    struct asym_machine machine;
    struct asym_app apps[APPS];
    struct asym_proc procs[APPS];
    struct asym_task tasks[TASKS];
    struct asym_sample samples[TASKS];
    struct asym_profile profiles[PROFILES];
    struct asym_mask masks[2];
    asym_usec now;
};

static bool make_machine(struct facts *f)
{
    static const double speeds[] = {1, 2, 1.5, 1e-5, 1e308, 1e-308};
    f->machine = (struct asym_machine){.generation = 1, .n_cpus = CPUS, .online = {{0xff}}, .usable = {{0xff}}};
    for (int16_t c = 0; c < CPUS; c++)
        f->machine.cpus[c] = (struct asym_cpu){.speed = speeds[choose(ASYM_LENGTH(speeds))],
                                               .core = (int16_t)(c / 2),
                                               .freq_domain = c,
                                               .llc = (int16_t)((int)choose(3) - 1),
                                               .node = (int16_t)choose(2),
                                               .kind = -1};
    return asym_machine_finish(&f->machine) >= 0;
}

static void make_profiles(struct facts *f)
{
    for (size_t i = 0; i < PROFILES; i++)
        for (size_t t = 0; t < ASYM_MAX_TYPES; t++) {
            f->profiles[i].ips[t] = figure();
            f->profiles[i].mpki[t] = figure();
        }
}

static struct asym_snapshot make_snapshot(struct facts *f)
{
    struct asym_snapshot s = {.machine = &f->machine, .apps = f->apps, .procs = f->procs, .tasks = f->tasks};
    s.n_apps = s.n_procs = APPS;
    s.n_tasks = TASKS;
    s.samples = f->samples;
    s.now = f->now += choose(4) ? 100000 : (asym_usec)choose(256) * 4000000;
    s.interval = choose(3) ? 100000 : 0;
    for (uint32_t i = 0; i < APPS; i++) {
        static const double means[] = {1, 0, 8, 0.3, 1e7};
        const int32_t pid = 100 + (int32_t)i;
        f->procs[i] = (struct asym_proc){.id = {pid, pid, 1}, .app = i, .rule = (enum asym_rule_action)choose(4)};
        f->procs[i].profile = choose(3) ? &f->profiles[choose(PROFILES)] : NULL;
        f->apps[i] = (struct asym_app){.id = f->procs[i].id,
                                       .first_task = i * (TASKS / APPS),
                                       .n_tasks = TASKS / APPS,
                                       .n_threads = choose(2) ? UINT32_MAX : TASKS / APPS,
                                       .runnable_instant = choose(2) ? UINT32_MAX : TASKS / APPS,
                                       .runnable_mean = means[choose(ASYM_LENGTH(means))],
                                       .uses_rtx = choose(2)};
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        struct asym_task *t = &f->tasks[i];
        const int32_t tgid = 100 + (int32_t)(i / (TASKS / APPS));
        *t = (struct asym_task){.id = {1000 + (int32_t)i, tgid, 1}, .proc = i / (TASKS / APPS), .state = 'R'};
        t->cpu = choose(10) == 9 ? ASYM_MAX_CPUS - 1 : (int32_t)choose(CPUS);
        t->runnable = choose(3) / 2.0;
        t->running = t->runnable * choose(2);
        t->mask = &f->masks[choose(6) == 5];
        t->cpuset = &f->masks[0];
        t->flags = choose(8) == 7 ? choose(256) % 64 : 0;
        if (choose(3))
            f->samples[s.n_samples++] = (struct asym_sample){i, figure(), figure(), figure(), figure()};
    }
    return s;
}

/* Returns whether the format allows all of it. */
static bool write_record(struct facts *f, FILE *out)
{
    const struct asym_record_head head = {.version = "1", .policy = "pa", .interval = 100000};
    struct asym_record_writer *w;
    bool ok = true;
    if (asym_record_writer_new(out, &head, &w) < 0)
        abort();
    for (int i = 0; ok && i < SNAPSHOTS; i++) {
        struct asym_snapshot s = make_snapshot(f);
        ok = asym_record_writer_add(w, &s) >= 0;
    }
    ok = ok && asym_record_writer_finish(w) >= 0;
    asym_record_writer_free(w);
    return ok;
}

static void step(struct asym_engine *engine, const struct asym_snapshot *s)
{
    const struct asym_plan *plan;
    const struct asym_action *actions;
    size_t n;
    if (asym_engine_step(engine, s, &plan, &actions, &n) < 0)
        abort();
    for (size_t i = 0; i < plan->n_tasks; i++)
        if (plan->tasks[i].target >= CPUS)
            abort();
    ASYM_AUTO_FREE struct asym_outcome *outcomes = calloc(n + 1, sizeof *outcomes);
    if (!outcomes)
        abort();
    asym_engine_outcomes(engine, outcomes, n);
}

static void replay(char *record, size_t len, const struct asym_policy *policy, const struct asym_settings *settings)
{
    const struct asym_engine_config config = asym_settings_engine_config(settings, policy);
    struct asym_record_reader *reader;
    struct asym_engine *engine;
    struct asym_snapshot s;
    FILE *in = fmemopen(record, len, "rb");
    if (!in || asym_record_reader_new(in, "f", &reader, NULL) < 0 || asym_engine_new(&config, &engine) < 0)
        abort();
    struct asym_source *source = asym_record_reader_source(reader);
    int r;
    while ((r = source->next(source, &s)) > 0)
        step(engine, &s);
    if (r < 0)
        abort(); /* the reader refuses what the writer has accepted */
    asym_engine_free(engine);
    asym_record_reader_free(reader);
    fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct facts f;
    struct asym_settings *settings;
    ASYM_AUTO_FREE char *record = NULL;
    size_t len = 0;
    bytes = data;
    end = data + size;
    f = (struct facts){.masks = {{{0xff}}, {{0x0f}}}, .now = 1000000000};
    if (!make_machine(&f))
        return 0;
    make_profiles(&f);
    FILE *out = open_memstream(&record, &len);
    if (!out || asym_settings_new(&settings) < 0)
        abort();
    const bool ok = write_record(&f, out);
    fclose(out);
    for (size_t i = 0; ok && asym_policy_at(i); i++)
        replay(record, len, asym_policy_at(i), settings);
    asym_settings_free(settings);
    return 0;
}
