/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The errno table: what a failure to change a thread means for that thread. */
#include <asym/plan.h>

#include <errno.h>
#include <stddef.h>

#include "base/macro.h"

static const struct {
    int error;
    enum asym_verdict verdict;
    /* when the kernel (or asymd) says it */
} rows[] = {
    {0, ASYM_VERDICT_DONE},
    {-ESRCH, ASYM_VERDICT_GONE},   /* the thread has ended */
    {-ENOENT, ASYM_VERDICT_GONE},  /* its directory in /proc has */
    {-EAGAIN, ASYM_VERDICT_RETRY}, /* released by the guard meanwhile; or the kernel was short of something */
    {-EINTR, ASYM_VERDICT_RETRY},
    {-ENOMEM, ASYM_VERDICT_RETRY},
    {-EINVAL, ASYM_VERDICT_RETRY},    /* sched_setaffinity: mask and cpuset have no CPU in common: the cpuset has just
                                      changed, or a CPU has just gone: the next snapshot knows */
    {-ECANCELED, ASYM_VERDICT_RETRY}, /* a dry run changes nothing */
    {-EBUSY, ASYM_VERDICT_HANDS_OFF}, /* somebody else has changed what asymd had set */
    {-EPERM, ASYM_VERDICT_HANDS_OFF}, /* not ours to steer */
    {-EACCES, ASYM_VERDICT_HANDS_OFF},
};

enum asym_verdict asym_verdict_of(int error)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].error == error)
            return rows[i].verdict;
    return ASYM_VERDICT_HANDS_OFF;
}
