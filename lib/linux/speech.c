/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/speech.h"

#include "linux/maps.h"

/* Less than this share of an interval is a pause. */
#define ALL_OF_IT 0.99

bool asym_speech_never_pauses(const struct asym_snapshot *s, const struct asym_app *app)
{
    size_t n = 0;
    for (uint32_t i = 0; i < app->n_tasks; i++)
        n += s->tasks[app->first_task + i].runnable >= ALL_OF_IT;
    return n >= 2;
}

enum asym_speech asym_speech_of(const struct asym_root *root, const struct asym_snapshot *s, const struct asym_app *app)
{
    if (app->speaks)
        return ASYM_SPEECH_SPEAKS;
    if (app->cgroup)
        return ASYM_SPEECH_NONE;
    const unsigned bits = asym_maps_read(root, app->id.tgid);
    if (bits & ASYM_MAPS_PAGE)
        return ASYM_SPEECH_SPEAKS;
    return bits & ASYM_MAPS_OPENMP && asym_speech_never_pauses(s, app) ? ASYM_SPEECH_SUSPECT : ASYM_SPEECH_NONE;
}
