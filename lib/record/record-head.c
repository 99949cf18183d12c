/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mask.h"
#include "base/text.h"

/* Sources of speeds that a record may name. */
#define MAX_ORIGINS 64
#define NAME_SIZE   16

/* The record has the names of the origins, as a number may mean another source in another version of asymd. */
struct origins {
    size_t n;
    uint8_t of[MAX_ORIGINS]; /* enum asym_origin by the number in the record; ASYM_N_ORIGINS: no such name here */
};
_Static_assert(ASYM_N_ORIGINS <= MAX_ORIGINS, "a record can name all origins");

static uint8_t find_origin(const char *name)
{
    uint8_t origin = 0;
    while (origin < ASYM_N_ORIGINS && strcmp(asym_origin_name((enum asym_origin)origin), name) != 0)
        origin++;
    return origin;
}

static void code_origins(struct asym_record_io *io, struct origins *o)
{
    o->n = asym_record_count(io, ASYM_N_ORIGINS, MAX_ORIGINS);
    for (size_t i = 0; i < o->n; i++) {
        char name[NAME_SIZE] = "";
        if (io->writing)
            snprintf(name, sizeof name, "%s", asym_origin_name((enum asym_origin)i));
        asym_record_bytes(io, name, sizeof name);
        name[sizeof name - 1] = '\0';
        o->of[i] = find_origin(name);
    }
    if (o->n == 0)
        asym_record_io_fail(io, "the machine has no list of speed sources");
}

static void code_origin(struct asym_record_io *io, const struct origins *o, struct asym_cpu *cpu)
{
    const uint8_t origin = o->of[asym_record_u64(io, cpu->origin, o->n - 1)];
    if (origin >= ASYM_N_ORIGINS)
        asym_record_io_fail(io, "a speed from a source that this version of asymd does not know");
    else
        cpu->origin = origin;
}

/* The CPU before: most CPUs differ from it in little. */
static void code_cpu(struct asym_record_io *io, const struct origins *origins, struct asym_cpu *cpu,
                     const struct asym_cpu *last)
{
    struct {
        int16_t *value;
        int16_t last;
    } groups[] = {{&cpu->kind, last->kind},
                  {&cpu->core, last->core},
                  {&cpu->llc, last->llc},
                  {&cpu->node, last->node},
                  {&cpu->freq_domain, last->freq_domain}};
    for (unsigned i = 0; i < sizeof groups / sizeof groups[0]; i++)
        *groups[i].value = (int16_t)asym_record_delta(io, *groups[i].value, groups[i].last, -1,
                                                      INT16_MAX - ASYM_MAX_CPUS);
    cpu->speed = asym_record_double(io, cpu->speed);
    code_origin(io, origins, cpu);
    cpu->favour = (uint32_t)asym_record_delta(io, cpu->favour, last->favour, 0, UINT32_MAX);
    cpu->l3_kib = (uint32_t)asym_record_delta(io, cpu->l3_kib, last->l3_kib, 0, UINT32_MAX);
}

void asym_record_machine(struct asym_record_io *io, struct asym_machine *m)
{
    static const struct asym_cpu first;
    struct origins origins = {0};
    if (!io->writing)
        *m = (struct asym_machine){0};
    m->generation = asym_record_u64(io, m->generation, UINT64_MAX);
    m->n_cpus = (unsigned)asym_record_u64(io, m->n_cpus, ASYM_MAX_CPUS);
    m->fast_from = asym_record_double(io, m->fast_from);
    m->smt_gain = asym_record_double(io, m->smt_gain);
    asym_record_mask(io, &m->online);
    asym_record_mask(io, &m->usable);
    asym_record_mask(io, &m->isolated);
    asym_record_mask(io, &m->held);
    for (unsigned k = 0; k < ASYM_MAX_KINDS; k++) {
        asym_record_bytes(io, m->kind_names[k], sizeof m->kind_names[k]);
        m->kind_names[k][sizeof m->kind_names[k] - 1] = '\0';
    }
    code_origins(io, &origins);
    for (unsigned c = 0; c < m->n_cpus && asym_record_io_ok(io); c++)
        code_cpu(io, &origins, &m->cpus[c], c > 0 ? &m->cpus[c - 1] : &first);
    if (io->writing || !asym_record_io_ok(io))
        return;
    if (!asym_mask_within(&m->usable, &m->online) || asym_machine_finish(m) < 0)
        asym_record_io_fail(io, "the machine is impossible");
}

void asym_record_head_done(struct asym_record_head_data *d)
{
    free(d->settings);
    free(d->notes);
    *d = (struct asym_record_head_data){.settings = NULL};
}

static const char *code_text(struct asym_record_io *io, const char *text)
{
    text = asym_record_text(io, text);
    if (!text)
        asym_record_io_fail(io, "a text is missing");
    /* The texts of the head reach terminals and scenarios. */
    else if (!asym_text_is_printable(text, strlen(text)))
        asym_record_io_fail(io, "a text of the head has control characters, or is not UTF-8");
    return text;
}

void asym_record_head(struct asym_record_io *io, struct asym_record_head_data *d)
{
    struct asym_record_head *h = &d->head;
    h->version = code_text(io, h->version);
    h->policy = code_text(io, h->policy);
    h->keep_nice = asym_record_bool(io, h->keep_nice);
    h->began = asym_record_u64(io, h->began, UINT64_MAX);
    h->interval = asym_record_u64(io, h->interval, UINT64_MAX);
    h->n_settings = asym_record_count(io, h->n_settings, ASYM_RECORD_MAX_SETTINGS);
    h->n_notes = asym_record_count(io, h->n_notes, ASYM_RECORD_MAX_NOTES);
    d->settings = calloc(h->n_settings + 1, sizeof *d->settings);
    d->notes = calloc(h->n_notes + 1, sizeof *d->notes);
    if (!d->settings || !d->notes) {
        io->error = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < h->n_settings && asym_record_io_ok(io); i++) {
        const struct asym_record_setting from = io->writing ? h->settings[i] : (struct asym_record_setting){NULL, NULL};
        d->settings[i].name = code_text(io, from.name);
        d->settings[i].value = code_text(io, from.value);
    }
    for (size_t i = 0; i < h->n_notes && asym_record_io_ok(io); i++)
        d->notes[i] = code_text(io, io->writing ? h->notes[i] : NULL);
    h->settings = d->settings;
    h->notes = d->notes;
}
