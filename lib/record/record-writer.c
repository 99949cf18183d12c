/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* The digest of a plan. */

static void add_to_digest(uint64_t *digest, uint64_t value)
{
    /* The product spreads a value over the high bits, and the rotation brings these down. */
    *digest = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *digest = *digest << 29 | *digest >> 35;
}

static void add_number(uint64_t *digest, double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    add_to_digest(digest, word);
}

/* Adds a reason with its figures, which mean nothing without one. */
static void add_reason(uint64_t *digest, const struct asym_reason *reason, const double figure[2])
{
    const char *text = reason ? reason->text : "";
    const size_t len = strlen(text);
    add_to_digest(digest, len);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        for (size_t k = i; k < len && k < i + 8; k++)
            word = word << 8 | (unsigned char)text[k];
        add_to_digest(digest, word);
    }
    for (unsigned i = 0; reason && i < 2; i++)
        add_number(digest, figure[i]);
}

static void add_mask(uint64_t *digest, const struct asym_mask *mask)
{
    for (unsigned i = 0; i < sizeof mask->w / sizeof mask->w[0]; i++)
        add_to_digest(digest, mask->w[i]);
}

static void add_app(uint64_t *digest, const struct asym_plan_app *app)
{
    add_to_digest(digest, (uint64_t)app->phase << 8 | app->class);
    add_number(digest, app->runnable);
    add_reason(digest, app->excluded, app->figure);
}

static void add_task(uint64_t *digest, const struct asym_plan_task *task)
{
    add_to_digest(digest, (uint64_t)(uint32_t)task->target << 32 | (uint64_t)(uint8_t)task->nice << 16 |
                              (uint64_t)task->class << 8 | (uint64_t)task->counted << 2 |
                              (uint64_t)task->exclusive << 1 | task->moves);
    add_reason(digest, task->reason, task->figure);
    add_mask(digest, task->mask);
}

static void add_action(uint64_t *digest, const struct asym_action *action)
{
    add_to_digest(digest, (uint64_t)(uint32_t)action->id.tgid << 32 | (uint32_t)action->id.tid);
    add_to_digest(digest, action->id.start);
    add_to_digest(digest, (uint64_t)action->transit_cpu << 32 | (uint64_t)(uint8_t)action->expect_nice << 24 |
                              (uint64_t)(uint8_t)action->nice << 16 | (uint64_t)action->kind << 8 |
                              action->full_cpuset);
    add_reason(digest, action->reason, action->figure);
    add_mask(digest, &action->expect);
    add_mask(digest, &action->mask);
}

uint64_t asym_plan_digest(const struct asym_plan *plan, const struct asym_action *actions, size_t n_actions)
{
    uint64_t digest = UINT64_C(14695981039346656037);
    add_to_digest(&digest, plan->n_apps);
    for (size_t i = 0; i < plan->n_apps; i++)
        add_app(&digest, &plan->apps[i]);
    add_to_digest(&digest, plan->n_tasks);
    for (size_t i = 0; i < plan->n_tasks; i++)
        add_task(&digest, &plan->tasks[i]);
    add_to_digest(&digest, n_actions);
    for (size_t i = 0; i < n_actions; i++)
        add_action(&digest, &actions[i]);
    return digest;
}

/* A segment ends at this size of its content, too: it stays far below the limit, and zstd sees enough at a time. */
#define SEGMENT_SIZE ((size_t)4 << 20)

struct asym_record_writer {
    FILE *out;
    struct asym_record_io io; /* the content of the segment */
    struct asym_record_codec codec;
    struct asym_machine machine; /* as written last */
    asym_usec began;             /* time of the segment's first snapshot */
    uint64_t n;                  /* snapshots */
    int error;
};

/* Writes the content of the buffer as a segment, and empties it. */
static int flush(struct asym_record_writer *w)
{
    int r = w->io.error;
    if (r >= 0 && w->io.used > 0)
        r = asym_record_write_segment(w->out, w->io.bytes, w->io.used);
    w->io.used = 0;
    if (r < 0 && w->error == 0)
        w->error = r;
    return r;
}

