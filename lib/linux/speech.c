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

bool asym_speech_needs_maps(const struct asym_app *app)
{
    return !app->speaks && !app->cgroup;
}

enum asym_speech asym_speech_of(unsigned maps, const struct asym_snapshot *s, const struct asym_app *app)
{
    if (app->speaks)
        return ASYM_SPEECH_SPEAKS;
    if (app->cgroup)
        return ASYM_SPEECH_NONE;
    if (maps & ASYM_MAPS_PAGE)
        return ASYM_SPEECH_SPEAKS;
    return maps & ASYM_MAPS_OPENMP && asym_speech_never_pauses(s, app) ? ASYM_SPEECH_SUSPECT : ASYM_SPEECH_NONE;
}
