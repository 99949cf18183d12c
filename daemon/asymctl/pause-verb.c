/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl pause. */
#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/parse.h"
#include "base/text.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/wording.h"

/* Rounds up to whole seconds. */
static int parse_seconds(const char *operand, uint64_t *ret)
{
    struct asym_error err;
    char text[128];
    asym_usec t;
    if (asym_parse_duration(operand, strlen(operand), &t) >= 0 && t > 0) {
        *ret = (t + ASYM_SEC - 1) / ASYM_SEC;
        return ASYM_EXIT_DONE;
    }
    const bool is_number = *operand && strspn(operand, "0123456789.") == strlen(operand);
    asym_fail(&err, -EINVAL, "pause: '%s' %s; accepted are times such as 90s, 1h30min or 2days",
              asym_text_escape(operand, strlen(operand), text, sizeof text),
              is_number ? "has no unit" : "cannot be read as a time");
    return asym_verb_fail(ASYM_EXIT_USAGE, err.text);
}

static int report(const struct asym_client_status *s, const struct asym_change_arguments *a)
{
    char until[ASYM_UNITS_SIZE] = "asymctl resume";
    if (!s->paused)
        return asym_verb_report_change(a, "pause", "asymd is not paused any more: another user has resumed it");
    if (s->paused_until > 0)
        asym_units_date(s->paused_until, until);
    return asym_verb_report_change(a, "pause",
                                   "asymd has restored all masks and nice values, and steers nothing until %s%s", until,
                                   s->paused_until > 0 ? ", or until asymctl resume" : "");
}

static int pause_asymd(const void *args, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_client_status_done) struct asym_client_status state = {.version = NULL};
    struct asym_error err = {""};
    uint64_t seconds = 0;
    int status = operands[0] ? parse_seconds(operands[0], &seconds) : ASYM_EXIT_DONE;
    if (status == ASYM_EXIT_DONE)
        status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    int r = asym_client_pause(client, seconds, &err);
    if (r >= 0)
        r = asym_client_get_status(client, &state, &err);
    return r < 0 ? asym_verb_call_failed(r, &err) : report(&state, args);
}

const struct asym_verb asym_verb_pause = {
    .name = "pause",
    .args = asym_change_args,
    .args_size = sizeof(struct asym_change_arguments),
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[TIME]",
    .summary = "restore all masks and nice values, and steer nothing for a time, or until asymctl resume",
    .help = "asymd gives every thread its own affinity and nice value back, and steers nothing for TIME, such as\n"
            "90s, 1h30min or 2days; without TIME until asymctl resume. It goes on to observe.\n",
    .run = pause_asymd,
};
