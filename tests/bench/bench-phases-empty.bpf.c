/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that do nothing, where those of lib/linux/observe/phases.bpf.c hang: the part of their cost that is the kernel's. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#define EMPTY(name)                                                                                                    \
    SEC("tp_btf/" #name)                                                                                               \
    int on_##name(const void *ctx)                                                                                     \
    {                                                                                                                  \
        return ctx == 0;                                                                                               \
    }

char gpl[] SEC("license") = "GPL";

EMPTY(sched_switch)
EMPTY(sched_wakeup)
EMPTY(sched_wakeup_new)
EMPTY(sched_process_fork)
EMPTY(sched_process_exec)
