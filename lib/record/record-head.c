/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void asym_record_head_done(struct asym_record_head_data *d)
{
    free(d->settings);
    free(d->notes);
    asym_record_texts_done(&d->texts);
    *d = (struct asym_record_head_data){.settings = NULL};
}

static const char *code_text(struct asym_record_io *io, struct asym_record_head_data *d, const char *text)
{
    const char *copy = asym_record_text(io, &d->texts, text);
    if (!copy)
        asym_record_io_fail(io, "a text is missing");
    /* The texts of the head reach terminals and scenarios. */
    else if (!asym_text_is_printable(copy, strlen(copy)))
        asym_record_io_fail(io, "a text of the head has control characters, or is not UTF-8");
    return copy;
}

void asym_record_head(struct asym_record_io *io, struct asym_record_head_data *d)
{
    struct asym_record_head *h = &d->head;
    h->version = code_text(io, d, h->version);
    h->policy = code_text(io, d, h->policy);
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
        d->settings[i].name = code_text(io, d, from.name);
        d->settings[i].value = code_text(io, d, from.value);
    }
    for (size_t i = 0; i < h->n_notes && asym_record_io_ok(io); i++)
        d->notes[i] = code_text(io, d, io->writing ? h->notes[i] : NULL);
    h->settings = d->settings;
    h->notes = d->notes;
}
