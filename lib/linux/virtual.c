/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/virtual.h"

#include <string.h>

#include "base/macro.h"

/* A sign is in so many bytes of its file: the flags of the first CPU are in the first 4 KiB of /proc/cpuinfo. */
#define LOOK_AT 8192

/* A file, and a word that it has in a virtual machine; "": the file is there in no other. */
static const struct {
    const char *path, *word;
} signs[] = {
    {"proc/cpuinfo", " hypervisor"},                            /* CPUID leaf 1, ECX 31 */
    {"sys/hypervisor/type", ""},                                /* Xen */
    {"proc/device-tree/hypervisor/compatible", ""},             /* KVM and Xen on Arm */
    {"sys/firmware/devicetree/base/hypervisor/compatible", ""}, /* the same, where captured so */
    {"sys/class/dmi/id/sys_vendor", "QEMU"},                    /* Arm guests without a device tree */
    {"sys/class/dmi/id/product_name", "KVM Virtual Machine"},
    {"sys/class/dmi/id/product_name", "Virtual Machine"}, /* Hyper-V */
    {"sys/class/dmi/id/product_name", "VMware"},
    {"sys/class/dmi/id/product_name", "VirtualBox"},
};

bool asym_is_virtual(const struct asym_root *root)
{
    for (size_t i = 0; i < ASYM_LENGTH(signs); i++) {
        char text[LOOK_AT];
        if (asym_root_read(root, signs[i].path, text, sizeof text) > 0 && strstr(text, signs[i].word))
            return true;
    }
    return false;
}
