/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/realtime.h"

#include <errno.h>
#include <sched.h>

bool asym_realtime_is_other(void)
{
    const int policy = sched_getscheduler(0);
    return policy >= 0 && (policy & ~SCHED_RESET_ON_FORK) == SCHED_OTHER;
}

int asym_realtime_set(bool realtime)
{
    const struct sched_param param = {.sched_priority = realtime};
    const int policy = (realtime ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK;
    return sched_setscheduler(0, policy, &param) < 0 ? -errno : 0;
}
