/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parser of scenario files. Sections and keys are rows; scenario-steps.c parses steps. */
#include "sim/scenario-internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "base/ini.h"
#include "config/option-value.h"
#include "config/config.h"

#define M(field) .section = "machine", .offset = offsetof(struct asym_scenario, machine.field)
#define S(field) .section = "scheduler", .offset = offsetof(struct asym_scenario, scheduler.field)
#define R(field) .section = "run", .offset = offsetof(struct asym_scenario, run.field)
#define Y(field) .section = "memory", .offset = offsetof(struct asym_sim_memory, field)
#define P(field) .section = "program", .offset = offsetof(struct asym_sim_program, field)

/* The largest time of a scenario: a day, in ns. */
#define DAY 86400e9

/* Parses figures above 0 within the row's range, separated by commas. Returns their number; -EINVAL. */
static int parse_list(const struct asym_option *row, const char *value, double ret[ASYM_SIM_MAX_TYPES])
{
    int n = 0;
    for (const char *at = value; at; n++) {
        const char *comma = strchr(at, ',');
        const size_t len = comma ? (size_t)(comma - at) : strlen(at);
        if (n == ASYM_SIM_MAX_TYPES || asym_parse_number(at, len, &ret[n]) < 0 || ret[n] < row->min ||
            ret[n] > row->max || !(ret[n] > 0))
            return -EINVAL;
        at = comma ? comma + 1 : NULL;
    }
    return n;
}

static int parse_whole_list(const struct asym_option *row, void *base, const char *value)
{
    unsigned *ret = (unsigned *)(void *)((char *)base + row->offset);
    double figures[ASYM_SIM_MAX_TYPES];
    const int n = parse_list(row, value, figures);
    for (int i = 0; i < n; i++)
        if (figures[i] > floor(figures[i]))
            return -EINVAL;
    for (int i = 0; n >= 0 && i < ASYM_SIM_MAX_TYPES; i++)
        ret[i] = i < n ? (unsigned)figures[i] : 0;
    return n < 0 ? n : 0;
}

static int parse_speeds(const struct asym_option *row, void *base, const char *value)
{
    double speeds[ASYM_SIM_MAX_TYPES] = {0};
    const int n = parse_list(row, value, speeds);
    if (n >= 0)
        memcpy(((struct asym_scenario *)base)->machine.speeds, speeds, sizeof speeds);
    return n < 0 ? n : 0;
}

static int parse_nice(const struct asym_option *row, void *base, const char *value)
{
    struct asym_sim_program *program = base;
    const char *dots = strstr(value, "..");
    int64_t low, high;
    if (asym_parse_i64(value, dots ? (size_t)(dots - value) : strlen(value), &low) < 0)
        return -EINVAL;
    high = low;
    if (dots && asym_parse_i64(dots + 2, strlen(dots + 2), &high) < 0)
        return -EINVAL;
    if ((double)low < row->min || (double)high > row->max || high < low)
        return -EINVAL;
    program->nice_low = (int)low;
    program->nice_high = (int)high;
    return 0;
}

static int parse_cpus(const struct asym_option *row, void *base, const char *value)
{
    return asym_mask_parse_list(value, strlen(value), (struct asym_mask *)(void *)((char *)base + row->offset));
}

