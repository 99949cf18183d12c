/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/openmetrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "report/json.h"

/* In the output names of families and samples begin so, and names of counters' samples end so. */
#define ASYM_OPENMETRICS_PREFIX "asymd_"
#define ASYM_OPENMETRICS_TOTAL  "_total"

/* A family of which there are samples. */
struct asym_metric_family {
    const char *name; /* without ASYM_OPENMETRICS_PREFIX; of len bytes */
    int len;
    bool is_counter; /* its samples end in ASYM_OPENMETRICS_TOTAL, whatever the server calls them; else a gauge */
    const struct asym_metric_row *row; /* NULL: this version does not know it */
};

/* Called with each family, then with each of its samples. Returns 0; -errno, which ends the visit. */
struct asym_metric_visitor {
    int (*family)(void *ctx, const struct asym_metric_family *family);
    /** labels: as in {kind="steer",outcome="done"}; "": none. */
    int (*sample)(void *ctx, const struct asym_metric_family *family, const char *labels,
                  const struct asym_metric *metric);
    void *ctx;
};

#define PREFIX ASYM_OPENMETRICS_PREFIX

static const struct asym_metric_row rows[] = {
#define ASYM_METRIC(id, kind, name, unit, help) [ASYM_METRIC_##id] = {name, #kind, unit, help},
#include "report/metrics.def"
#undef ASYM_METRIC
};

/* 0 and 2^64 - 1 are the bounds of a counter. */
static uint64_t whole_of(double value)
{
    return value >= 0x1p64 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
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
            const double value = asym_json_get_number(counter, "value");
            metrics[i] = (struct asym_metric){.name = asym_json_get_text(counter, "name"),
                                              .kind = asym_json_get_text(counter, "kind"),
                                              .whole = whole_of(value),
                                              .fraction = value};
        }
    return metrics;
}

const struct asym_metric_row *asym_metric_row_at(size_t i)
{
    return i < ASYM_LENGTH(rows) ? &rows[i] : NULL;
}

const char *asym_metric_name(enum asym_metric_id id, const char *labels, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", rows[id].name, strcmp(rows[id].kind, "counter") == 0 ? ASYM_OPENMETRICS_TOTAL : "",
             labels ? labels : "");
    return buf;
}

static bool ends_in(const char *text, size_t len, const char *end)
{
    const size_t n = strlen(end);
    return len >= n && memcmp(text + len - n, end, n) == 0;
}

/* The bytes of the name of the family of a sample. */
static size_t family_len(const char *name)
{
    const size_t len = strcspn(name, "{");
    return ends_in(name, len, ASYM_OPENMETRICS_TOTAL) ? len - strlen(ASYM_OPENMETRICS_TOTAL) : len;
}

static bool is_in_family(const char *name, const char *family, size_t len)
{
    return family_len(name) == len && memcmp(name, family, len) == 0;
}

const struct asym_metric_row *asym_metric_row_of(const char *name)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (is_in_family(name, rows[i].name, strlen(rows[i].name)))
            return &rows[i];
    return NULL;
}

static bool is_counter(const struct asym_metric *metric)
{
    return strcmp(metric->kind, "counter") == 0;
}

const char *asym_metric_value(const struct asym_metric *metric, char *buf, size_t size)
{
    const char *labels = strchr(metric->name, '{'), *seconds = strstr(metric->name, "_seconds");
    const bool in_seconds = seconds && (!labels || seconds < labels);
    if (is_counter(metric) && !in_seconds)
        snprintf(buf, size, "%" PRIu64, metric->whole);
    else if (!isfinite(metric->fraction))
        snprintf(buf, size, "%s", isnan(metric->fraction) ? "NaN" : metric->fraction < 0 ? "-Inf" : "+Inf");
    else
        snprintf(buf, size, "%.15g", metric->fraction == 0 ? 0 : metric->fraction);
    return buf;
}

/* Visits the family of metrics[first], and its samples that are not done. */
static int visit_family(const struct asym_metric *metrics, size_t n, size_t first, bool *done,
                        const struct asym_metric_visitor *visitor)
{
    const struct asym_metric *head = &metrics[first];
    const size_t len = family_len(head->name);
    const struct asym_metric_row *row = asym_metric_row_of(head->name);
    const struct asym_metric_family family = {
        .name = head->name,
        .len = (int)len,
        .is_counter = row ? strcmp(row->kind, "counter") == 0 : is_counter(head),
        .row = row,
    };
    int r = visitor->family(visitor->ctx, &family);
    for (size_t i = first; r >= 0 && i < n; i++) {
        const char *name = metrics[i].name;
        if (done[i] || !is_in_family(name, head->name, len))
            continue;
        r = visitor->sample(visitor->ctx, &family, name + strcspn(name, "{"), &metrics[i]);
        done[i] = true;
    }
    return r;
}

