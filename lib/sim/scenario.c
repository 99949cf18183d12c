/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scenario files: sections and keys are rows; steps have words of their own (steps.c). */
#include "sim/scenario.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "settings/ini.h"
#include "settings/nearest.h"
#include "settings/rows.h"
#include "sim/scenario-internal.h"

/* How a key's text becomes its field. */
enum form {
    FORM_COUNT,
    FORM_NUMBER,
    FORM_NS,
    FORM_WORD,
    FORM_BOOL,
    FORM_COUNTS,
    FORM_SPEEDS,
    FORM_CPUS,
    FORM_NICE,
    FORM_PASSES,
    FORM_SPIN
};

struct row {
    const char *section, *key;
    enum form form;
    size_t offset;
    double min, max;
    const char *const *words;
    const char *accepted; /* where range or words do not say it */
};

static const char *const orders[] = {"blocked", "interleaved", NULL};
static const char *const fetches[] = {"even", "priority", NULL};
static const char *const placements[] = {"idlest", "random", NULL};
static const char *const untils[] = {"time", "done", "runs", NULL};

#define M(field)       offsetof(struct asym_scenario, machine.field)
#define S(field)       offsetof(struct asym_scenario, scheduler.field)
#define R(field)       offsetof(struct asym_scenario, run.field)
#define Y(field)       offsetof(struct asym_sim_memory, field)
#define P(field)       offsetof(struct asym_sim_program, field)

#define LIST_OF_COUNTS "numbers of cores from 1 to 1024, one for each speed, such as 7,1"
#define LIST_OF_SPEEDS "speeds above 0 and up to 1000, one for each count, such as 1,2"

/* Times have a unit; the largest that a scenario may want is a day. */
#define DAY 86400e9

