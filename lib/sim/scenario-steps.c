/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps of a script, one a line:
 *
 *     serial WORK [DRAW] [memory=NAME]
 *     parallel WORK [DRAW] [chunk=WORK] [lock=WORK] [io=TIME] [memory=NAME]     without chunk: static, even shares
 *     io TIME [DRAW]
 *     loop TIMES ... end
 *     label P:S WORK [chunk=WORK] [memory=NAME]     Morad 2008, Figure 3: parallel WORK uniform, then serial work by the label
 *
 * WORK is in instructions, at least 1k, with k, M or G; DRAW is uniform (0 to twice the mean) or exponential; P and S of a
 * label are numbers or inf.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/option-value.h"
#include "sim/sim-internal.h"
#include "sim/scenario-internal.h"

enum { MAX_WORDS = 8, WORD = 64 };

/* The shortest step: instructions of work, ns of a wait. */
#define WORK_LEAST 1e3
#define WAIT_LEAST 1e3

/* Parameters that a kind of step accepts. */
enum takes { TAKES_DRAW = 1, TAKES_CHUNK = 2, TAKES_LOCK = 4, TAKES_IO = 8, TAKES_MEMORY = 16 };

static const struct {
    const char *word;
    unsigned takes;
    double least; /* of its work */
} kinds[] = {
    [ASYM_SIM_SERIAL] = {"serial", TAKES_DRAW | TAKES_MEMORY, WORK_LEAST},
    [ASYM_SIM_PARALLEL] = {"parallel", TAKES_DRAW | TAKES_CHUNK | TAKES_LOCK | TAKES_IO | TAKES_MEMORY, WORK_LEAST},
    [ASYM_SIM_IO] = {"io", TAKES_DRAW, WAIT_LEAST},
    [ASYM_SIM_LOOP] = {"loop", 0, 0},
    [ASYM_SIM_END] = {"end", 0, 0},
};