int asym_record_writer_new(FILE *out, const struct asym_record_head *head, struct asym_record_writer **ret_writer)
{
    struct asym_record_head_data data = {.head = *head};
    struct asym_record_writer *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->out = out;
    w->io.writing = true;
    int r = asym_record_write_signature(out);
    if (r >= 0) {
        asym_record_head(&w->io, &data);
        r = flush(w);
    }
    asym_record_head_done(&data);
    if (r < 0) {
        asym_record_writer_free(w);
        return r;
    }
    *ret_writer = w;
    return 0;
}

void asym_record_writer_free(struct asym_record_writer *w)
{
    if (!w)
        return;
    asym_record_io_done(&w->io);
    asym_record_codec_done(&w->codec);
    free(w);
}

int asym_record_writer_add(struct asym_record_writer *w, struct asym_snapshot *s)
{
    if (w->error < 0)
        return w->error;
    if ((w->io.used >= SEGMENT_SIZE || (w->n > 0 && s->now - w->began >= ASYM_RECORD_SEGMENT_TIME)) && flush(w) < 0)
        return w->error;
    if (w->io.used == 0)
        w->began = s->now;
    if (w->n == 0 || s->machine->generation != w->machine.generation) {
        w->machine = *s->machine;
        asym_record_u64(&w->io, ASYM_RECORD_ITEM_MACHINE, ASYM_RECORD_ITEM_END);
        asym_record_machine(&w->io, &w->machine);
    }
    asym_record_u64(&w->io, ASYM_RECORD_ITEM_SNAPSHOT, ASYM_RECORD_ITEM_END);
    asym_record_snapshot(&w->io, &w->codec, s);
    w->error = w->io.error;
    w->n += w->error == 0;
    return w->error;
}

int asym_record_writer_feedback(struct asym_record_writer *w, const struct asym_feedback *feedback)
{
    if (w->error < 0)
        return w->error;
    const struct asym_outcome *outcomes = feedback->outcomes;
    size_t n = feedback->n_actions;
    asym_record_u64(&w->io, ASYM_RECORD_ITEM_FEEDBACK, ASYM_RECORD_ITEM_END);
    asym_record_word(&w->io, asym_plan_digest(feedback->plan, feedback->actions, feedback->n_actions));
    asym_record_outcomes(&w->io, &w->codec, &outcomes, &n);
    w->error = w->io.error;
    return w->error;
}

int asym_record_writer_finish(struct asym_record_writer *w)
{
    /* The end has a segment of its own: a file that lacks only the end has all snapshots. */
    if (w->error < 0 || flush(w) < 0)
        return w->error;
    asym_record_u64(&w->io, ASYM_RECORD_ITEM_END, ASYM_RECORD_ITEM_END);
    asym_record_u64(&w->io, w->n, UINT64_MAX);
    return flush(w);
}

uint64_t asym_record_writer_count(const struct asym_record_writer *w)
{
    return w->n;
}

const char *asym_record_writer_fault(const struct asym_record_writer *w)
{
    return w->io.error < 0 && w->io.fault ? w->io.fault : w->error < 0 ? strerror(-w->error) : NULL;
}

struct record_source {
    struct asym_source source;
    struct asym_record_writer *writer;
};

static struct record_source *recorder_of(struct asym_source *source)
{
    return (struct record_source *)(void *)source;
}

static int source_next(struct asym_source *source, struct asym_snapshot *ret)
{
    struct record_source *u = recorder_of(source);
    struct asym_snapshot s;
    int r = source->inner->next(source->inner, &s);
    if (r <= 0)
        return r;
    r = asym_record_writer_add(u->writer, &s);
    if (r < 0)
        return r;
    *ret = s;
    return 1;
}

/* It cannot fail: the next snapshot returns an error of the writer. */
static void source_feedback(struct asym_source *source, const struct asym_feedback *feedback)
{
    asym_record_writer_feedback(recorder_of(source)->writer, feedback);
}

static void source_close(struct asym_source *source)
{
    free(recorder_of(source));
}

int asym_record_source_new(struct asym_source *inner, struct asym_record_writer *w, struct asym_source **ret_source)
{
    struct record_source *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    *u = (struct record_source){
        .source = {.inner = inner, .next = source_next, .feedback = source_feedback, .close = source_close},
        .writer = w,
    };
    *ret_source = &u->source;
    return 0;
}
