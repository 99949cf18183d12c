/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/macro.h"

/* Returns the item after the n-th of *array, zeroed; NULL: no memory. */
static void *add(void **array, size_t *n, size_t *allocated, size_t item)
{
    return asym_grow(array, *n, allocated, item) < 0 ? NULL : memset((char *)*array + (*n)++ * item, 0, item);
}

struct asym_top_cpu *asym_top_add_cpu(struct asym_top_frame *frame)
{
    void *array = frame->cpus;
    struct asym_top_cpu *cpu = add(&array, &frame->n_cpus, &frame->cpus_size, sizeof *cpu);
    frame->cpus = array;
    return cpu;
}

struct asym_top_app *asym_top_add_app(struct asym_top_frame *frame)
{
    void *array = frame->apps;
    struct asym_top_app *app = add(&array, &frame->n_apps, &frame->apps_size, sizeof *app);
    frame->apps = array;
    return app;
}

const struct asym_top_app *asym_top_frame_find(const struct asym_top_frame *frame, const struct asym_top_app *app,
                                               size_t hint)
{
    for (size_t k = 0; k < frame->n_apps; k++) {
        const struct asym_top_app *other = &frame->apps[(hint + k) % frame->n_apps];
        if (other->pid == app->pid && strcmp(other->cgroup, app->cgroup) == 0 && strcmp(other->comm, app->comm) == 0)
            return other;
    }
    return NULL;
}

int asym_top_frame_keep(struct asym_top_frame *frame, const struct asym_top_frame *before, asym_usec now,
                        bool (*has_ended)(uint32_t pid))
{
    for (size_t i = 0; i < before->n_apps; i++) {
        const struct asym_top_app *app = &before->apps[i];
        if (now - app->seen >= ASYM_TOP_KEEP || asym_top_frame_find(frame, app, i) || has_ended(app->pid))
            continue;
        struct asym_top_app *kept = asym_top_add_app(frame);
        if (!kept)
            return -ENOMEM;
        *kept = *app;
        kept->runnable = kept->running = 0;
        kept->steered = 0;
        snprintf(kept->class_name, sizeof kept->class_name, "idle");
        snprintf(kept->reason, sizeof kept->reason, "idle");
    }
    return 0;
}

void asym_top_frame_clear(struct asym_top_frame *frame)
{
    *frame = (struct asym_top_frame){
        .cpus = frame->cpus,
        .cpus_size = frame->cpus_size,
        .apps = frame->apps,
        .apps_size = frame->apps_size,
    };
}

void asym_top_frame_done(struct asym_top_frame *frame)
{
    free(frame->cpus);
    free(frame->apps);
    *frame = (struct asym_top_frame){.cpus = NULL};
}

asym_usec asym_top_pace(asym_usec interval, asym_usec cpu_time)
{
    return ASYM_MAX(interval, cpu_time * 100);
}
