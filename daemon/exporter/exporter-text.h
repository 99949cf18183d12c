/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The counters of the running asymd, from the bus, as text. */
#ifndef ASYM_DAEMON_EXPORTER_TEXT_H
#define ASYM_DAEMON_EXPORTER_TEXT_H

#include <stdbool.h>

#include <asym/types.h>

/** The time for which an answer of asymd, or its absence, counts, from its arrival. Scrapes in this time do not ask asymd again. */
#define ASYM_EXPORTER_FRESH ASYM_SEC

/** Start with zeros. */
struct asym_exporter_text {
    struct asym_client *client; /**< NULL: not connected */
    bool good; /**< true: text is OpenMetrics; false: text is a sentence that says why there are no metrics */
    char *text;
    char *plain;      /**< the same in Prometheus' older format, if good */
    asym_usec expiry; /**< CLOCK_MONOTONIC */
};

/** Read the counters, unless the text is fresh. Returns 0; -ENOMEM: there is no text. */
int asym_exporter_text_read(struct asym_exporter_text *t);

void asym_exporter_text_done(struct asym_exporter_text *t);

#endif