/* Parses a number with an optional k, M, G or T. */
static int parse_work(const char *text, double *ret)
{
    static const struct {
        char letter;
        double factor;
    } units[] = {{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
    size_t n = strlen(text);
    double factor = 1;
    for (size_t i = 0; n > 0 && i < ASYM_LENGTH(units); i++)
        if (text[n - 1] == units[i].letter)
            factor = units[i].factor;
    if (factor > 1)
        n--;
    int r = asym_parse_number(text, n, ret);
    *ret *= r == 0 ? factor : 1;
    return r == 0 && *ret > 0 && *ret <= 1e18 ? 0 : -EINVAL;
}

static unsigned split(const char *text, char words[MAX_WORDS][WORD])
{
    unsigned n = 0;
    while (*text && n < MAX_WORDS) {
        const size_t len = strcspn(text, " \t");
        if (len > 0)
            snprintf(words[n++], WORD, "%.*s", (int)ASYM_MIN(len, WORD - 1), text);
        text += len;
        text += strspn(text, " \t");
    }
    return *text ? MAX_WORDS + 1 : n;
}

static int find_memory(const struct asym_scenario *s, const char *name, unsigned *ret)
{
    for (unsigned i = 1; i < s->n_memories; i++) {
        if (strcmp(s->memories[i].name, name) == 0) {
            *ret = i;
            return 0;
        }
    }
    return -ENOENT;
}

static int parse_word(const struct asym_scenario *s, struct asym_sim_step *step, unsigned takes, const char *word)
{
    static const struct {
        const char *prefix;
        unsigned takes;
        size_t offset;
    } figures[] = {
        {"chunk=", TAKES_CHUNK, offsetof(struct asym_sim_step, chunk)},
        {"lock=", TAKES_LOCK, offsetof(struct asym_sim_step, critical)},
        {"io=", TAKES_IO, offsetof(struct asym_sim_step, pause)},
    };
    if (takes & TAKES_DRAW && (strcmp(word, "uniform") == 0 || strcmp(word, "exponential") == 0)) {
        step->draw = word[0] == 'u' ? ASYM_SIM_UNIFORM : ASYM_SIM_EXPONENTIAL;
        return 0;
    }
    if (takes & TAKES_MEMORY && strncmp(word, "memory=", 7) == 0)
        return find_memory(s, word + 7, &step->memory);
    for (size_t i = 0; i < ASYM_LENGTH(figures); i++) {
        const size_t n = strlen(figures[i].prefix);
        double *field = (double *)(void *)((char *)step + figures[i].offset);
        if (takes & figures[i].takes && strncmp(word, figures[i].prefix, n) == 0)
            return figures[i].takes == TAKES_IO ? asym_option_parse_ns(word + n, strlen(word + n), field)
                                                : parse_work(word + n, field);
    }
    return -EINVAL;
}

static int refuse(const char *word, int error, struct asym_error *err)
{
    char shown[128];
    asym_text_escape(word, strlen(word), shown, sizeof shown);
    if (error == -ENOENT)
        return asym_fail(err, -EINVAL, "step: %s: no such memory above; accepted is [memory \"NAME\"] before it",
                         shown);
    return asym_fail(
        err, -EINVAL,
        "step: '%s' is not accepted here; accepted are serial WORK, parallel WORK [chunk=WORK] [lock=WORK] "
        "[io=TIME], io TIME, loop TIMES, end, label P:S WORK, with uniform or exponential and memory=NAME; "
        "WORK and TIMES are above 0 (k, M, G), TIME has a unit",
        shown);
}

static int push(struct asym_sim_program *program, const struct asym_sim_step *step, struct asym_error *err)
{
    if (program->n_steps == ASYM_SIM_MAX_STEPS)
        return asym_fail(err, -EINVAL, "more than %d steps", ASYM_SIM_MAX_STEPS);
    program->steps[program->n_steps++] = *step;
    return 0;
}

static int parse_ratio(const char *text, size_t len, double *ret)
{
    if (len == 3 && strncmp(text, "inf", 3) == 0) {
        *ret = (double)INFINITY;
        return 0;
    }
    int r = asym_parse_number(text, len, ret);
    return r == 0 && *ret > 0 ? 0 : -EINVAL;
}

/* follow is per CPU here; sim_steps_check divides it by the number of CPUs, which is known only at the end of the file. */
static int add_label(struct parse *p, char words[MAX_WORDS][WORD], unsigned n, unsigned line, struct asym_error *err)
{
    const char *colon = n >= 3 ? strchr(words[1], ':') : NULL;
    struct asym_sim_step step = {.kind = ASYM_SIM_PARALLEL, .draw = ASYM_SIM_UNIFORM, .line = line};
    double parallel, serial;
    if (!colon || parse_ratio(words[1], (size_t)(colon - words[1]), &parallel) < 0 ||
        parse_ratio(colon + 1, strlen(colon + 1), &serial) < 0 || (isinf(parallel) && isinf(serial)) ||
        parse_work(words[2], &step.work) < 0)
        return refuse(n > 1 ? words[1] : "label", -EINVAL, err);
    for (unsigned i = 3; i < n; i++) {
        int r = parse_word(p->s, &step, TAKES_CHUNK | TAKES_MEMORY, words[i]);
        if (r < 0)
            return refuse(words[i], r, err);
    }
    struct asym_sim_step rest = step;
    rest.kind = ASYM_SIM_SERIAL;
    rest.chunk = 0;
    rest.follow = isinf(serial) ? 0 : serial / parallel;
    int r = isinf(serial) ? 0 : push(p->base, &step, err);
    return r < 0 || isinf(parallel) ? r : push(p->base, &rest, err);
}

int sim_step_add(struct parse *p, const char *text, unsigned line, struct asym_error *err)
{
    char words[MAX_WORDS][WORD];
    struct asym_sim_step step = {.line = line};
    const unsigned n = split(text, words);
    unsigned k = 0;
    if (n == 0 || n > MAX_WORDS)
        return refuse(text, -EINVAL, err);
    if (strcmp(words[0], "label") == 0)
        return add_label(p, words, n, line, err);
    while (k < ASYM_LENGTH(kinds) && strcmp(kinds[k].word, words[0]) != 0)
        k++;
    const bool bare = k == ASYM_SIM_END;
    if (k == ASYM_LENGTH(kinds) || (n < 2 && !bare))
        return refuse(words[0], -EINVAL, err);
    step.kind = (enum asym_sim_step_kind)k;
    int r = bare               ? 0
            : k == ASYM_SIM_IO ? asym_option_parse_ns(words[1], strlen(words[1]), &step.work)
                               : parse_work(words[1], &step.work);
    if (r < 0 || (!bare && !(step.work > 0)) || (step.kind == ASYM_SIM_LOOP && step.work > 1e9))
        return refuse(words[1], -EINVAL, err);
    for (unsigned i = bare ? 1 : 2; i < n; i++) {
        r = parse_word(p->s, &step, kinds[k].takes, words[i]);
        if (r < 0)
            return refuse(words[i], r, err);
    }
    return push(p->base, &step, err);
}

static int fail_step(const struct parse *p, const struct asym_sim_step *step, const char *what, struct asym_error *err)
{
    return asym_fail(err, -EINVAL, "%s:%u: step: %s", p->name, step->line, what);
}

/*
 * Each piece of work and each wait is an event: with chunks of one instruction a CPU makes a billion events a second
 * (measured: a scenario of one second had not ended after twenty).
 */
static bool is_too_short(const struct asym_sim_step *step)
{
    return step->work < kinds[step->kind].least || (step->chunk > 0 && step->chunk < WORK_LEAST);
}

int sim_steps_check(const struct parse *p, struct asym_sim_program *program, struct asym_error *err)
{
    unsigned open[SIM_MAX_DEPTH], depth = 0, last_timed = UINT_MAX;
    for (unsigned i = 0; i < program->n_steps; i++) {
        struct asym_sim_step *step = &program->steps[i];
        if (is_too_short(step))
            return fail_step(p, step, "work and chunks are at least 1k instructions, and waits at least 1us", err);
        if (step->kind == ASYM_SIM_LOOP) {
            if (depth == SIM_MAX_DEPTH)
                return fail_step(p, step, "loops are nested deeper than 4", err);
            open[depth++] = i;
        } else if (step->kind == ASYM_SIM_END) {
            if (depth == 0)
                return fail_step(p, step, "end without a loop", err);
            step->partner = open[--depth];
            if (last_timed == UINT_MAX || last_timed < step->partner)
                return fail_step(p, &program->steps[step->partner], "a loop that takes no time would never end", err);
        } else {
            last_timed = i;
        }
        /* Morad 2008, eq. 1: parallel work counts per CPU */
        if (step->follow > 0)
            step->follow /= asym_scenario_cpus(p->s);
    }
    if (depth > 0)
        return fail_step(p, &program->steps[open[depth - 1]], "a loop without an end", err);
    if (last_timed == UINT_MAX)
        return asym_fail(err, -EINVAL, "%s:%u: program %s has no step that takes time", p->name, program->line,
                         program->name);
    return 0;
}
