/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/observation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/policy-setup.h"
#include "app/settings-setup.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/long-verb.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/verb.h"
#include "experiment/replay.h"
#include "linux/enforce/enforce.h"
#include "linux/sys/thread.h"

void asym_observation_done(struct asym_observation *o)
{
    asym_cycle_done(&o->cycle);
    asym_settings_free(o->settings);
    for (size_t i = 0; i < o->head.n_settings; i++) {
        free((char *)(uintptr_t)o->head_settings[i].name);
        free((char *)(uintptr_t)o->head_settings[i].value);
    }
    free(o->head_settings);
    if (o->ledger_overlay)
        o->ledger_overlay->close(o->ledger_overlay);
    asym_observer_close(&o->observer);
    asym_run_done(&o->run);
    free(o->cli.pids);
    free(o->policy.text);
}

static int add_pid(void *ctx, const char *word, struct asym_error *err)
{
    const int r = asym_run_add_pid(ctx, word);
    return r == -EINVAL ? asym_fail(err, r, "--pid=%s: accepted are process ids, separated by commas", word)
           : r < 0      ? asym_fail(err, r, "no memory")
                        : 0;
}

static int read_arguments(struct asym_observation *o, const struct asym_observation_arguments *a,
                          struct asym_error *err)
{
    o->time = a->time;
    o->cli.config = a->config;
    int r = asym_verb_each_word(a->pids, add_pid, &o->cli, err);
    if (r < 0 || !a->policy)
        return r;
    if (asprintf(&o->policy.text, "asymd.policy=%s", a->policy) < 0) {
        o->policy.text = NULL;
        return asym_fail(err, -ENOMEM, "no memory");
    }
    o->policy.origin = "--policy";
    o->cli.assignments = &o->policy;
    o->cli.n_assignments = 1;
    return 0;
}

/* The masks that a running service has set would look like masks that the threads chose. */
static int open_overlay(struct asym_observation *o, struct asym_error *err)
{
    const char *dir = o->run.settings->daemon.state_dir;
    struct asym_error unread = {""};
    struct asym_ledger *ledger = NULL;
    int r = asym_ledger_overlay_new(o->observer.source, dir, &o->ledger_overlay, &unread);
    if (r < 0)
        return asym_fail(err, r, "no memory to observe");
    o->observer.source = o->ledger_overlay;
    if (*unread.text) {
        char why[150];
        snprintf(o->note, sizeof o->note, "Masks that a running service has set may look like the threads' own: %s",
                 asym_text_show(unread.text, why, sizeof why));
        return 0;
    }
    if (asym_ledger_peek(dir, &ledger, &unread) < 0 || !ledger)
        return 0;
    const size_t n = asym_ledger_count(ledger);
    if (n > 0)
        snprintf(o->note, sizeof o->note,
                 "An asymd had set the masks of %zu threads at the beginning: they ran where it kept them.", n);
    asym_ledger_close(ledger);
    return 0;
}

/* A plan depends on these sections; rules are in the snapshots by their effect. */
static bool is_of_plans(const char *section)
{
    return strcmp(section, "classify") == 0 || strcmp(section, "enforce") == 0 || strncmp(section, "policy.", 7) == 0;
}

static int add_setting(void *ctx, const char *section, const struct asym_option *row, const char *value,
                       const char *origin)
{
    struct asym_observation *o = ctx;
    if (!is_of_plans(section))
        return 0;
    if (asym_grow(&o->head_settings, o->head.n_settings, &o->capacity, sizeof *o->head_settings) < 0)
        return -ENOMEM;
    char *name = NULL, *copy = strdup(value);
    if (!copy || asprintf(&name, "%s.%s", section, row->key) < 0) {
        free(copy);
        return -ENOMEM;
    }
    o->head_settings[o->head.n_settings++] = (struct asym_record_setting){.name = name, .value = copy};
    return 0;
}