static const struct row rows[] = {
    {"machine", "counts", FORM_COUNTS, M(counts), 1, ASYM_MAX_CPUS, NULL, LIST_OF_COUNTS},
    {"machine", "speeds", FORM_SPEEDS, M(speeds), 0, 1000, NULL, LIST_OF_SPEEDS},
    {"machine", "order", FORM_WORD, M(order), 0, 0, orders, NULL},
    {"machine", "smt", FORM_COUNT, M(smt), 1, 8, NULL, NULL},
    {"machine", "llc", FORM_COUNT, M(llc), 0, ASYM_MAX_CPUS, NULL, NULL},
    {"machine", "node", FORM_COUNT, M(node), 0, ASYM_MAX_CPUS, NULL, NULL},
    {"machine", "frequency", FORM_NUMBER, M(frequency), 0.001, 100, NULL, NULL},
    {"machine", "max_ipc", FORM_NUMBER, M(max_ipc), 0.1, 64, NULL, NULL},
    {"machine", "smt_loss", FORM_NUMBER, M(smt_loss), 0, 0.9, NULL, NULL},
    {"machine", "fetch", FORM_WORD, M(fetch), 0, 0, fetches, NULL},
    {"machine", "miss", FORM_NS, M(miss_ns), 0, 1e6, NULL, NULL},
    {"machine", "remote", FORM_NUMBER, M(remote), 1, 100, NULL, NULL},
    {"machine", "llc_kib", FORM_COUNT, M(llc_kib), 0, 1e9, NULL, NULL},
    {"scheduler", "tick", FORM_NS, S(tick), 1e5, 1e9, NULL, NULL},
    {"scheduler", "slice", FORM_NS, S(slice), 1e5, 1e10, NULL, NULL},
    {"scheduler", "wake_margin", FORM_NS, S(wake_margin), 0, 1e10, NULL, NULL},
    {"scheduler", "balance", FORM_NS, S(balance), 1e6, 1e11, NULL, NULL},
    {"scheduler", "switch_cost", FORM_NS, S(switch_cost), 0, 1e8, NULL, NULL},
    {"scheduler", "tick_cost", FORM_NS, S(tick_cost), 0, 5e4, NULL, NULL},
    {"scheduler", "migrate_llc", FORM_NS, S(migrate_llc), 0, 1e9, NULL, NULL},
    {"scheduler", "migrate_across", FORM_NS, S(migrate_across), 0, 1e9, NULL, NULL},
    {"scheduler", "migrate_node", FORM_NS, S(migrate_node), 0, 1e9, NULL, NULL},
    {"scheduler", "refill", FORM_NUMBER, S(refill), 0, 1e6, NULL, NULL},
    {"scheduler", "placement", FORM_WORD, S(placement), 0, 0, placements, NULL},
    {"run", "duration", FORM_NS, R(duration), 1e6, DAY, NULL, NULL},
    {"run", "until", FORM_WORD, R(until), 0, 0, untils, NULL},
    {"run", "runs", FORM_COUNT, R(runs), 1, 1e6, NULL, NULL},
    {"run", "alone", FORM_BOOL, R(alone), 0, 0, NULL, "yes or no"},
    {"memory", "ipc", FORM_NUMBER, Y(ipc), 0.01, 64, NULL, NULL},
    {"memory", "mpki", FORM_NUMBER, Y(mpki), 0, 1000, NULL, NULL},
    {"memory", "apki", FORM_NUMBER, Y(apki), 0, 1000, NULL, NULL},
    {"memory", "working_set", FORM_NUMBER, Y(working_set), 0, 1e9, NULL, NULL},
    {"program", "threads", FORM_COUNT, P(threads), 1, ASYM_SIM_MAX_THREADS, NULL, NULL},
    {"program", "count", FORM_COUNT, P(count), 1, ASYM_SIM_MAX_THREADS, NULL, NULL},
    {"program", "nice", FORM_NICE, P(nice_low), -20, 19, NULL, "a nice value from -20 to 19, or a range such as 0..19"},
    {"program", "affinity", FORM_CPUS, P(affinity), 0, 0, NULL, "a CPU list such as 0-3,8"},
    {"program", "start", FORM_NS, P(start), 0, DAY, NULL, NULL},
    {"program", "rate", FORM_NUMBER, P(rate), 0, 1e6, NULL, NULL},
    {"program", "passes", FORM_PASSES, P(passes), 1, 1e9, NULL, "a whole number from 1 to 1000000000, or forever"},
    {"program", "restart", FORM_BOOL, P(restart), 0, 0, NULL, "yes or no"},
    {"program", "spin", FORM_SPIN, P(spin), 0, DAY, NULL, "a time with unit (us, ms, s), or forever"},
    {"program", "rtx", FORM_BOOL, P(rtx), 0, 0, NULL, "yes or no"},
};

_Static_assert(ASYM_LENGTH(rows) <= sizeof(((struct parse *)NULL)->seen) / sizeof(unsigned), "a line for each");

static const char *accepted(const struct row *row, char *buf, size_t size)
{
    if (row->accepted)
        snprintf(buf, size, "%s", row->accepted);
    else if (row->form == FORM_WORD)
        snprintf(buf, size, "%s or %s%s%s", row->words[0], row->words[1], row->words[2] ? " or " : "",
                 row->words[2] ? row->words[2] : "");
    else if (row->form == FORM_NS)
        snprintf(buf, size, "a time with unit (ns, us, ms, s) from %gus to %gs", row->min / 1e3, row->max / 1e9);
    else
        snprintf(buf, size, "a%s number from %g to %g", row->form == FORM_COUNT ? " whole" : "", row->min, row->max);
    return buf;
}

/* asym_parse_duration, and nanoseconds, which only a model can mean. */
int sim_parse_ns(const char *text, double *ret)
{
    asym_usec usec;
    const size_t n = strlen(text);
    if (n > 2 && strcmp(text + n - 2, "ns") == 0)
        return asym_parse_number(text, n - 2, ret);
    int r = asym_parse_duration(text, n, &usec);
    if (r == 0)
        *ret = (double)usec * 1e3;
    return r;
}