/* docs/simulator.md gives the source of each default. */
static const struct asym_option rows[] = {
    {M(counts), .key = "counts", .type = ASYM_OPTION_CUSTOM, .parse = parse_whole_list, .min = 1, .max = ASYM_MAX_CPUS,
     .accepted = "numbers of cores from 1 to 1024, one for each speed, such as 7,1"},
    {M(speeds), .key = "speeds", .type = ASYM_OPTION_CUSTOM, .parse = parse_speeds, .max = 1000,
     .accepted = "speeds above 0 and up to 1000, one for each count, such as 1,2"},
    {M(order), .key = "order", .type = ASYM_OPTION_ENUM, .values = ASYM_OPTION_VALUES("blocked", "interleaved")},
    {M(smt), .key = "smt", .type = ASYM_OPTION_CUSTOM, .parse = parse_whole_list, .def = "1", .min = 1,
     .max = ASYM_MAX_SIBLINGS,
     .accepted = "hardware threads of a core from 1 to 8: a number for all cores, or one for each count, such as 2,1"},
    {M(llc), .key = "llc", .type = ASYM_OPTION_COUNT, .max = ASYM_MAX_CPUS},
    {M(node), .key = "node", .type = ASYM_OPTION_COUNT, .max = ASYM_MAX_CPUS},
    {M(frequency), .key = "frequency", .type = ASYM_OPTION_NUMBER, .def = "1", .min = 0.001, .max = 100},
    {M(max_ipc), .key = "max_ipc", .type = ASYM_OPTION_NUMBER, .def = "1", .min = 0.1, .max = 64},
    {M(smt_loss), .key = "smt_loss", .type = ASYM_OPTION_NUMBER, .def = "0.05", .max = 0.9},
    {M(fetch), .key = "fetch", .type = ASYM_OPTION_ENUM, .values = ASYM_OPTION_VALUES("even", "priority")},
    {M(fetch_lost), .key = "fetch_lost", .type = ASYM_OPTION_NUMBER, .max = 1},
    {M(miss_ns), .key = "miss", .type = ASYM_OPTION_NS, .def = "100ns", .max = 1e6},
    {M(remote), .key = "remote", .type = ASYM_OPTION_NUMBER, .def = "1.5", .min = 1, .max = 100},
    {M(llc_kib), .key = "llc_kib", .type = ASYM_OPTION_COUNT, .max = 1e9},
    {S(tick), .key = "tick", .type = ASYM_OPTION_NS, .def = "4ms", .min = 1e5, .max = 1e9},
    {S(slice), .key = "slice", .type = ASYM_OPTION_NS, .def = "3ms", .min = 1e5, .max = 1e10},
    {S(wake_margin), .key = "wake_margin", .type = ASYM_OPTION_NS, .def = "1ms", .max = 1e10},
    {S(balance), .key = "balance", .type = ASYM_OPTION_NS, .def = "64ms", .min = 1e6, .max = 1e11},
    {S(switch_cost), .key = "switch_cost", .type = ASYM_OPTION_NS, .def = "2us", .max = 1e8},
    {S(tick_cost), .key = "tick_cost", .type = ASYM_OPTION_NS, .def = "1us", .max = 5e4},
    {S(migrate_llc), .key = "migrate_llc", .type = ASYM_OPTION_NS, .def = "5us", .max = 1e9},
    {S(migrate_across), .key = "migrate_across", .type = ASYM_OPTION_NS, .def = "20us", .max = 1e9},
    {S(migrate_node), .key = "migrate_node", .type = ASYM_OPTION_NS, .def = "40us", .max = 1e9},
    {S(refill), .key = "refill", .type = ASYM_OPTION_NUMBER, .def = "100", .max = 1e6},
    {S(placement), .key = "placement", .type = ASYM_OPTION_ENUM, .values = ASYM_OPTION_VALUES("idlest", "random")},
    {S(capacity), .key = "capacity", .type = ASYM_OPTION_ENUM,
     .values = ASYM_OPTION_VALUES("ignored", "load", "active")},
    {S(housekeeping), .key = "housekeeping", .type = ASYM_OPTION_CUSTOM, .parse = parse_cpus,
     .accepted = "a CPU list such as 0-3,8"},
    {R(duration), .key = "duration", .type = ASYM_OPTION_NS, .def = "10s", .min = 1e6, .max = DAY},
    {R(until), .key = "until", .type = ASYM_OPTION_ENUM, .values = ASYM_OPTION_VALUES("time", "done", "runs")},
    {R(runs), .key = "runs", .type = ASYM_OPTION_COUNT, .def = "3", .min = 1, .max = 1e6},
    {R(alone), .key = "alone", .type = ASYM_OPTION_BOOL, .def = "yes"},
    {R(runnable), .key = "runnable", .type = ASYM_OPTION_ENUM, .values = ASYM_OPTION_VALUES("exact", "credited")},
    {Y(ipc), .key = "ipc", .type = ASYM_OPTION_NUMBER, .min = 0.01, .max = 64},
    {Y(mpki), .key = "mpki", .type = ASYM_OPTION_NUMBER, .max = 1000},
    {Y(apki), .key = "apki", .type = ASYM_OPTION_NUMBER, .max = 1000},
    {Y(working_set), .key = "working_set", .type = ASYM_OPTION_NUMBER, .max = 1e9},
    {P(threads), .key = "threads", .type = ASYM_OPTION_COUNT, .def = "1", .min = 1, .max = ASYM_SIM_MAX_THREADS},
    {P(count), .key = "count", .type = ASYM_OPTION_COUNT, .def = "1", .min = 1, .max = ASYM_SIM_MAX_THREADS},
    {P(nice_low), .key = "nice", .type = ASYM_OPTION_CUSTOM, .parse = parse_nice, .min = -20, .max = 19,
     .accepted = "a nice value from -20 to 19, or a range such as 0..19"},
    {P(affinity), .key = "affinity", .type = ASYM_OPTION_CUSTOM, .parse = parse_cpus,
     .accepted = "a CPU list such as 0-3,8"},
    {P(start), .key = "start", .type = ASYM_OPTION_NS, .max = DAY},
    {P(rate), .key = "rate", .type = ASYM_OPTION_NUMBER, .max = 1e6},
    {P(passes), .key = "passes", .type = ASYM_OPTION_COUNT, .def = "forever", .min = 1, .max = 1e9,
     .keyword = "forever"},
    {P(restart), .key = "restart", .type = ASYM_OPTION_BOOL},
    {P(job), .key = "job", .type = ASYM_OPTION_BOOL},
    {P(spin), .key = "spin", .type = ASYM_OPTION_NS, .max = DAY, .keyword = "forever"},
    {P(rtx), .key = "rtx", .type = ASYM_OPTION_BOOL},
};

