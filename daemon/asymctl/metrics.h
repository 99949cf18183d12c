/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The counters of a running asymd, for the verbs that print them. */
#ifndef ASYM_DAEMON_ASYMCTL_METRICS_H
#define ASYM_DAEMON_ASYMCTL_METRICS_H

#include <stddef.h>

#include "client/client.h"
#include "report/openmetrics.h"

/** Returns the counters as samples, which borrow their strings; NULL: no memory. Free it. */
struct asym_metric *asym_metrics_of(const struct asym_client_counters *counters);

#endif
