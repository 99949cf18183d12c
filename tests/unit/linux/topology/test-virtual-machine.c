/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detection of virtual machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "linux/topology/topology.h"
#include "support/tree.h"

static bool is_virtual(const struct tree *t)
{
    struct asym_root root;
    assert_int_equal(asym_root_open(t->path, &root, NULL), 0);
    const bool result = asym_is_virtual(&root);
    asym_root_done(&root);
    return result;
}

static void each_sign_of_a_virtual_machine_counts_and_nothing_else_does(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sign_of_a_virtual_machine_counts_and_nothing_else_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