const struct asym_option *asym_scenario_option(size_t i)
{
    return i < ASYM_LENGTH(rows) ? &rows[i] : NULL;
}

static_assert(ASYM_LENGTH(rows) <= ASYM_LENGTH(((struct parse *)NULL)->seen), "a line for each");

/* Sets the defaults of a kind of section. base: zeroed. */
static int set_defaults(const char *kind, void *base)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < ASYM_LENGTH(rows); i++)
        if (strcmp(rows[i].section, kind) == 0)
            r = asym_option_default(&rows[i], kind, base);
    return r;
}

static int unknown_key(const char *section, const char *key, struct asym_error *err)
{
    struct asym_nearest near = {.wanted = key};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (strcmp(rows[i].section, section) == 0)
            asym_nearest_list(&near, rows[i].key);
    if (strcmp(section, "program") == 0)
        asym_nearest_list(&near, "step");
    return asym_option_unknown(&near, section, NULL, err);
}

/* Returns whether section is of that kind. *ret_name: the text after the kind, "a" of "program a". */
static bool is_of_kind(const char *section, const char *kind, const char **ret_name)
{
    const size_t n = strlen(kind);
    const bool is_named = strcmp(kind, "memory") == 0 || strcmp(kind, "program") == 0;
    if (strncmp(section, kind, n) != 0 || (section[n] && !(is_named && strchr(" \t", section[n]))))
        return false;
    *ret_name = section + n + strspn(section + n, " \t");
    return true;
}

/* Returns the kind of a section: "program" for "program a". NULL: a section of asymd.conf. */
static const char *kind_of(const char *section, const char **ret_name)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (is_of_kind(section, rows[i].section, ret_name))
            return rows[i].section;
    return NULL;
}

static int new_name(const char *kind, const char *name, char buf[ASYM_SIM_NAME], struct asym_error *err)
{
    if (asym_ini_name(name, buf, ASYM_SIM_NAME) == 0)
        return 0;
    return asym_fail(err, -EINVAL, "a %s needs a name of at most %d bytes; accepted is [%s \"NAME\"]", kind,
                     ASYM_SIM_NAME - 1, kind);
}

static int new_memory(struct parse *p, const char *name, struct asym_error *err)
{
    struct asym_sim_memory m = {0};
    int r = new_name("memory", name, m.name, err);
    for (unsigned i = 0; r >= 0 && i < p->s->n_memories; i++)
        if (strcmp(p->s->memories[i].name, m.name) == 0)
            r = asym_fail(err, -EINVAL, "memory %s exists already", m.name);
    if (r >= 0 && p->s->n_memories == ASYM_SIM_MAX_MEMORIES)
        r = asym_fail(err, -EINVAL, "more than %d memories", ASYM_SIM_MAX_MEMORIES - 1);
    if (r < 0)
        return r;
    p->s->memories[p->s->n_memories++] = m;
    p->base = &p->s->memories[p->s->n_memories - 1];
    return 0;
}

