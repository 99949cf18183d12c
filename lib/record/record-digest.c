/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/record.h"

#include <string.h>

#include <asym/types.h>

static void add(uint64_t *digest, uint64_t value)
{
    /* The product spreads a value over the high bits, and the rotation brings these down. */
    *digest = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    *digest = *digest << 29 | *digest >> 35;
}

static void add_number(uint64_t *digest, double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    add(digest, word);
}

/* Adds a reason with its figures, which mean nothing without one. */
static void add_reason(uint64_t *digest, const struct asym_reason *reason, const double figure[2])
{
    const char *text = reason ? reason->text : "";
    const size_t len = strlen(text);
    add(digest, len);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        for (size_t k = i; k < len && k < i + 8; k++)
            word = word << 8 | (unsigned char)text[k];
        add(digest, word);
    }
    for (unsigned i = 0; reason && i < 2; i++)
        add_number(digest, figure[i]);
}

static void add_mask(uint64_t *digest, const struct asym_mask *mask)
{
    for (unsigned i = 0; i < sizeof mask->w / sizeof mask->w[0]; i++)
        add(digest, mask->w[i]);
}

static void add_id(uint64_t *digest, const struct asym_taskid *id)
{
    add(digest, (uint64_t)(uint32_t)id->tgid << 32 | (uint32_t)id->tid);
    add(digest, id->start);
}

static void add_app(uint64_t *digest, const struct asym_plan_app *app)
{
    add(digest, (uint64_t)app->phase << 8 | app->class);
    add_number(digest, app->runnable);
    add_reason(digest, app->excluded, app->figure);
}

static void add_task(uint64_t *digest, const struct asym_plan_task *task)
{
    add(digest, (uint64_t)(uint32_t)task->target << 32 | (uint64_t)(uint8_t)task->nice << 16 |
                    (uint64_t)task->class << 8 | (uint64_t)task->counted << 2 | (uint64_t)task->exclusive << 1 |
                    task->moves);
    add_reason(digest, task->reason, task->figure);
    add_mask(digest, task->mask);
}

static void add_action(uint64_t *digest, const struct asym_action *action)
{
    add_id(digest, &action->id);
    add(digest, (uint64_t)action->transit_cpu << 32 | (uint64_t)(uint8_t)action->expect_nice << 24 |
                    (uint64_t)(uint8_t)action->nice << 16 | (uint64_t)action->kind << 8 | action->full_cpuset);
    add_reason(digest, action->reason, action->figure);
    add_mask(digest, &action->expect);
    add_mask(digest, &action->mask);
}

uint64_t asym_plan_digest(const struct asym_plan *plan, const struct asym_action *actions, size_t n_actions)
{
    uint64_t digest = UINT64_C(14695981039346656037);
    add(&digest, plan->n_apps);
    for (size_t i = 0; i < plan->n_apps; i++)
        add_app(&digest, &plan->apps[i]);
    add(&digest, plan->n_tasks);
    for (size_t i = 0; i < plan->n_tasks; i++)
        add_task(&digest, &plan->tasks[i]);
    add(&digest, n_actions);
    for (size_t i = 0; i < n_actions; i++)
        add_action(&digest, &actions[i]);
    return digest;
}
