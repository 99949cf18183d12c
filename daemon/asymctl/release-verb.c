/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl release. */
#include "base/macro.h"
#include "daemon/asymctl/process-name.h"

static int release(const void *args, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    struct asym_error err = {""};
    struct asym_process_operand process;
    const int status = asym_verb_process_and_connect("release", operands[0], &process, &client);
    if (status != ASYM_EXIT_DONE)
        return status;
    const int r = asym_client_release(client, process.pid, &err);
    return r < 0
               ? asym_verb_call_failed(r, &err)
               : asym_verb_report_change(args, "release",
                                         "asymd leaves process %s alone until it ends; asymctl adopt %u takes it back",
                                         process.text, process.pid);
}

const struct asym_verb asym_verb_release = {
    .name = "release",
    .args = asym_change_args,
    .args_size = sizeof(struct asym_change_arguments),
    .operands = ASYM_OPERANDS_MUST,
    .usage = "PID|NAME",
    .needs = "a PID or the name of a program",
    .summary = "restore the masks and nice values of a process, and leave it alone until it ends",
    .help = "asymd gives the threads of the process their own affinity and nice value back, and leaves them alone\n"
            "until the process ends, or until asymctl adopt.\n",
    .run = release,
};
