/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl metrics. */
#include <errno.h>

#include "base/macro.h"
#include "daemon/asymctl/metrics.h"
#include "daemon/asymctl/service-verb.h"

struct asym_metric *asym_metrics_of(const struct asym_client_counters *counters)
{
    struct asym_metric *metrics = calloc(counters->n + 1, sizeof *metrics);
    for (size_t i = 0; metrics && i < counters->n; i++)
        metrics[i] = (struct asym_metric){
            .name = counters->counter[i].name,
            .kind = counters->counter[i].kind,
            .whole = counters->counter[i].whole,
            .fraction = counters->counter[i].fraction,
        };
    return metrics;
}

static int metrics(const void *args, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_client_counters_done) struct asym_client_counters counters = {.n = 0};
    struct asym_error err = {""};
    (void)args;
    (void)operands;
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    const int r = asym_client_get_counters(client, &counters, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    ASYM_AUTO_FREE struct asym_metric *samples = asym_metrics_of(&counters);
    return asym_verb_reported(samples ? asym_openmetrics_print(samples, counters.n, stdout) : -ENOMEM);
}

const struct asym_verb asym_verb_metrics = {
    .name = "metrics",
    .usage = "",
    .summary = "print the counters of the running asymd as OpenMetrics text",
    .help = "Prints the counters as OpenMetrics text, which Prometheus reads. asymctl stats prints them for people.\n",
    .run = metrics,
};
