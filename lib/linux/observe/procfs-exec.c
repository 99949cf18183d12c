/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognizes an exec from the addresses of stack and code of two samples. */
#include "linux/observe/procfs-internal.h"

#define PF_EXITING 0x00000004u

/*
 * The kernel's event comes late, or not at all: asymd has no proc connector, or events were lost. Then the place of the stack shows
 * that the process has called exec.
 */
bool asym_procfs_has_executed(const struct asym_image *was, const struct asym_image *is)
{
    return was->stack != 0 && is->stack != 0 && (was->stack != is->stack || was->code != is->code);
}

/*
 * The thread that called exec may have the leader's number already, and its own mask. The kernel frees the memory of the previous
 * program now, which takes tens of milliseconds a gigabyte.
 */
bool asym_procfs_is_executing(const struct asym_process *proc, const struct asym_stat *stat)
{
    return proc->start == stat->start && proc->image.stack != 0 && stat->image.code == 0 &&
           !(stat->flags & PF_EXITING) && stat->state != 'Z' && stat->state != 'X';
}

bool asym_procfs_executes(const struct asym_process *proc, const struct asym_stat *stat)
{
    return asym_procfs_is_executing(proc, stat) || asym_procfs_has_executed(&proc->image, &stat->image);
}

/* While the leader is a zombie, the process has no addresses. An exec by another thread would have given it a living leader. */
bool asym_procfs_runs_same(const struct asym_process *proc, const struct asym_stat *stat)
{
    if (stat->state == 'Z')
        return true;
    return proc->image.stack != 0 && proc->image.stack == stat->image.stack && proc->image.code == stat->image.code;
}