static int new_program(struct parse *p, const char *name, unsigned line, struct asym_error *err)
{
    struct asym_sim_program fresh = {.line = line};
    struct asym_scenario *s = p->s;
    int r = set_defaults("program", &fresh);
    if (r >= 0)
        r = new_name("program", name, fresh.name, err);
    for (unsigned i = 0; r >= 0 && i < s->n_programs; i++)
        if (strcmp(s->programs[i].name, fresh.name) == 0)
            r = asym_fail(err, -EINVAL, "program %s exists already", fresh.name);
    if (r < 0)
        return r;
    struct asym_sim_program *grown = reallocarray(s->programs, s->n_programs + 1, sizeof *grown);
    if (!grown)
        return asym_fail(err, -ENOMEM, "no memory");
    s->programs = grown;
    s->programs[s->n_programs++] = fresh;
    p->base = &s->programs[s->n_programs - 1];
    return 0;
}

static int on_section(void *ctx, const char *section, unsigned line, struct asym_error *err)
{
    struct parse *p = ctx;
    const char *name;
    p->kind = kind_of(section, &name);
    p->base = p->s;
    memset(p->seen, 0, sizeof p->seen);
    if (!p->kind) {
        struct asym_error why = {""};
        int r = asym_section_check(p->s->settings, section, &why);
        return r < 0 ? asym_fail(err, r, "%.700s; and machine, scheduler, run, memory NAME, program NAME", why.text)
                     : 0;
    }
    if (strcmp(p->kind, "machine") == 0)
        p->machine_line = line;
    if (strcmp(p->kind, "memory") == 0)
        return new_memory(p, name, err);
    if (strcmp(p->kind, "program") == 0)
        return new_program(p, name, line, err);
    return 0;
}

static int on_key(void *ctx, const char *section, const char *key, const char *value, unsigned line,
                  struct asym_error *err)
{
    struct parse *p = ctx;
    char origin[256];
    snprintf(origin, sizeof origin, "%.200s:%u", p->name, line);
    /* The other keys of asymd.conf's [machine] do not apply here: the scenario gives the speeds. */
    if (!p->kind ||
        (strcmp(p->kind, "machine") == 0 && (strcmp(key, "fast_from") == 0 || strcmp(key, "smt_gain") == 0)))
        return asym_settings_assign(p->s->settings, section, key, value, origin, NULL, err);
    if (strcmp(p->kind, "program") == 0 && strcmp(key, "step") == 0)
        return sim_step_add(p, value, line, err);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        if (strcmp(rows[i].section, p->kind) != 0 || strcmp(rows[i].key, key) != 0)
            continue;
        if (p->seen[i])
            return asym_fail(err, -EINVAL, "%s is given twice, first in line %u", key, p->seen[i]);
        p->seen[i] = line;
        return asym_option_parse(&rows[i], p->kind, p->base, value, err);
    }
    return unknown_key(p->kind, key, err);
}

size_t asym_scenario_threads(const struct asym_scenario *s)
{
    size_t n = 0;
    for (unsigned i = 0; i < s->n_programs; i++)
        n += (size_t)s->programs[i].threads * s->programs[i].count;
    return n;
}

/* One number stands for all types. */
static int spread_smt(struct asym_sim_machine *m)
{
    unsigned n = 0;
    while (n < ASYM_SIM_MAX_TYPES && m->smt[n] > 0)
        n++;
    if (n != 1 && n != m->n_types)
        return -EINVAL;
    for (unsigned k = 0; k < m->n_types; k++) {
        m->smt[k] = n == 1 ? m->smt[0] : m->smt[k];
        m->most_smt = ASYM_MAX(m->most_smt, m->smt[k]);
    }
    return 0;
}

static int check_machine(struct parse *p, struct asym_error *err)
{
    struct asym_sim_machine *m = &p->s->machine;
    unsigned n_speeds = 0;
    if (p->machine_line == 0)
        return asym_fail(err, -EINVAL, "%s: no machine; accepted is [machine] with counts and speeds", p->name);
    while (m->n_types < ASYM_SIM_MAX_TYPES && m->counts[m->n_types] > 0)
        m->n_types++;
    while (n_speeds < ASYM_SIM_MAX_TYPES && m->speeds[n_speeds] > 0)
        n_speeds++;
    if (m->n_types == 0 || m->n_types != n_speeds)
        return asym_fail(err, -EINVAL, "%s:%u: [machine] needs counts and speeds, and as many speeds as counts",
                         p->name, p->machine_line);
    if (spread_smt(m) < 0)
        return asym_fail(err, -EINVAL, "%s:%u: smt needs one number, or as many as counts", p->name, p->machine_line);
    if (asym_scenario_cpus(p->s) > ASYM_MAX_CPUS)
        return asym_fail(err, -EINVAL, "%s:%u: [machine] has %u CPUs; accepted are %d", p->name, p->machine_line,
                         asym_scenario_cpus(p->s), ASYM_MAX_CPUS);
    for (unsigned i = 0; i < p->s->n_memories; i++) {
        struct asym_sim_memory *y = &p->s->memories[i];
        /* Defaults: ipc is the issue width, and apki is mpki, so that a smaller cache adds no misses. */
        y->ipc = y->ipc > 0 ? ASYM_MIN(y->ipc, m->max_ipc) : m->max_ipc;
        y->apki = ASYM_MAX(y->apki, y->mpki);
    }
    return 0;
}

