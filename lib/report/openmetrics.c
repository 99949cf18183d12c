/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/openmetrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "report/json.h"

/* In the output names of families and samples begin so, and names of counters' samples end so. */
#define PREFIX "asymd_"
#define TOTAL  "_total"

static const struct asym_metric_row rows[] = {
#define ASYM_METRIC(id, kind, name, unit, help) [ASYM_METRIC_##id] = {name, #kind, unit, help},
#include "report/metrics.def"
#undef ASYM_METRIC
};

const struct asym_metric_row *asym_metric_row_at(size_t i)
{
    return i < ASYM_LENGTH(rows) ? &rows[i] : NULL;
}

/* JSON has no number that is not finite. */
static json_t *value_json(double value)
{
    return value >= 0 && value < 1e18 && floor(value) >= value ? json_integer((json_int_t)value)
                                                               : asym_json_number(value, 6);
}

void asym_metric_add(json_t **list, enum asym_metric_id id, const char *labels, double value)
{
    const struct asym_metric_row *row = &rows[id];
    asym_json_append(list, json_pack("{s:o, s:s, s:o}", "name",
                                     json_sprintf("%s%s%s", row->name, strcmp(row->kind, "counter") == 0 ? TOTAL : "",
                                                  labels ? labels : ""),
                                     "kind", row->kind, "value", value_json(value)));
}

/* The bytes of the name of the family of a sample. */
static int family_len(const char *name)
{
    const size_t len = strcspn(name, "{"), end = strlen(TOTAL);
    return (int)(len >= end && memcmp(name + len - end, TOTAL, end) == 0 ? len - end : len);
}

static bool is_in_family(const char *name, const char *family)
{
    const int len = family_len(name);
    return family_len(family) == len && memcmp(name, family, (size_t)len) == 0;
}

static const struct asym_metric_row *row_of(const char *name)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (is_in_family(name, rows[i].name))
            return &rows[i];
    return NULL;
}

/* Returns whether a family stands before another one. Those that the table does not know stand as they came. */
static bool is_before(const struct asym_metric *a, const struct asym_metric *b)
{
    return a->row && (!b->row || a->row < b->row);
}

/* Inserts the sample behind those of its family. There are some fifty of them, mostly in order. */
static void insert(struct asym_metric *metrics, size_t n, const struct asym_metric *metric)
{
    size_t at = n, same = n;
    while (same > 0 && !is_in_family(metrics[same - 1].name, metric->name))
        same--;
    while (at > same && (same > 0 || is_before(metric, &metrics[at - 1])))
        at--;
    memmove(metrics + at + 1, metrics + at, (n - at) * sizeof *metrics);
    metrics[at] = *metric;
}

struct asym_metric *asym_metrics_read(const json_t *report, size_t *ret_n)
{
    json_t *counters = json_object_get(report, "counters"), *counter;
    struct asym_metric *metrics = calloc(json_array_size(counters) + 1, sizeof *metrics);
    size_t i;
    *ret_n = metrics ? json_array_size(counters) : 0;
    if (metrics)
        json_array_foreach(counters, i, counter)
        {
            const char *name = asym_json_get_text(counter, "name");
            const struct asym_metric_row *row = row_of(name);
            const char *kind = row ? row->kind : asym_json_get_text(counter, "kind");
            insert(metrics, i,
                   &(struct asym_metric){.name = name,
                                         .row = row,
                                         .is_counter = strcmp(kind, "counter") == 0,
                                         .value = asym_json_get_number(counter, "value")});
        }
    return metrics;
}

const char *asym_metric_value(const struct asym_metric *metric, char *buf, size_t size)
{
    const double value = metric->value;
    if (!isfinite(value))
        snprintf(buf, size, "%s", isnan(value) ? "NaN" : value < 0 ? "-Inf" : "+Inf");
    else
        snprintf(buf, size, floor(value) >= value && fabs(value) < 1e20 ? "%.0f" : "%.15g", value == 0 ? 0 : value);
    return buf;
}

static bool begins_family(const struct asym_metric *metrics, size_t i)
{
    return i == 0 || !is_in_family(metrics[i - 1].name, metrics[i].name);
}

static const char *end_of(const struct asym_metric *m)
{
    return m->is_counter ? TOTAL : "";
}

/* The name in the lines on a family ends in end. */
static void print_family(const struct asym_metric *m, bool is_open, FILE *out)
{
    const int len = family_len(m->name);
    const char *end = is_open ? "" : end_of(m);
    if (m->row)
        fprintf(out, "# HELP " PREFIX "%.*s%s %s\n", len, m->name, end, m->row->help);
    fprintf(out, "# TYPE " PREFIX "%.*s%s %s\n", len, m->name, end, m->is_counter ? "counter" : "gauge");
    if (is_open && m->row && *m->row->unit)
        fprintf(out, "# UNIT " PREFIX "%.*s %s\n", len, m->name, m->row->unit);
}

int asym_openmetrics_print(const struct asym_metric *metrics, size_t n, bool is_open, FILE *out)
{
    char value[32];
    for (size_t i = 0; i < n; i++) {
        const struct asym_metric *m = &metrics[i];
        if (begins_family(metrics, i))
            print_family(m, is_open, out);
        fprintf(out, PREFIX "%.*s%s%s %s\n", family_len(m->name), m->name, end_of(m), m->name + strcspn(m->name, "{"),
                asym_metric_value(m, value, sizeof value));
    }
    fputs(is_open ? "# EOF\n" : "", out);
    return ferror(out) ? -EIO : 0;
}

/* Resolves the escapes of a quoted value in place, and drops its quotes. Returns what follows the value, at most the end. */
static char *unquote(char *value)
{
    char *in = value + 1, *out = value;
    while (*in && *in != '"') {
        const bool is_escaped = *in == '\\' && in[1];
        in += is_escaped;
        *out++ = is_escaped && *in == 'n' ? '\n' : *in;
        in++;
    }
    in += *in == '"';
    *out = '\0';
    return in;
}

static json_t *labels_json(const char *labels)
{
    json_t *object = json_object();
    ASYM_AUTO_FREE char *copy = strdup(labels);
    for (char *at = copy; at && (*at == '{' || *at == ',');) {
        char *name = at + 1, *value = name + strcspn(name, "=");
        if (value[0] == '\0' || value[1] == '\0')
            break;
        *value++ = '\0';
        at = unquote(value);
        asym_json_set(&object, name, asym_json_text(value));
    }
    if (!copy)
        json_decref(ASYM_TAKE(object));
    return object;
}

json_t *asym_openmetrics_json(const struct asym_metric *metrics, size_t n)
{
    json_t *list = json_array(), *samples = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct asym_metric *m = &metrics[i];
        const int len = family_len(m->name);
        if (begins_family(metrics, i)) {
            samples = json_array();
            asym_json_append(&list,
                             json_pack("{s:o, s:s, s:s?, s:s?, s:o}", "name", json_sprintf(PREFIX "%.*s", len, m->name),
                                       "type", m->is_counter ? "counter" : "gauge", "unit",
                                       m->row && *m->row->unit ? m->row->unit : NULL, "help",
                                       m->row ? m->row->help : NULL, "samples", samples));
        }
        if (!list || json_array_append_new(samples, json_pack("{s:o, s:o, s:o}", "name",
                                                              json_sprintf(PREFIX "%.*s%s", len, m->name, end_of(m)),
                                                              "labels", labels_json(m->name + strcspn(m->name, "{")),
                                                              "value", value_json(m->value))) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
