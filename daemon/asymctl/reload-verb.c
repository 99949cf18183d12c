/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl reload. */
#include "daemon/asymctl/service-verb.h"

static int reload(const void *args, char **operands)
{
    (void)operands;
    return asym_verb_change(args, "reload", asym_client_reload, "asymd has read its configuration again");
}

const struct asym_verb asym_verb_reload = {
    .name = "reload",
    .args = asym_change_args,
    .args_size = sizeof(struct asym_change_arguments),
    .usage = "",
    .summary = "make asymd read its configuration again",
    .help = "Makes the running asymd read its configuration again, as SIGHUP does. If the configuration has a\n"
            "mistake, asymd keeps the one that it has, and the verb fails with the mistake.\n",
    .run = reload,
};
