/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl metrics. */
#include <errno.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/service-verb.h"
#include "report/json.h"
#include "report/openmetrics.h"
#include "report/columns.h"

struct arguments {
    bool table, json;
};

static const struct asym_arg args[] = {
    ASYM_ARG_OR("--table", BOOL, NULL, table, .help = "print a table for people"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

static int print_json(const struct asym_metric *samples, size_t n)
{
    return asym_json_print(
        json_pack("{s:s, s:o}", "schema", "asymctl.metrics/1", "families", asym_openmetrics_json(samples, n)), stdout);
}

static int print_table(const struct asym_metric *samples, size_t n)
{
    static const struct asym_report_table_column columns[] = {
        {.heading = "COUNTER"}, {.heading = "VALUE", .right = true}, {.heading = "MEANING", .cut = 30, .drop = 1}};
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = columns, .n_columns = ASYM_LENGTH(columns)};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    for (size_t i = 0; i < n; i++) {
        char name[256], value[32];
        const char *const cells[] = {asym_text_show(samples[i].name, name, sizeof name),
                                     asym_metric_value(&samples[i], value, sizeof value),
                                     samples[i].row ? samples[i].row->help : ""};
        asym_report_table_row(&table, cells);
    }
    const int r = asym_report_table_print(&table, &terminal, 0, 0, true);
    if (r < 0)
        return r;
    const size_t wanted = asym_report_table_width(&table);
    if (wanted > terminal.columns)
        fprintf(stderr, "asymctl: the column MEANING needs a terminal of %zu columns, or COLUMNS=%zu\n", wanted,
                wanted);
    return ferror(stdout) ? -EIO : 0;
}

static int metrics(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_AUTO_JSON json_t *counters = NULL;
    const struct arguments *a = parsed;
    struct asym_error err = {""};
    size_t n;
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    const int r = asym_client_get_report(client, "counters", 0, &counters, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    ASYM_AUTO_FREE struct asym_metric *samples = asym_metrics_read(counters, &n);
    return asym_verb_reported(!samples   ? -ENOMEM
                              : a->json  ? print_json(samples, n)
                              : a->table ? print_table(samples, n)
                                         : asym_openmetrics_print(samples, n, true, stdout));
}

const struct asym_verb asym_verb_metrics = {
    .name = "metrics",
    .args = args,
    .summary = "print the counters of the running asymd, as OpenMetrics text or as a table",
    .help = "Prints what the running asymd has counted since its start, and its present state in figures, as\n"
            "OpenMetrics text, which Prometheus reads; with --table for people. With --json prints an object with\n"
            "the families, samples and labels of the text.\n",
    .run = metrics,
};
