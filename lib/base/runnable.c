/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/runnable.h"

#include "base/macro.h"

/* The contract has the reasons. A wait under way is taken for up to twice as long as the waits that ended in the interval were. */
uint64_t asym_runnable_credited(const struct asym_schedstat *before, const struct asym_schedstat *now, char was,
                                char is, uint64_t interval, int64_t *balance)
{
    const uint64_t run = now->run_ns - before->run_ns, wait = now->wait_ns - before->wait_ns;
    const uint64_t turns = now->slices - before->slices;
    const int64_t span = (int64_t)interval, due = *balance + (int64_t)(run + wait);
    const int64_t under_way = is == 'R' && turns > 0 ? (int64_t)ASYM_MIN(2 * wait / turns, interval) : 0;
    int64_t count = ASYM_MIN(ASYM_MAX(due + under_way, (int64_t)run), span);
    if (was == 'R' && is == 'R' && turns == 0)
        count = span;
    int64_t left = due - count;
    if (turns > 0)
        left = ASYM_MAX(left, -under_way);
    *balance = is == 'R' ? ASYM_MIN(left, span) : 0;
    return (uint64_t)count;
}