/*
 * Visit all samples, ordered by family: those of the table first, then those that it does not know. Returns 0; -ENOMEM; what the
 * visitor has returned.
 */
static int visit_metrics(const struct asym_metric *metrics, size_t n, const struct asym_metric_visitor *visitor)
{
    ASYM_AUTO_FREE bool *done = calloc(n + 1, sizeof *done);
    int r = done ? 0 : -ENOMEM;
    for (size_t k = 0; k < ASYM_LENGTH(rows); k++)
        for (size_t i = 0; r >= 0 && i < n; i++)
            if (!done[i] && asym_metric_row_of(metrics[i].name) == &rows[k])
                r = visit_family(metrics, n, i, done, visitor);
    for (size_t i = 0; r >= 0 && i < n; i++)
        if (!done[i])
            r = visit_family(metrics, n, i, done, visitor);
    return r;
}

/* The name in the lines on a family ends in end. */
static void print_head(FILE *out, const struct asym_metric_family *f, const char *end)
{
    if (f->row)
        fprintf(out, "# HELP " PREFIX "%.*s%s %s\n", f->len, f->name, end, f->row->help);
    fprintf(out, "# TYPE " PREFIX "%.*s%s %s\n", f->len, f->name, end, f->is_counter ? "counter" : "gauge");
}

static int print_family(void *ctx, const struct asym_metric_family *f)
{
    print_head(ctx, f, "");
    if (f->row && *f->row->unit)
        fprintf(ctx, "# UNIT " PREFIX "%.*s %s\n", f->len, f->name, f->row->unit);
    return 0;
}

static int print_plain_family(void *ctx, const struct asym_metric_family *f)
{
    print_head(ctx, f, f->is_counter ? ASYM_OPENMETRICS_TOTAL : "");
    return 0;
}

static int print_sample(void *ctx, const struct asym_metric_family *f, const char *labels,
                        const struct asym_metric *metric)
{
    char value[32];
    fprintf(ctx, PREFIX "%.*s%s%s %s\n", f->len, f->name, f->is_counter ? ASYM_OPENMETRICS_TOTAL : "", labels,
            asym_metric_value(metric, value, sizeof value));
    return 0;
}

int asym_openmetrics_print(const struct asym_metric *metrics, size_t n, FILE *out)
{
    const struct asym_metric_visitor visitor = {print_family, print_sample, out};
    const int r = visit_metrics(metrics, n, &visitor);
    if (r < 0)
        return r;
    fputs("# EOF\n", out);
    return ferror(out) ? -EIO : 0;
}

int asym_prometheus_print(const struct asym_metric *metrics, size_t n, FILE *out)
{
    const struct asym_metric_visitor visitor = {print_plain_family, print_sample, out};
    const int r = visit_metrics(metrics, n, &visitor);
    return r < 0 ? r : ferror(out) ? -EIO : 0;
}

/* The counters of asymd as JSON, with the names of the OpenMetrics text. */

json_t *asym_metric_json(const struct asym_metric *metric)
{
    char value[32];
    asym_metric_value(metric, value, sizeof value);
    const bool is_whole = strspn(value, "0123456789") == strlen(value) && strlen(value) < 19;
    return is_whole ? json_integer(strtoll(value, NULL, 10)) : asym_json_number(strtod(value, NULL), 6);
}

/* Resolves the escapes of a quoted value in place, and drops its quotes. Returns what follows the value, at most the end. */
static char *unquote(char *value, size_t *ret_len)
{
    char *in = value + 1, *out = value;
    while (*in && *in != '"') {
        const bool is_escaped = *in == '\\' && in[1];
        in += is_escaped;
        *out++ = is_escaped && *in == 'n' ? '\n' : *in;
        in++;
    }
    *ret_len = (size_t)(out - value);
    return in + (*in == '"');
}

static json_t *labels_json(const char *labels)
{
    json_t *object = json_object();
    ASYM_AUTO_FREE char *copy = strdup(labels);
    for (char *at = copy; at && (*at == '{' || *at == ',');) {
        char *name = at + 1, *value = name + strcspn(name, "=");
        size_t len;
        if (value[0] == '\0' || value[1] == '\0')
            break;
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
    if (visit_metrics(metrics, n, &visitor) < 0)
        json_decref(ASYM_TAKE(families.list));
    return families.list;
}
