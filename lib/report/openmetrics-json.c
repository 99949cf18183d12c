/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/openmetrics-json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "report/json.h"

json_t *asym_metric_json(const struct asym_metric *metric)
{
    char value[32];
    asym_metric_value(metric, value, sizeof value);
    const bool is_whole = strspn(value, "0123456789") == strlen(value) && strlen(value) < 19;
    return is_whole ? json_integer(strtoll(value, NULL, 10)) : asym_json_number(strtod(value, NULL), 6);
}

/* Resolves the escapes of a quoted value in place, and drops its quotes. Returns what follows the value. */
static char *unquote(char *value, size_t *ret_len)
{
    char *in = value + 1, *out = value;
    while (*in != '"') {
        const bool is_escaped = *in == '\\';
        in += is_escaped;
        *out++ = is_escaped && *in == 'n' ? '\n' : *in;
        in++;
    }
    *ret_len = (size_t)(out - value);
    return in + 1;
}

/* labels: valid, as asym_metrics_visit gives them. */
static json_t *labels_json(const char *labels)
{
    json_t *object = json_object();
    ASYM_AUTO_FREE char *copy = strdup(labels);
    for (char *at = copy; at && (*at == '{' || *at == ',');) {
        char *name = at + 1, *value = name + strcspn(name, "=");
        size_t len;
        *value++ = '\0';
        at = unquote(value, &len);
        asym_json_set(&object, name, asym_json_text(value, len));
    }
    if (!copy)
        json_decref(ASYM_TAKE(object));
    return object;
}

struct families {
    json_t *list;
    json_t *samples; /* of the last family; borrowed */
};

static int add_family(void *ctx, const struct asym_metric_family *f)
{
    struct families *families = ctx;
    const char *unit = f->row && *f->row->unit ? f->row->unit : NULL;
    json_t *samples = json_array();
    families->samples = samples;
    asym_json_append(&families->list, json_pack("{s:o, s:s, s:s?, s:s?, s:o}", "name",
                                                json_sprintf(ASYM_OPENMETRICS_PREFIX "%.*s", f->len, f->name), "type",
                                                f->is_counter ? "counter" : "gauge", "unit", unit, "help",
                                                f->row ? f->row->help : NULL, "samples", samples));
    return families->list ? 0 : -ENOMEM;
}

static int add_sample(void *ctx, const struct asym_metric_family *f, const char *labels,
                      const struct asym_metric *metric)
{
    struct families *families = ctx;
    return json_array_append_new(families->samples,
                                 json_pack("{s:o, s:o, s:o}", "name",
                                           json_sprintf(ASYM_OPENMETRICS_PREFIX "%.*s%s", f->len, f->name,
                                                        f->is_counter ? ASYM_OPENMETRICS_TOTAL : ""),
                                           "labels", labels_json(labels), "value", asym_metric_json(metric))) < 0
               ? -ENOMEM
               : 0;
}

json_t *asym_openmetrics_json(const struct asym_metric *metrics, size_t n)
{
    struct families families = {.list = json_array()};
    const struct asym_metric_visitor visitor = {add_family, add_sample, &families};
    if (asym_metrics_visit(metrics, n, &visitor) < 0)
        json_decref(ASYM_TAKE(families.list));
    return families.list;
}
