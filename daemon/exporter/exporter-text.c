/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The counters of the running asymd, from the bus, as text. */
#include "daemon/exporter/exporter.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "client/client.h"
#include "report/json.h"
#include "report/openmetrics.h"

/* Returns 0; the errors of client/client.h. */
static int read_counters(struct asym_exporter_text *t, json_t **ret, struct asym_error *err)
{
    int r = t->client ? 0 : asym_client_open(&t->client, err);
    if (r >= 0)
        r = asym_client_get_report(t->client, "counters", 0, ret, err);
    if (r < 0)
        asym_client_close(ASYM_TAKE(t->client));
    return r;
}

/* asymd may have been restarted since the last scrape. Then the old connection fails, and a new one does not. */
static int read_counters_again(struct asym_exporter_text *t, json_t **ret, struct asym_error *err)
{
    const bool had_connection = t->client;
    const int r = read_counters(t, ret, err);
    return r < 0 && had_connection && r != -ETIMEDOUT ? read_counters(t, ret, err) : r;
}

/* The user IDs that systemd gives to DynamicUser=. systemd hides their names from the bus daemon, whatever they are here. */
enum { DYNAMIC_UID_MIN = 61184, DYNAMIC_UID_MAX = 65519 };

static bool is_unknown_to_the_bus(uid_t uid)
{
    errno = 0;
    /* A name service that fails sets another error. */
    return (uid >= DYNAMIC_UID_MIN && uid <= DYNAMIC_UID_MAX) ||
           (!getpwuid(uid) && (errno == 0 || errno == ENOENT || errno == ESRCH));
}

/* Returns a sentence; NULL: no memory. The bus daemon closes the connection of a user that it does not know. */
static char *make_failure(const char *why)
{
    char *text = NULL;
    const uid_t uid = getuid();
    const char *said = *why ? why : "asymd did not answer";
    /* The service stops first: libnss-systemd shows systemd-sysusers the name of a running service's user. */
    const int n = is_unknown_to_the_bus(uid)
                      ? asprintf(&text,
                                 "%s\nIf asymd runs, the bus daemon does not know user %u, and closes its connections. "
                                 "Root can mend that: systemctl stop asymd-exporter.socket asymd-exporter && "
                                 "systemd-sysusers asymd-exporter.conf && systemctl start asymd-exporter.socket\n",
                                 said, (unsigned)uid)
                      : asprintf(&text, "%s\n", said);
    return n < 0 ? NULL : text;
}

static void forget(struct asym_exporter_text *t)
{
    free(ASYM_TAKE(t->text));
    free(ASYM_TAKE(t->plain));
}

/* Returns the text, which print writes; NULL: no memory. */
static char *make_text(int (*print)(const struct asym_metric *metrics, size_t n, FILE *out), const json_t *counters)
{
    char *text = NULL;
    size_t size, n;
    FILE *out = open_memstream(&text, &size);
    ASYM_AUTO_FREE struct asym_metric *metrics = asym_metrics_read(counters, &n);
    const int r = out && metrics ? print(metrics, n, out) : -ENOMEM;
    if (out && fclose(out) == 0 && r >= 0)
        return text;
    free(text);
    return NULL;
}

int asym_exporter_text_read(struct asym_exporter_text *t)
{
    ASYM_AUTO_JSON json_t *counters = NULL;
    struct asym_error err = {""};
    if (t->text && asym_clock_now() < t->expiry)
        return 0;
    forget(t);
    t->good = read_counters_again(t, &counters, &err) >= 0;
    t->text = t->good ? make_text(asym_openmetrics_print, counters) : make_failure(err.text);
    t->plain = t->good ? make_text(asym_prometheus_print, counters) : NULL;
    if (!t->text || (t->good && !t->plain)) {
        forget(t);
        return -ENOMEM;
    }
    /* asymd may have taken seconds to answer, so the time before the read does not count. */
    t->expiry = asym_clock_now() + ASYM_EXPORTER_FRESH;
    return 0;
}

void asym_exporter_text_done(struct asym_exporter_text *t)
{
    asym_client_close(t->client);
    forget(t);
}
