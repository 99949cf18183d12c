/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/bus-report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "daemon/asymd/bus-describe.h"
#include "daemon/asymd/service-control.h"
#include "daemon/asymd/service-internal.h"
#include "report/json.h"

/* The text has the bytes that the program has chosen: a client escapes them before it shows them. */
static json_t *text_json(const char *text)
{
    char valid[1024];
    return json_string(asym_bus_text(text, valid, sizeof valid));
}

static json_t *decision_json(const struct asym_monitor_decision *d)
{
    char reason[1024];
    return json_pack(
        "{s:I, s:i, s:i, s:o, s:i, s:i, s:i, s:s, s:s, s:s}", "time_us", (json_int_t)asym_service_realtime(d->time),
        "pid", (int)d->id.tgid, "tid", (int)d->id.tid, "comm", text_json(d->comm), "from", (int)d->from, "to",
        (int)d->to, "nice", (int)d->nice, "class", d->class == ASYM_CLASS_NONE ? "" : asym_class_name(d->class), "what",
        asym_monitor_what_name(d->what), "reason", asym_bus_reason(d->reason, d->figure, reason, sizeof reason));
}

/* A decision on a process that has ended belongs to no user: where /proc hides processes, only root gets it. */
static json_t *decisions_json(const struct asym_service *s, const struct asym_bus_caller *caller, uint64_t since)
{
    const struct asym_monitor *monitor = asym_service_monitor(s);
    ASYM_AUTO_FREE const struct asym_monitor_decision **all = NULL;
    uint64_t next = asym_monitor_last_decision(monitor);
    size_t n = 0;
    if (asym_monitor_decisions_since(monitor, since, &all, &n) < 0)
        return NULL;
    if (n > ASYM_BUS_DECISIONS) {
        n = ASYM_BUS_DECISIONS;
        next = all[n - 1]->number;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (asym_bus_may_see(s, caller, &all[i]->id))
            asym_json_append(&list, decision_json(all[i]));
    return json_pack("{s:s, s:I, s:I, s:o}", "schema", "asymd.decisions/1", "next", (json_int_t)next, "lost",
                     (json_int_t)(next > since ? next - since - n : 0), "decisions", list);
}

static const struct {
    const char *name;
    json_t *(*make)(const struct asym_service *s, const struct asym_bus_caller *caller, uint64_t argument);
} topics[] = {
    {"decisions", decisions_json},
};

int asym_bus_report(const struct asym_service *s, const struct asym_bus_caller *caller, const char *topic,
                    uint64_t argument, char **ret)
{
    size_t i = 0;
    while (i < ASYM_LENGTH(topics) && strcmp(topics[i].name, topic) != 0)
        i++;
    if (i == ASYM_LENGTH(topics))
        return -EINVAL;
    ASYM_AUTO_JSON json_t *json = topics[i].make(s, caller, argument);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    if (!text)
        return -ENOMEM;
    *ret = text;
    return 0;
}
