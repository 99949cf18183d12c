/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl metrics. */
#include <errno.h>

#include "base/macro.h"
#include "daemon/asymctl/metrics.h"
#include "daemon/asymctl/service-verb.h"
#include "report/json.h"
#include "report/openmetrics.h"

struct arguments {
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print the same as JSON"),
    {.option = {.key = NULL}},
};

struct asym_metric *asym_metrics_of(const struct asym_client_counters *counters)
{
    struct asym_metric *metrics = calloc(counters->n_counters + 1, sizeof *metrics);
    for (size_t i = 0; metrics && i < counters->n_counters; i++)
        metrics[i] = (struct asym_metric){
            .name = counters->counters[i].name,
            .kind = counters->counters[i].kind,
            .whole = asym_metric_whole(counters->counters[i].value),
            .fraction = counters->counters[i].value,
        };
    return metrics;
}

static int print_json(const struct asym_metric *samples, size_t n)
{
    return asym_json_print(
        json_pack("{s:s, s:o}", "schema", "asymctl.metrics/1", "families", asym_openmetrics_json(samples, n)), stdout);
}

static int metrics(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_client_counters_done) struct asym_client_counters counters = {.n_counters = 0};
    const struct arguments *a = parsed;
    struct asym_error err = {""};
    (void)operands;
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    const int r = asym_client_get_counters(client, &counters, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    ASYM_AUTO_FREE struct asym_metric *samples = asym_metrics_of(&counters);
    if (!samples)
        return asym_verb_reported(-ENOMEM);
    return asym_verb_reported(a->json ? print_json(samples, counters.n_counters)
                                      : asym_openmetrics_print(samples, counters.n_counters, stdout));
}

const struct asym_verb asym_verb_metrics = {
    .name = "metrics",
    .args = args,
    .args_size = sizeof(struct arguments),
    .usage = "",
    .summary = "print the counters of the running asymd as OpenMetrics text",
    .help = "Prints the counters as OpenMetrics text, which Prometheus reads. asymctl stats prints them for people.\n"
            "With --json prints an object with the same families, samples and labels.\n",
    .run = metrics,
};
