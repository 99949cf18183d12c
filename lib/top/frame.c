/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* Returns the item after the n-th of *array, zeroed; NULL: no memory. */
static void *add(void **array, size_t *n, size_t *allocated, size_t item)
{
    if (*n == *allocated) {
        const size_t more = ASYM_MAX(*allocated * 2, (size_t)16);
        void *grown = reallocarray(*array, more, item);
        if (!grown)
            return NULL;
        *array = grown;
        *allocated = more;
    }
    return memset((char *)*array + (*n)++ * item, 0, item);
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