static int fill_head(struct asym_observation *o, struct asym_error *err)
{
    o->head = (struct asym_record_head){.version = ASYM_VERSION,
                                        .policy = o->run.policy->name,
                                        .keep_nice = o->run.keep_nice,
                                        .began = (uint64_t)time(NULL),
                                        .interval = o->run.settings->daemon.interval,
                                        .notes = o->notes};
    if (asym_settings_each(o->run.settings, add_setting, o) < 0)
        return asym_fail(err, -ENOMEM, "no memory");
    o->head.settings = o->head_settings;
    if (*o->note)
        o->notes[o->head.n_notes++] = o->note;
    if (o->run.assumed_slow)
        o->notes[o->head.n_notes++] =
            "Some CPUs only count as slow: asymmetry.slow names them, and nothing slowed them.";
    return 0;
}

int asym_observation_open(struct asym_observation *o, const struct asym_observation_arguments *a,
                          struct asym_error *err)
{
    *o = (struct asym_observation){.run = {.root = {.fd = -1}}};
    int r = read_arguments(o, a, err);
    if (r >= 0)
        r = asym_machine_run_begin(&o->run, &o->cli, ASYM_MACHINE_SAYS, err);
    o->usage = !o->run.settings;
    o->run.log.level = LOG_WARNING;
    if (r >= 0)
        r = asym_run_policy(&o->run, err);
    if (r >= 0)
        r = asym_capabilities_check(o->run.capabilities.missing, o->run.policy, err);
    if (r < 0)
        return r;
    /* It changes nothing, so what it may not do needs no warning; its plans are those that this user's asymd would make. */
    o->run.keep_nice = asym_thread_may_boost() < 0;
    r = asym_observer_open(&o->run, &o->observer, err);
    if (r >= 0)
        r = open_overlay(o, err);
    if (r >= 0)
        r = asym_observer_count(&o->observer, &o->run, err);
    o->source = o->observer.source;
    return r < 0 ? r : fill_head(o, err);
}

int asym_observation_begin(struct asym_observation *o, struct asym_error *err)
{
    int r = asym_replay_settings(&o->head, &o->settings, err);
    if (r < 0)
        return r;
    struct asym_engine_config config = asym_settings_engine_config(o->settings, o->run.policy);
    config.keep_nice = o->head.keep_nice;
    r = asym_cycle_init(&o->cycle, &config, o->source, asym_actuator_dry());
    return r < 0 ? asym_fail(err, r, "%s", strerror(-r)) : 0;
}

/* Sleeps until then, or until a signal. */
static void sleep_until(asym_usec then)
{
    const struct timespec at = {.tv_sec = (time_t)(then / ASYM_SEC), .tv_nsec = (long)(then % ASYM_SEC) * 1000};
    while (!asym_interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

int asym_observation_run(struct asym_observation *o, int (*on_cycle)(void *ctx, const struct asym_cycle *cycle),
                         void *ctx, struct asym_error *err)
{
    struct asym_progress_line line = asym_progress_line_begin();
    asym_interruption_catch();
    o->began = asym_clock_now();
    const asym_usec end = o->began + o->time;
    asym_usec now = o->began;
    int r = 0;
    while (r >= 0 && !asym_interrupted && now < end) {
        r = asym_cycle_plan(&o->cycle);
        if (r >= 0)
            r = asym_cycle_enforce(&o->cycle);
        if (r >= 0)
            r = on_cycle(ctx, &o->cycle);
        /* The sample has taken time, too. */
        asym_progress_line_show(&line, asym_progress_line_elapsed(&line), (double)o->time / ASYM_SEC, "s");
        sleep_until(ASYM_MIN(now + o->run.settings->daemon.interval, end));
        now = asym_clock_now();
    }
    o->took = now - o->began;
    asym_progress_line_end(&line);
    return r < 0 ? asym_fail(err, r, "cannot observe: %s", strerror(-r)) : 0;
}