static bool machine_has(const struct asym_scenario *s, const struct asym_mask *cpus)
{
    struct asym_mask all = {0};
    for (unsigned c = 0; c < asym_scenario_cpus(s); c++)
        asym_mask_set(&all, c);
    return asym_mask_within(cpus, &all);
}

static int check_program(const struct parse *p, struct asym_sim_program *program, struct asym_error *err)
{
    const struct asym_scenario *s = p->s;
    if (!machine_has(s, &program->affinity))
        return asym_fail(err, -EINVAL,
                         "%s:%u: program %s: affinity names CPUs that the machine does not have; it has %u", p->name,
                         program->line, program->name, asym_scenario_cpus(s));
    if (s->run.until != ASYM_SIM_UNTIL_TIME && program->passes == UINT_MAX)
        return asym_fail(
            err, -EINVAL,
            "%s:%u: program %s never ends, but the run waits for it; accepted is passes = N, or until = time", p->name,
            program->line, program->name);
    if (s->run.until == ASYM_SIM_UNTIL_DONE && (program->restart || program->rate > 0))
        return asym_fail(err, -EINVAL,
                         "%s:%u: program %s restarts without end, but the run waits for its end; accepted is until = "
                         "time, until = runs, or neither restart nor rate",
                         p->name, program->line, program->name);
    return sim_steps_check(p, program, err);
}

static int check(struct parse *p, struct asym_error *err)
{
    struct asym_scenario *s = p->s;
    int r = check_machine(p, err);
    if (r >= 0 && !machine_has(s, &s->scheduler.housekeeping))
        r = asym_fail(err, -EINVAL, "%s: housekeeping names CPUs that the machine does not have; it has %u", p->name,
                      asym_scenario_cpus(s));
    if (r >= 0 && s->n_programs == 0)
        r = asym_fail(err, -EINVAL, "%s: no program; accepted is at least one [program NAME] with steps", p->name);
    for (unsigned i = 0; r >= 0 && i < s->n_programs; i++) {
        if (asym_scenario_threads(s) > ASYM_SIM_MAX_THREADS)
            return asym_fail(err, -EINVAL, "%s:%u: program %s: %zu threads in all; accepted are %u", p->name,
                             s->programs[i].line, s->programs[i].name, asym_scenario_threads(s), ASYM_SIM_MAX_THREADS);
        r = check_program(p, &s->programs[i], err);
    }
    return r >= 0 ? asym_settings_check(s->settings, err) : r;
}

int asym_scenario_parse(const char *text, size_t len, const char *name, struct asym_scenario **ret_scenario,
                        struct asym_error *err)
{
    static const char *const kinds[] = {"machine", "scheduler", "run"};
    struct asym_scenario *s = calloc(1, sizeof *s);
    if (!s)
        return asym_fail(err, -ENOMEM, "%s: no memory", name);
    struct parse p = {.s = s, .name = name};
    const struct asym_ini ini = {.name = name, .section = on_section, .key = on_key, .ctx = &p};
    s->n_memories = 1;
    int r = asym_settings_new(&s->settings);
    for (size_t i = 0; r >= 0 && i < ASYM_LENGTH(kinds); i++)
        r = set_defaults(kinds[i], s);
    if (r >= 0)
        r = asym_ini_read(&ini, text, len, err);
    if (r >= 0)
        r = check(&p, err);
    if (r < 0) {
        asym_scenario_free(s);
        return r;
    }
    *ret_scenario = s;
    return 0;
}

void asym_scenario_free(struct asym_scenario *s)
{
    if (!s)
        return;
    asym_settings_free(s->settings);
    free(s->programs);
    free(s);
}
