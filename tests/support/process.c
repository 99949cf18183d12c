/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/process.h"

#include <errno.h>
#include <signal.h>

int asym_process_signal(pid_t pid, int signal)
{
    if (pid <= 1)
        return -EINVAL;
    return kill(pid, signal) < 0 ? -errno : 0;
}

int asym_process_signal_group(pid_t leader, int signal)
{
    if (leader <= 1)
        return -EINVAL;
    return kill(-leader, signal) < 0 ? -errno : 0;
}
