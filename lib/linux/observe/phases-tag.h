/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The mark that the BPF programs put into the task storage of a thread, for their sources only: include it behind struct
 * task_struct. asymd gives waits.bpf.c the map of phases.bpf.c.
 */
#ifndef ASYM_LINUX_OBSERVE_PHASES_TAG_H
#define ASYM_LINUX_OBSERVE_PHASES_TAG_H

#include <linux/types.h>

/** slot 0: the thread is dead. */
struct tag {
    __u32 slot, app;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct tag);
} tags SEC(".maps");

static __always_inline struct tag *tag_of(struct task_struct *p)
{
    return p->bpf_storage ? bpf_task_storage_get(&tags, p, 0, 0) : 0;
}

/** Returns the tag of a thread that has a slot, or NULL. */
static __always_inline struct tag *find(struct task_struct *p)
{
    struct tag *g = tag_of(p);
    return g && g->slot ? g : 0;
}

#endif
