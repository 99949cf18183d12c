/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl stats. */
#include <errno.h>
#include <string.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/metrics.h"
#include "daemon/asymctl/service-verb.h"
#include "report/json.h"
#include "report/openmetrics.h"
#include "report/report-table.h"

struct arguments {
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

static const struct asym_report_table_column columns[] = {
    {.heading = "COUNTER"},
    {.heading = "VALUE", .right = true},
    {.heading = "MEANING", .cut = 30, .drop = 1},
};

static int print_table(const struct asym_metric *samples, size_t n)
{
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = columns, .n_columns = ASYM_LENGTH(columns)};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    int r = 0;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        char name[256], value[32];
        const struct asym_metric_row *row = asym_metric_row_of(samples[i].name);
        const char *const cells[] = {asym_text_escape(samples[i].name, strlen(samples[i].name), name, sizeof name),
                                     asym_metric_value(&samples[i], value, sizeof value), row ? row->help : ""};
        r = asym_report_table_add(&table, cells);
    }
    if (r >= 0)
        r = asym_report_table_print(&table, &terminal, 0, 0, true);
    if (r < 0)
        return r;
    const size_t wanted = asym_report_table_width(&table);
    if (wanted > terminal.columns)
        fprintf(stderr, "asymctl: the column MEANING needs a terminal of %zu columns, or COLUMNS=%zu\n", wanted,
                wanted);
    return ferror(stdout) ? -EIO : 0;
}

static int stats(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_client_counters_done) struct asym_client_counters counters = {.n_counters = 0};
    const struct arguments *a = parsed;
    struct asym_error err = {""};
    (void)operands;
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    if (a->json)
        return asym_verb_report(client, "counters", &err);
    const int r = asym_client_get_counters(client, &counters, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    ASYM_AUTO_FREE struct asym_metric *samples = asym_metrics_of(&counters);
    if (!samples)
        return asym_verb_reported(-ENOMEM);
    return asym_verb_reported(print_table(samples, counters.n_counters));
}

const struct asym_verb asym_verb_stats = {
    .name = "stats",
    .args = args,
    .args_size = sizeof(struct arguments),
    .usage = "",
    .summary = "print the counters of the running asymd",
    .help = "Prints what the running asymd has counted since its start, and its present state in figures.\n",
    .run = stats,
};
