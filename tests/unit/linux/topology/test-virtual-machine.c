/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detection of virtual machines. */

#include "linux/topology/topology.h"
#include "support/tree.h"
#include "support/test.h"

static bool is_virtual(const struct tree *t)
{
    struct asym_root root;
    assert_int_equal(asym_root_open(t->path, &root, NULL), 0);
    const bool result = asym_is_virtual(&root);
    asym_root_done(&root);
    return result;
}

TEST(each_sign_of_a_virtual_machine_counts_and_nothing_else_does)
{
    static const struct {
        const char *path, *text;
        bool is_virtual;
    } rows[] = {
        {"proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme hypervisor lahf_lm\n", true},
        {"proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme lahf_lm\n", false},
        {"sys/hypervisor/type", "xen\n", true},
        {"proc/device-tree/hypervisor/compatible", "linux,kvm", true},
        {"sys/class/dmi/id/sys_vendor", "QEMU\n", true},
        {"sys/class/dmi/id/sys_vendor", "LENOVO\n", false},
        {"sys/class/dmi/id/product_name", "VMware Virtual Platform\n", true},
        {"sys/class/dmi/id/product_name", "Virtual Machine\n", true},
        {"sys/class/dmi/id/product_name", "Apple Virtualization Generic Platform\n", true},
        {"sys/class/dmi/id/product_name", "Parallels ARM Virtual Machine\n", true},
        {"sys/class/dmi/id/product_name", "KVM\n", true},
        {"sys/class/dmi/id/product_name", "Google Compute Engine\n", true},
        {"sys/class/dmi/id/product_name", "MacBookPro18,3\n", false},
        {"sys/class/dmi/id/product_version", "Hyper-V UEFI Release v4.1\n", true},
        {"sys/class/dmi/id/product_version", "ThinkPad T14 Gen 2i\n", false},
        {"sys/class/dmi/id/sys_vendor", "Parallels Software International Inc.\n", true},
        {"sys/class/dmi/id/sys_vendor", "Xen\n", true},
        {"sys/class/dmi/id/sys_vendor", "Apple Inc.\n", false},
        {"sys/class/dmi/id/sys_vendor", "Microsoft Corporation\n", false}, /* a Surface */
        {"sys/class/dmi/id/sys_vendor", "Oracle Corporation\n", false},    /* a SPARC or x86 server, too */
        {"sys/class/dmi/id/bios_vendor", "BHYVE\n", true},
        {"sys/class/dmi/id/bios_vendor", "American Megatrends Inc.\n", false},
        {"proc/device-tree/compatible", "linux,dummy-virt", true},
        {"proc/device-tree/compatible", "raspberrypi,5-model-b", false},
        {"proc/device-tree/model", "IBM pSeries (emulated by qemu)", true},
        {"proc/sysinfo", "VM00 Control Program:   KVM/Linux\n", true},
        {"proc/sysinfo", "LPAR Number:          7\n", false},
        {"proc/cpuinfo", "vendor_id\t: User Mode Linux\n", true},
        {"sys/class/dmi/id/product_name", "20XW00AAGE\n", false},
        {"sys/class/dmi/id/product_name", "", false},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        struct tree t;
        tree_make(&t);
        tree_write(&t, "proc/version", "Linux\n");
        assert_false(is_virtual(&t));
        tree_write(&t, rows[i].path, "%s", rows[i].text);
        assert_int_equal(is_virtual(&t), rows[i].is_virtual);
        tree_remove(&t);
    }
}

TEST_MAIN
