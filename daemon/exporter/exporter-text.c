/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/exporter/exporter-text.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "client/client.h"
#include "report/openmetrics.h"

static int print_counters(const struct asym_client_counters *counters, FILE *out)
{
    ASYM_AUTO_FREE struct asym_metric *metrics = calloc(counters->n_counters + 1, sizeof *metrics);
    if (!metrics)
        return -ENOMEM;
    for (size_t i = 0; i < counters->n_counters; i++)
        metrics[i] = (struct asym_metric){
            .name = counters->counters[i].name,
            .kind = counters->counters[i].kind,
            .whole = asym_metric_whole(counters->counters[i].value),
            .fraction = counters->counters[i].value,
        };
    return asym_openmetrics_print(metrics, counters->n_counters, out);
}

/* Returns 0; the errors of client/client.h. */
static int read_counters(struct asym_exporter_text *t, struct asym_client_counters *ret, struct asym_error *err)
{
    int r = t->client ? 0 : asym_client_open(&t->client, err);
    if (r >= 0)
        r = asym_client_get_counters(t->client, ret, err);
    if (r < 0)
        asym_client_close(ASYM_TAKE(t->client));
    return r;
}

/* asymd may have been restarted since the last scrape. Then the old connection fails, and a new one does not. */
static int read_counters_again(struct asym_exporter_text *t, struct asym_client_counters *ret, struct asym_error *err)
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

/* The bus daemon closes the connection of a user that it does not know. */
static void print_failure(const char *why, FILE *out)
{
    fprintf(out, "%s\n", *why ? why : "asymd did not answer");
    /* The service stops first: libnss-systemd shows systemd-sysusers the name of a running service's user. */
    if (is_unknown_to_the_bus(getuid()))
        fprintf(out,
                "If asymd runs, the bus daemon does not know user %u, and closes its connections. Root can mend that: "
                "systemctl stop asymd-exporter.socket asymd-exporter && systemd-sysusers asymd-exporter.conf && "
                "systemctl start asymd-exporter.socket\n",
                (unsigned)getuid());
}

static int print(struct asym_exporter_text *t, FILE *out, bool *ret_good)
{
    ASYM_CLEANUP(asym_client_counters_done) struct asym_client_counters counters = {.counters = NULL};
    struct asym_error err = {""};
    const int r = read_counters_again(t, &counters, &err);
    *ret_good = r >= 0;
    if (r >= 0)
        return print_counters(&counters, out);
    print_failure(err.text, out);
    return 0;
}

/* Returns the text in the older format; NULL: no memory. */
static char *make_plain(const char *openmetrics)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const int r = out ? asym_prometheus_text_print(openmetrics, out) : -ENOMEM;
    if (!out || (fclose(out) == 0 && r >= 0))
        return text;
    free(text);
    return NULL;
}

int asym_exporter_text_read(struct asym_exporter_text *t)
{
    char *text = NULL, *plain = NULL;
    size_t size;
    bool good = false;
    if (t->text && asym_clock_now() < t->expiry)
        return 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return -ENOMEM;
    int r = print(t, out, &good);
    if (fclose(out) != 0 || r < 0 || (good && !(plain = make_plain(text)))) {
        free(text);
        return -ENOMEM;
    }
    free(t->text);
    free(t->plain);
    t->text = text;
    t->plain = plain;
    t->good = good;
    /* asymd may have taken seconds to answer, so the time before the read does not count. */
    t->expiry = asym_clock_now() + ASYM_EXPORTER_FRESH;
    return 0;
}

void asym_exporter_text_done(struct asym_exporter_text *t)
{
    asym_client_close(t->client);
    free(t->text);
    free(t->plain);
}
