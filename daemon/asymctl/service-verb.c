/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/service-verb.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "app/crash-recovery.h"
#include "app/settings-setup.h"
#include "base/macro.h"
#include "base/parse.h"
#include "base/text.h"
#include "daemon/asymctl/polkit-agent.h"
#include "report/json.h"

const struct asym_arg asym_change_args[] = {
    ASYM_ARG_OF(struct asym_change_arguments, "--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

/* Without an answer, the masks of an asymd that died would go unnoticed: nothing else says so. */
static void say_left_over(void)
{
    const struct asym_invocation cli = {.config = NULL};
    struct asym_settings *settings;
    struct asym_error err = {""};
    char left[160];
    if (asym_run_load_lenient(&cli, &settings, NULL) < 0)
        return;
    if (asym_crash_recovery_left(settings->daemon.state_dir, true, left, sizeof left))
        asym_verb_fail(ASYM_EXIT_DONE, (asym_fail(&err, 0, "%s: " ASYM_RESTORE_COMMAND, left), err.text));
    asym_settings_free(settings);
}

int asym_verb_no_service(const char *message)
{
    const int status = asym_verb_fail(ASYM_EXIT_NO_SERVICE, message);
    say_left_over();
    return status;
}

int asym_verb_call_failed(int r, const struct asym_error *err)
{
    const enum asym_exit status = asym_exit_status(r);
    return status == ASYM_EXIT_NO_SERVICE ? asym_verb_no_service(err->text) : asym_verb_fail(status, err->text);
}

int asym_verb_connect(struct asym_client **ret)
{
    struct asym_error err = {""};
    const int r = asym_client_open(ret, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    asym_client_around_changes(*ret, asym_polkit_agent_start, asym_polkit_agent_stop);
    return ASYM_EXIT_DONE;
}

int asym_verb_report(struct asym_client *client, const char *topic, struct asym_error *err)
{
    ASYM_AUTO_JSON json_t *report = NULL;
    const int r = asym_client_get_report(client, topic, 0, &report, err);
    return r < 0 ? asym_verb_call_failed(r, err)
                 : asym_verb_reported(asym_json_print(asym_json_escape(report), stdout));
}

bool asym_verb_is_pid(const char *text, uint32_t *ret)
{
    uint64_t n;
    if (asym_parse_u64(text, strlen(text), &n) < 0 || n == 0 || n > INT_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}

int asym_verb_report_change(const struct asym_change_arguments *a, const char *verb, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (a->json)
        return asym_verb_reported(asym_json_print(json_pack("{s:s, s:s, s:o}", "schema", "asymctl.change/1", "verb",
                                                            verb, "text", asym_json_bytes(text, strlen(text))),
                                                  stdout));
    puts(text);
    return ASYM_EXIT_DONE;
}