static int parse_list(const struct row *row, struct parse *p, const char *value)
{
    struct asym_sim_machine *m = &p->s->machine;
    unsigned n = 0;
    for (const char *at = value; at; n++) {
        const char *comma = strchr(at, ',');
        const size_t len = comma ? (size_t)(comma - at) : strlen(at);
        double x;
        if (n == ASYM_SIM_MAX_TYPES || asym_parse_number(at, len, &x) < 0 || x < row->min || x > row->max || !(x > 0))
            return -EINVAL;
        if (row->form == FORM_SPEEDS)
            m->speeds[n] = x;
        else if (x > floor(x))
            return -EINVAL;
        else
            m->counts[n] = (unsigned)x;
        at = comma ? comma + 1 : NULL;
    }
    *(row->form == FORM_SPEEDS ? &p->n_speeds : &p->n_counts) = n;
    return 0;
}

static int parse_nice(struct asym_sim_program *program, const char *value)
{
    const char *dots = strstr(value, "..");
    int64_t low, high;
    if (asym_parse_i64(value, dots ? (size_t)(dots - value) : strlen(value), &low) < 0)
        return -EINVAL;
    high = low;
    if (dots && asym_parse_i64(dots + 2, strlen(dots + 2), &high) < 0)
        return -EINVAL;
    if (low < -20 || high > 19 || high < low)
        return -EINVAL;
    program->nice_low = (int)low;
    program->nice_high = (int)high;
    return 0;
}

static int parse_number(const struct row *row, void *field, const char *value)
{
    double x;
    int r = row->form == FORM_NS || row->form == FORM_SPIN ? sim_parse_ns(value, &x)
                                                           : asym_parse_number(value, strlen(value), &x);
    if (r < 0 || x < row->min || x > row->max)
        return -EINVAL;
    if (row->form == FORM_NUMBER) {
        *(double *)field = x;
    } else if (row->form == FORM_NS || row->form == FORM_SPIN) {
        *(uint64_t *)field = (uint64_t)x;
    } else {
        if (x > floor(x))
            return -EINVAL;
        *(unsigned *)field = (unsigned)x;
    }
    return 0;
}

static int parse_value(const struct row *row, struct parse *p, void *base, const char *value)
{
    void *field = (char *)base + row->offset;
    switch (row->form) {
    case FORM_COUNTS:
    case FORM_SPEEDS:
        return parse_list(row, p, value);
    case FORM_BOOL:
        return asym_parse_bool(value, strlen(value), field);
    case FORM_CPUS:
        return asym_mask_parse_list(value, strlen(value), field);
    case FORM_NICE:
        return parse_nice(base, value);
    case FORM_WORD:
        for (int i = 0; row->words[i]; i++) {
            if (strcmp(row->words[i], value) == 0) {
                *(int *)field = i;
                return 0;
            }
        }
        return -EINVAL;
    case FORM_PASSES:
    case FORM_SPIN:
        if (strcmp(value, "forever") == 0) {
            if (row->form == FORM_SPIN)
                *(uint64_t *)field = UINT64_MAX;
            else
                *(unsigned *)field = UINT_MAX;
            return 0;
        }
        break;
    case FORM_COUNT:
    case FORM_NUMBER:
    case FORM_NS:
        break;
    }
    return parse_number(row, field, value);
}

static int unknown_key(const char *section, const char *key, struct asym_error *err)
{
    struct asym_nearest near = {.wanted = key};
    char hint[96], shown[96], list[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        if (strcmp(rows[i].section, section) != 0)
            continue;
        asym_nearest_consider(&near, rows[i].key);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", rows[i].key);
    }
    const bool program = strcmp(section, "program") == 0;
    if (program)
        asym_nearest_consider(&near, "step");
    return asym_fail(err, -EINVAL, "unknown key '%s' in [%s]%s; accepted here are %s%s",
                     asym_text_escape(key, strlen(key), shown, sizeof shown), section,
                     asym_nearest_hint(&near, hint, sizeof hint), list, program ? ", step" : "");
}

