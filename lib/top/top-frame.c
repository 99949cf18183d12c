/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top/top.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "report/json.h"

static bool is_same(const json_t *a, const json_t *b)
{
    return asym_json_get_int(a, "pid") == asym_json_get_int(b, "pid") &&
           strcmp(asym_json_get_text(a, "cgroup"), asym_json_get_text(b, "cgroup")) == 0 &&
           strcmp(asym_top_name(a), asym_top_name(b)) == 0;
}

json_t *asym_top_frame_find(const json_t *frame, const json_t *app, size_t hint)
{
    const json_t *apps = asym_top_apps(frame);
    const size_t n = json_array_size(apps);
    for (size_t k = 0; k < n; k++) {
        json_t *other = json_array_get(apps, (hint + k) % n);
        if (is_same(other, app))
            return other;
    }
    return NULL;
}

/* Returns a new reference; NULL: no memory. */
static json_t *make_idle(json_t *app)
{
    ASYM_AUTO_JSON json_t *idle = json_pack("{s:i, s:i, s:i, s:s, s:s}", "runnable", 0, "running", 0, "steered", 0,
                                            "class_name", "idle", "reason", "idle"),
                          *kept = json_copy(app);
    return kept && json_object_update(kept, idle) == 0 ? ASYM_TAKE(kept) : NULL;
}

int asym_top_frame_keep(json_t *frame, const json_t *before, asym_usec now, bool (*has_ended)(uint32_t pid))
{
    json_t *app;
    size_t i;
    json_array_foreach(asym_top_apps(before), i, app)
    {
        if (now - (asym_usec)asym_json_get_int(app, "seen_us") >= ASYM_TOP_KEEP || asym_top_frame_find(frame, app, i) ||
            has_ended((uint32_t)asym_json_get_int(app, "pid")))
            continue;
        if (json_array_append_new(asym_top_apps(frame), make_idle(app)) < 0)
            return -ENOMEM;
    }
    return 0;
}

const char *asym_top_name(const json_t *app)
{
    const char *last = strrchr(asym_json_get_text(app, "cgroup"), '/');
    return asym_json_get_int(app, "pid") == 0 && last && last[1] ? last + 1 : asym_json_get_text(app, "comm");
}

static void add_cpu(struct asym_top_type *t, const json_t *cpu)
{
    const int64_t number = asym_json_get_int(cpu, "cpu");
    const double speed = asym_json_get_number(cpu, "speed"), busy = asym_json_get_number(cpu, "busy");
    const bool fast = asym_json_get_flag(cpu, "fast");
    t->name = asym_json_get_text(cpu, "type_name");
    t->fast = t->n == 0 ? fast : t->fast;
    t->n++;
    t->n_fast += fast;
    t->n_cores += asym_json_get_int(cpu, "smt_rank") == 0;
    t->threads += (unsigned)asym_json_get_int(cpu, "threads");
    t->speed = fmax(t->speed, isfinite(speed) ? speed : 0);
    t->busy += isfinite(busy) ? busy : 0;
    if (number >= 0 && number < ASYM_MAX_CPUS)
        asym_mask_set(&t->cpus, (unsigned)number);
}

bool asym_top_type(const json_t *status, int64_t type, struct asym_top_type *ret)
{
    json_t *cpu;
    size_t i;
    *ret = (struct asym_top_type){.name = ""};
    json_array_foreach(json_object_get(status, "cpus"), i, cpu) if (asym_json_get_int(cpu, "type") == type)
        add_cpu(ret, cpu);
    return type < ASYM_MAX_CPUS && ret->n > 0;
}

int64_t asym_top_type_from(const json_t *status, int64_t from)
{
    int64_t lowest = ASYM_MAX_CPUS;
    json_t *cpu;
    size_t i;
    json_array_foreach(json_object_get(status, "cpus"), i, cpu)
    {
        const int64_t type = asym_json_get_int(cpu, "type");
        lowest = type >= from ? ASYM_MIN(lowest, type) : lowest;
    }
    return lowest;
}

asym_usec asym_top_pace(asym_usec interval, asym_usec cpu_time)
{
    return ASYM_MAX(interval, cpu_time * 100);
}
