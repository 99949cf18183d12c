/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/openmetrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

#define PREFIX ASYM_OPENMETRICS_PREFIX
#define TOTAL  ASYM_OPENMETRICS_TOTAL

static const struct asym_metric_row rows[] = {
#define ASYM_METRIC(id, kind, name, unit, help) [ASYM_METRIC_##id] = {name, #kind, unit, help},
#include "report/metrics.def"
#undef ASYM_METRIC
};

const struct asym_metric_row *asym_metric_row_at(size_t i)
{
    return i < ASYM_LENGTH(rows) ? &rows[i] : NULL;
}

const char *asym_metric_name(enum asym_metric_id id, const char *labels, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", rows[id].name, strcmp(rows[id].kind, "counter") == 0 ? TOTAL : "",
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
    return ends_in(name, len, TOTAL) ? len - strlen(TOTAL) : len;
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

/* The bytes of a name at text: letters, digits after the first character, and underscores. 0: there is none. */
static size_t name_len(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const size_t first = strspn(text, letters);
    return first == 0 ? 0
                      : first + strspn(text + first, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
}

/* The bytes of a quoted value at text, with its quotes. 0: there is none. */
static size_t quoted_len(const char *text)
{
    size_t i = 1;
    if (text[0] != '"')
        return 0;
    for (; text[i] && text[i] != '"'; i++) {
        if ((unsigned char)text[i] < ' ')
            return 0;
        if (text[i] == '\\' && !strchr("\\\"n", text[++i]))
            return 0;
        if (!text[i])
            return 0;
    }
    return text[i] ? i + 1 : 0;
}

/* Returns true for a name, and for a name with labels: name{a="b",c="d"}. */
static bool is_valid(const char *text)
{
    size_t n = name_len(text);
    const char *at = text + n;
    if (n == 0 || !*at)
        return n > 0;
    if (*at != '{')
        return false;
    do {
        at++;
        n = name_len(at);
        if (n == 0 || at[n] != '=')
            return false;
        at += n + 1;
        n = quoted_len(at);
        at += n;
    } while (n > 0 && *at == ',');
    return n > 0 && strcmp(at, "}") == 0;
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

int asym_metrics_visit(const struct asym_metric *metrics, size_t n, const struct asym_metric_visitor *visitor)
{
    ASYM_AUTO_FREE bool *done = calloc(n + 1, sizeof *done);
    int r = done ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < n; i++)
        done[i] = !is_valid(metrics[i].name);
    for (size_t k = 0; k < ASYM_LENGTH(rows); k++)
        for (size_t i = 0; r >= 0 && i < n; i++)
            if (!done[i] && asym_metric_row_of(metrics[i].name) == &rows[k])
                r = visit_family(metrics, n, i, done, visitor);
    for (size_t i = 0; r >= 0 && i < n; i++)
        if (!done[i])
            r = visit_family(metrics, n, i, done, visitor);
    return r;
}

static int print_family(void *ctx, const struct asym_metric_family *f)
{
    FILE *out = ctx;
    if (f->row)
        fprintf(out, "# HELP " PREFIX "%.*s %s\n", f->len, f->name, f->row->help);
    fprintf(out, "# TYPE " PREFIX "%.*s %s\n", f->len, f->name, f->is_counter ? "counter" : "gauge");
    if (f->row && *f->row->unit)
        fprintf(out, "# UNIT " PREFIX "%.*s %s\n", f->len, f->name, f->row->unit);
    return 0;
}

static int print_sample(void *ctx, const struct asym_metric_family *f, const char *labels,
                        const struct asym_metric *metric)
{
    char value[32];
    fprintf(ctx, PREFIX "%.*s%s%s %s\n", f->len, f->name, f->is_counter ? TOTAL : "", labels,
            asym_metric_value(metric, value, sizeof value));
    return 0;
}

int asym_openmetrics_print(const struct asym_metric *metrics, size_t n, FILE *out)
{
    const struct asym_metric_visitor visitor = {print_family, print_sample, out};
    const int r = asym_metrics_visit(metrics, n, &visitor);
    if (r < 0)
        return r;
    fputs("# EOF\n", out);
    return ferror(out) ? -EIO : 0;
}
