/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl resume. */
#include "base/macro.h"
#include "daemon/asymctl/service-verb.h"

static int resume(const void *args, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    ASYM_CLEANUP(asym_client_status_done) struct asym_client_status state = {.version = NULL};
    struct asym_error err = {""};
    (void)operands;
    const int status = asym_verb_connect(&client);
    if (status != ASYM_EXIT_DONE)
        return status;
    int r = asym_client_get_status(client, &state, &err);
    if (r >= 0)
        r = asym_client_resume(client, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    return asym_verb_report_change(args, "resume",
                                   state.paused ? "asymd steers again" : "asymd was not paused: it steers");
}

const struct asym_verb asym_verb_resume = {
    .name = "resume",
    .args = asym_change_args,
    .args_size = sizeof(struct asym_change_arguments),
    .usage = "",
    .summary = "let a paused asymd steer again",
    .help = "Ends asymctl pause before its time is over.\n",
    .run = resume,
};