/* What is ours of a section's name: "program a" is section program; NULL: it is one of asymd.conf. */
static const char *kind_of(const char *section, const char **ret_name)
{
    static const char *const kinds[] = {"machine", "scheduler", "run", "memory", "program"};
    *ret_name = "";
    for (size_t i = 0; i < ASYM_LENGTH(kinds); i++) {
        const size_t n = strlen(kinds[i]);
        if (strcmp(section, kinds[i]) == 0)
            return kinds[i];
        if (i >= 3 && strncmp(section, kinds[i], n) == 0 && (section[n] == ' ' || section[n] == '\t')) {
            *ret_name = section + n + strspn(section + n, " \t");
            return kinds[i];
        }
    }
    return NULL;
}

static int new_name(const char *kind, const char *name, char buf[ASYM_SIM_NAME], struct asym_error *err)
{
    size_t n = strlen(name);
    if (n >= 2 && name[0] == '"' && name[n - 1] == '"') {
        name++;
        n -= 2;
    }
    if (n == 0 || n >= ASYM_SIM_NAME || memchr(name, '"', n))
        return asym_fail(err, -EINVAL, "a %s needs a name of at most %d bytes; accepted is [%s \"NAME\"]", kind,
                         ASYM_SIM_NAME - 1, kind);
    snprintf(buf, ASYM_SIM_NAME, "%.*s", (int)n, name);
    return 0;
}

static int new_memory(struct parse *p, const char *name, struct asym_error *err)
{
    /* Unless they are given: as wide as the machine, and nothing more is lost than misses anyhow. */
    struct asym_sim_memory m = {.ipc = 0, .apki = 0};
    int r = new_name("memory", name, m.name, err);
    for (unsigned i = 0; r >= 0 && i < p->s->n_memories; i++)
        if (strcmp(p->s->memories[i].name, m.name) == 0)
            r = asym_fail(err, -EINVAL, "there is a memory %s already", m.name);
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
    struct asym_sim_program fresh = {.threads = 1, .count = 1, .passes = UINT_MAX, .line = line};
    struct asym_scenario *s = p->s;
    int r = new_name("program", name, fresh.name, err);
    for (unsigned i = 0; r >= 0 && i < s->n_programs; i++)
        if (strcmp(s->programs[i].name, fresh.name) == 0)
            r = asym_fail(err, -EINVAL, "there is a program %s already", fresh.name);
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
    char what[200], shown[128], origin[256];
    snprintf(origin, sizeof origin, "%.200s:%u", p->name, line);
    if (!p->kind)
        return asym_settings_assign(p->s->settings, section, key, value, origin, NULL, err);
    /* Of asymd's own [machine] this is the one key that means something to a machine whose speeds are given. */
    if (strcmp(p->kind, "machine") == 0 && strcmp(key, "fast_from") == 0)
        return asym_settings_assign(p->s->settings, section, key, value, origin, NULL, err);
    if (strcmp(p->kind, "program") == 0 && strcmp(key, "step") == 0)
        return sim_step_add(p, value, line, err);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        if (strcmp(rows[i].section, p->kind) != 0 || strcmp(rows[i].key, key) != 0)
            continue;
        if (p->seen[i])
            return asym_fail(err, -EINVAL, "%s is given twice, first in line %u", key, p->seen[i]);
        p->seen[i] = line;
        if (parse_value(&rows[i], p, p->base, value) == 0)
            return 0;
        return asym_fail(err, -EINVAL, "%s.%s: '%s' is not accepted; accepted is %s", p->kind, key,
                         asym_text_escape(value, strlen(value), shown, sizeof shown),
                         accepted(&rows[i], what, sizeof what));
    }
    return unknown_key(p->kind, key, err);
}

