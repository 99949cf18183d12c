/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The mark that the BPF programs put into the task storage of a thread. */
#ifndef ASYM_LINUX_OBSERVE_PHASES_TAG_H
#define ASYM_LINUX_OBSERVE_PHASES_TAG_H

#include <linux/types.h>

/** slot 0: the thread is dead. */
struct tag {
    __u32 slot, app;
};

#endif
