/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Are the CPUs those of a virtual machine, whose kinds and speeds are what the hypervisor says? */
#ifndef ASYM_LINUX_VIRTUAL_H
#define ASYM_LINUX_VIRTUAL_H

#include <stdbool.h>

#include "linux/root.h"

/** By the CPU flag of hypervisors, Xen's directory, the device tree, or the product name. False where nothing says so. */
bool asym_is_virtual(const struct asym_root *root);

#endif