static void set_defaults(struct asym_scenario *s)
{
    /* Where the figures come from: docs/simulator.md. */
    s->machine = (struct asym_sim_machine){
        .smt = 1, .frequency = 1, .max_ipc = 1, .smt_loss = 0.05, .miss_ns = 100, .remote = 1.5};
    s->scheduler = (struct asym_sim_scheduler){
        .tick = 4000000,
        .slice = 3000000,
        .wake_margin = 1000000,
        .balance = 64000000,
        .switch_cost = 2000,
        .tick_cost = 1000,
        .migrate_llc = 5000,
        .migrate_across = 20000,
        .migrate_node = 40000,
        .refill = 100,
    };
    s->run = (struct asym_sim_run){.duration = UINT64_C(10000000000), .runs = 3, .alone = true};
    s->n_memories = 1;
}

size_t asym_scenario_threads(const struct asym_scenario *s)
{
    size_t n = 0;
    for (unsigned i = 0; i < s->n_programs; i++)
        n += (size_t)s->programs[i].threads * s->programs[i].count;
    return n;
}

unsigned asym_scenario_cpus(const struct asym_scenario *s)
{
    unsigned n = 0;
    for (unsigned k = 0; k < s->machine.n_types; k++)
        n += s->machine.counts[k];
    return n * s->machine.smt;
}

static int check_machine(struct parse *p, struct asym_error *err)
{
    struct asym_sim_machine *m = &p->s->machine;
    if (p->machine_line == 0)
        return asym_fail(err, -EINVAL, "%s: no machine; accepted is [machine] with counts and speeds", p->name);
    if (p->n_counts == 0 || p->n_counts != p->n_speeds)
        return asym_fail(err, -EINVAL, "%s:%u: [machine] needs counts and speeds, as many of the one as of the other",
                         p->name, p->machine_line);
    m->n_types = p->n_counts;
    if (asym_scenario_cpus(p->s) > ASYM_MAX_CPUS)
        return asym_fail(err, -EINVAL, "%s:%u: [machine] has %u CPUs; accepted are %d", p->name, p->machine_line,
                         asym_scenario_cpus(p->s), ASYM_MAX_CPUS);
    for (unsigned i = 0; i < p->s->n_memories; i++) {
        struct asym_sim_memory *y = &p->s->memories[i];
        y->ipc = y->ipc > 0 ? ASYM_MIN(y->ipc, m->max_ipc) : m->max_ipc;
        y->apki = ASYM_MAX(y->apki, y->mpki);
    }
    return 0;
}

static int check_program(const struct parse *p, struct asym_sim_program *program, struct asym_error *err)
{
    const struct asym_scenario *s = p->s;
    struct asym_mask all = {0};
    for (unsigned c = 0; c < asym_scenario_cpus(s); c++)
        asym_mask_set(&all, c);
    if (!asym_mask_within(&program->affinity, &all))
        return asym_fail(err, -EINVAL, "%s:%u: program %s: affinity names CPUs the machine has not; it has %u", p->name,
                         program->line, program->name, asym_scenario_cpus(s));
    if (s->run.until != ASYM_SIM_UNTIL_TIME && program->passes == UINT_MAX)
        return asym_fail(
            err, -EINVAL,
            "%s:%u: program %s never ends, but the run waits for it; accepted is passes = N, or until = time", p->name,
            program->line, program->name);
    if (s->run.until == ASYM_SIM_UNTIL_DONE && (program->restart || program->rate > 0))
        return asym_fail(err, -EINVAL,
                         "%s:%u: program %s begins anew for ever, but the run waits for its end; accepted is until = "
                         "time, until = runs, or neither restart nor rate",
                         p->name, program->line, program->name);
    return sim_steps_check(p, program, err);
}

static int check(struct parse *p, struct asym_error *err)
{
    struct asym_scenario *s = p->s;
    int r = check_machine(p, err);
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
    struct asym_scenario *s = calloc(1, sizeof *s);
    if (!s)
        return asym_fail(err, -ENOMEM, "%s: no memory", name);
    struct parse p = {.s = s, .name = name};
    const struct asym_ini ini = {.name = name, .section = on_section, .key = on_key, .ctx = &p};
    set_defaults(s);
    int r = asym_settings_new(&s->settings);
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
