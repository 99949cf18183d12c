/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl policy. */
#include <string.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/wording.h"
#include "report/json.h"

struct arguments {
    bool permanent, json;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--permanent", BOOL, NULL, permanent, .help = "also write NAME to the configuration, for the next start"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    {.option = {.key = NULL}},
};

static int report(const struct asym_client_status *s, bool json)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    char text[4096], policy[128], reason[2048], named[1024];
    if (json)
        return asym_json_print(json_pack("{s:s, s:o, s:o}", "schema", "asymctl.policy/1", "policy",
                                         asym_json_bytes(s->policy, strlen(s->policy)), "reason",
                                         asym_json_bytes(s->policy_reason, strlen(s->policy_reason))),
                               stdout);
    asym_name_user_of_policy(s->policy_reason, named, sizeof named);
    snprintf(text, sizeof text, "%s (%s)", asym_text_escape(s->policy, strlen(s->policy), policy, sizeof policy),
             asym_text_escape(named, strlen(named), reason, sizeof reason));
    asym_columns_wrap(&terminal, text, 0, 2);
    putchar('\n');
    return 0;
}

static int policy(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_client_status_done) struct asym_client_status state = {.version = NULL};
    const struct arguments *a = parsed;
    struct asym_error err = {""};
    int r = 0;
    if (a->permanent && !operands[0])
        return asym_verb_fail(ASYM_EXIT_USAGE, "policy: --permanent needs the NAME of a policy");
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    if (operands[0])
        r = asym_client_set_policy(client, operands[0], a->permanent, &err);
    if (r >= 0)
        r = asym_client_get_status(client, &state, &err);
    return r < 0 ? asym_verb_call_failed(r, &err) : asym_verb_reported(report(&state, a->json));
}

const struct asym_verb asym_verb_policy = {
    .name = "policy",
    .args = args,
    .args_size = sizeof(struct arguments),
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[NAME]",
    .summary = "print the policy of the running asymd, or switch to another",
    .help = "Prints the policy that is in force, and why it is. With NAME, asymd switches to that policy at once;\n"
            "auto lets asymd choose. asymctl policies lists them. The switch lasts until asymd ends; with\n"
            "--permanent asymd also writes it to its configuration. If the policy cannot run here, the verb says\n"
            "why, and nothing changes.\n",
    .run = policy,
};
