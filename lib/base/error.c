/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <asym/types.h>
#include <asym/plan.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/macro.h"

int asym_fail(struct asym_error *err, int code, const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return code;
}

/* The errno table: the kind of outcome for each errno of a failed change. */
static const struct {
    int error;
    enum asym_outcome_kind kind;
    /* in each row: when the kernel or asymd returns the error */
} rows[] = {
    {0, ASYM_OUTCOME_DONE},
    {-ESRCH, ASYM_OUTCOME_GONE},   /* the thread has ended */
    {-ENOENT, ASYM_OUTCOME_GONE},  /* its directory in /proc is gone */
    {-EAGAIN, ASYM_OUTCOME_RETRY}, /* the fork guard has released the thread, or the kernel lacks a resource */
    {-EINTR, ASYM_OUTCOME_RETRY},
    {-ENOMEM, ASYM_OUTCOME_RETRY},
    {-EINVAL, ASYM_OUTCOME_RETRY}, /* sched_setaffinity: the mask has no CPU of the cpuset. The cpuset has just changed,
                                         or a CPU went offline. The next snapshot shows it */
    {-ECANCELED, ASYM_OUTCOME_RETRY},  /* a dry run changes nothing */
    {-EBUSY, ASYM_OUTCOME_HANDS_OFF},  /* another program has changed the mask that asymd set */
    {-ESTALE, ASYM_OUTCOME_HANDS_OFF}, /* the nice value */
    {-EPERM, ASYM_OUTCOME_HANDS_OFF},  /* asymd has no permission */
    {-EACCES, ASYM_OUTCOME_HANDS_OFF},
};

enum asym_outcome_kind asym_outcome_of(int error)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].error == error)
            return rows[i].kind;
    return ASYM_OUTCOME_HANDS_OFF;
}
