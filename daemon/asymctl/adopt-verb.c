/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl adopt. */
#include "base/macro.h"
#include "daemon/asymctl/process-name.h"

static int adopt(const void *args, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    struct asym_error err = {""};
    struct asym_process_operand process;
    const int status = asym_verb_process_and_connect("adopt", operands[0], &process, &client);
    if (status != ASYM_EXIT_DONE)
        return status;
    const int r = asym_client_adopt(client, process.pid, &err);
    return r < 0 ? asym_verb_call_failed(r, &err)
                 : asym_verb_report_change(args, "adopt",
                                           "asymd may steer process %s again; asymctl release %u makes it stop",
                                           process.text, process.pid);
}

const struct asym_verb asym_verb_adopt = {
    .name = "adopt",
    .args = asym_change_args,
    .args_size = sizeof(struct asym_change_arguments),
    .operands = ASYM_OPERANDS_MUST,
    .usage = "PID|NAME",
    .needs = "a PID or the name of a program",
    .summary = "let asymd steer a process again that it leaves alone",
    .help = "asymd leaves a thread alone after its affinity was changed from outside. With this verb it takes the\n"
            "threads of the process back. The affinity that they have now counts as their own. Undoes asymctl\n"
            "release, too.\n",
    .run = adopt,
};
