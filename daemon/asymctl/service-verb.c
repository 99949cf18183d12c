/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/service-verb.h"

#include <limits.h>
#include <string.h>

#include "app/crash-recovery.h"
#include "app/settings-setup.h"
#include "base/parse.h"

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
    asym_client_let_polkit_ask(*ret);
    return ASYM_EXIT_DONE;
}

bool asym_verb_is_pid(const char *text, uint32_t *ret)
{
    uint64_t n;
    if (asym_parse_u64(text, strlen(text), &n) < 0 || n == 0 || n > INT_MAX)
        return false;
    *ret = (uint32_t)n;
    return true;
}
