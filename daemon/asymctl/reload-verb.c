/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl reload. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/wording.h"

/* A policy, a pause or an order for a process that a user has ordered outlives a reload. */
static int reload(const void *args, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_client_status_done) struct asym_client_status s = {.version = NULL};
    struct asym_error err = {""};
    char policy[128], named[1024], reason[2048], orders[96] = "";
    (void)operands;
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    int r = asym_client_reload(client, &err);
    if (r >= 0)
        r = asym_client_get_status(client, &s, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    asym_name_user_of_policy(s.policy_reason, named, sizeof named);
    if (s.orders > 0)
        snprintf(orders, sizeof orders, "; orders (set, release, adopt) for %" PRIu32 " process%s still hold", s.orders,
                 s.orders == 1 ? "" : "es");
    return asym_verb_report_change(args, "reload", "asymd has read its configuration again: policy %s (%s)%s%s",
                                   asym_text_escape(s.policy, strlen(s.policy), policy, sizeof policy),
                                   asym_text_escape(named, strlen(named), reason, sizeof reason), orders,
                                   s.paused ? "; it is still paused" : "");
}

const struct asym_verb asym_verb_reload = {
    .name = "reload",
    .args = asym_change_args,
    .args_size = sizeof(struct asym_change_arguments),
    .usage = "",
    .summary = "make asymd read its configuration again",
    .help = "Makes the running asymd read its configuration again, as SIGHUP does. If the configuration has a\n"
            "mistake, asymd keeps the one that it has, and the verb fails with the mistake. Prints the policy with\n"
            "its origin: an order of asymctl policy holds until asymd ends, asymctl pause until its end,\n"
            "and asymctl set, release and adopt until the process ends.\n",
    .run = reload,
};
