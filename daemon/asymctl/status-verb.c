/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command-line.h"
#include "app/machine-check.h"
#include "base/clock.h"
#include "base/macro.h"
#include "daemon/asymctl/machine-run.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/status.h"
#include "report/json.h"

/* By the variables that setlocale(3) reads. The terminal shows the characters of a locale that is not installed, too. */
static bool is_unicode(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < ASYM_LENGTH(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

/* One message: no asymd runs, how to start it, and what it could do for this machine, if that can be read. */
static int fail_without_service(const struct asym_error *no_service)
{
    const struct asym_invocation cli = {.config = NULL};
    ASYM_CLEANUP(asym_machine_run_done) struct asym_run run;
    struct asym_error err = {""};
    char verdict[400] = "", message[1500];
    if (asym_machine_run_begin(&run, &cli, ASYM_MACHINE_INSTALLED, &err) >= 0 && asym_run_policy(&run, &err) >= 0)
        asym_assess(&run, verdict, sizeof verdict);
    snprintf(message, sizeof message, "%s%s%s", no_service->text, *verdict ? ". " : "", verdict);
    return asym_verb_no_service(message);
}

static int report(struct asym_client *client, bool json)
{
    ASYM_AUTO_JSON json_t *state = NULL;
    struct asym_error err = {""};
    const int r = asym_client_get_report(client, "status", 0, &state, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    const struct asym_status s = {.of = state, .unicode = is_unicode(), .now = asym_clock_read(CLOCK_REALTIME)};
    return asym_verb_reported(json ? asym_json_print(asym_json_escape(state), stdout)
                                   : asym_status_text(&s, &terminal));
}

static int status(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    const struct asym_verb_json *a = parsed;
    struct asym_error err = {""};
    const int r = asym_client_open(&client, &err);
    if (r == -ENOTCONN && !a->json)
        return fail_without_service(&err);
    return r < 0 ? asym_verb_call_failed(r, &err) : report(client, a->json);
}

const struct asym_verb asym_verb_status = {
    .name = "status",
    .args = asym_verb_json_args,
    .summary = "print on one screen what the running asymd does",
    .help = "Prints since when asymd runs, its policy and why it is that one, which CPUs are fast, the speed of\n"
            "each core type relative to the slowest CPU, its load, the programs whose threads asymd steers now,\n"
            "how many threads it changed, what it costs, and what it cannot do here. If no asymd runs, prints\n"
            "what it could do for this machine, and ends with status 5.\n",
    .run = status,
};
