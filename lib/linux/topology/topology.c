/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/topology/topology.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "linux/sys/cgroup-mounts.h"
#include "linux/topology/topology-internal.h"

/* A machine of 1024 CPUs takes a fraction of a second. */
#define LOAD_SECONDS 10

/* The memory that both processes see. Pointers in kinds are to constants, which both have at the same address. */
struct loaded {
    struct asym_machine machine;
    struct asym_figures kinds;
    struct asym_error err;
    int result;
};

/* The child may crash: it leaves no core file, and no sanitizer reports the crash. */
static _Noreturn void load_and_exit(const struct asym_root *root, const char *xml, struct loaded *l)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM};
    const struct rlimit no_core = {0, 0};
    sigset_t none;
    setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; i < ASYM_LENGTH(fatal); i++)
        signal(fatal[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(LOAD_SECONDS);
    l->result = asym_topology_load(root, xml, &l->machine, &l->kinds, &l->err);
    _exit(0);
}

static int await(pid_t pid, const char *name, const char *remedy, struct asym_error *err)
{
    int status;
    pid_t r;
    do
        r = waitpid(pid, &status, 0);
    while (r < 0 && errno == EINTR);
    /* A child that nothing is known of (the calling program ignores SIGCHLD) has left its result, or none. */
    if (r < 0 || !WIFSIGNALED(status))
        return 0;
    const int signal = WTERMSIG(status);
    return asym_fail(err, -EINVAL, "%s: hwloc %s (%s)%s", name,
                     signal == SIGALRM ? "does not finish reading it" : "crashes when it reads it", strsignal(signal),
                     remedy);
}

static void unmap_p(struct loaded **l)
{
    if (*l != MAP_FAILED)
        munmap(*l, sizeof **l);
}

static int load_apart(const struct asym_root *root, const char *xml, struct asym_machine *m,
                      struct asym_figures *ret_kinds, struct asym_error *err)
{
    const char *name = xml ? xml : root->path, *remedy = xml ? ": the XML is damaged or was changed by hand" : "";
    ASYM_CLEANUP(unmap_p)
    struct loaded *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l != MAP_FAILED)
        *l = (struct loaded){.machine = *m, .result = -EIO, .err = {"hwloc: its process has left no result"}};
    const pid_t pid = l != MAP_FAILED ? fork() : -1;
    if (pid < 0) {
        const int error = -errno;
        return asym_fail(err, error, "%s: cannot read it in a child process: %s", name, strerror(-error));
    }
    if (pid == 0)
        load_and_exit(root, xml, l);
    const int r = await(pid, name, remedy, err);
    if (r < 0)
        return r;
    if (l->result < 0)
        return asym_fail(err, l->result, "%s", l->err.text);
    *m = l->machine;
    *ret_kinds = l->kinds;
    return 0;
}

static const char online_path[] = "sys/devices/system/cpu/online";

/* If this file is not a CPU list, hwloc assumes a machine of one CPU and reports no error. */
static int check_online(const struct asym_root *root, struct asym_error *err)
{
    const char *path = online_path;
    struct asym_mask online;
    switch (asym_root_read_list(root, path, &online)) {
    case -EINVAL:
        return asym_fail(err, -EINVAL, "%s: %s: not a list of CPUs", root->path, path);
    case -ERANGE:
        return asym_fail(err, -E2BIG, "%s: CPUs above number %d are online, which asymd does not support", root->path,
                         ASYM_MAX_CPUS - 1);
    case 0:
        if (asym_mask_empty(&online))
            return asym_fail(err, -ENODEV, "%s: %s: no CPU is online", root->path, path);
        return 0;
    default: /* captures of older tools have no such file: hwloc then reads each CPU's own file */
        return 0;
    }
}

/* Reads the effective cpuset of the root of the visible cgroup tree; a container sees its own root. */
static bool read_effective(const struct asym_root *root, const struct asym_mask *online, struct asym_mask *ret)
{
    static const enum asym_cgroup_kind kinds[] = {ASYM_CGROUP_UNIFIED, ASYM_CGROUP_CPUSET};
    struct asym_cgroup_mounts mounts;
    asym_cgroup_mounts_read(root, &mounts);
    for (size_t i = 0; i < ASYM_LENGTH(kinds); i++) {
        struct asym_mask effective;
        if (asym_cgroup_cpus(root, &mounts, kinds[i], "", 0, &effective) < 0)
            continue;
        effective = asym_mask_and(&effective, online);
        if (asym_mask_empty(&effective))
            continue;
        *ret = effective;
        return true;
    }
    return false;
}

int asym_topology_cpus(const struct asym_root *root, struct asym_mask *ret_online, struct asym_mask *ret_usable)
{
    struct asym_mask online;
    int r = asym_root_read_list(root, online_path, &online);
    if (r < 0)
        return r;
    if (!read_effective(root, &online, ret_usable))
        *ret_usable = online;
    *ret_online = online;
    return 0;
}

/*
 * Reads which CPUs the kernel was told at boot to set apart. With nohz_full one CPU has to keep the tick: where no more is left,
 * the user wanted less noise on all CPUs, not CPUs for a few chosen threads.
 */
static void read_isolated(const struct asym_root *root, struct asym_machine *m)
{
    struct asym_mask tickless;
    if (asym_root_read_list(root, "sys/devices/system/cpu/isolated", &m->isolated) < 0)
        m->isolated = (struct asym_mask){0};
    if (asym_root_read_list(root, "sys/devices/system/cpu/nohz_full", &tickless) < 0)
        return;
    tickless = asym_mask_or(&tickless, &m->isolated);
    const struct asym_mask left = asym_mask_minus(&m->usable, &tickless);
    if (asym_mask_count(&left) > 1)
        m->isolated = tickless;
}

/* Returns whether the machine would have fast and slow CPUs if all online CPUs were usable. whole: without speeds yet. */
static bool is_asymmetric_outside(const struct asym_root *root, const struct asym_figures *kinds,
                                  struct asym_machine *whole)
{
    struct asym_topology_notes notes = {0};
    if (asym_mask_equal(&whole->usable, &whole->online))
        return false;
    whole->usable = whole->online;
    asym_topology_speeds(root, kinds, whole, &notes);
    return asym_machine_finish(whole) == 0 && asym_machine_is_asymmetric(whole);
}

int asym_topology_read(const struct asym_root *root, const char *xml, struct asym_machine *ret_machine,
                       struct asym_topology_notes *notes, struct asym_error *err)
{
    struct asym_machine m = {.generation = ret_machine->generation + 1};
    struct asym_topology_notes said = {0};
    struct asym_figures kinds = {0};
    int r = xml ? 0 : check_online(root, err);
    if (r < 0)
        return r;
    r = load_apart(root, xml, &m, &kinds, err);
    if (r < 0)
        return r;
    if (!xml) {
        read_effective(root, &m.online, &m.usable);
        read_isolated(root, &m);
    }
    ASYM_MASK_FOREACH (cpu, &m.online)
        if (m.cpus[cpu].core < 0)
            asym_mask_set(&said.unplaced, (unsigned)cpu);
    struct asym_machine whole = m;
    asym_topology_speeds(xml ? NULL : root, &kinds, &m, &said);
    r = asym_machine_finish(&m);
    if (r < 0)
        return asym_fail(err, r, "%s: no usable CPU", xml ? xml : root->path);
    said.hidden = !asym_machine_is_asymmetric(&m) && is_asymmetric_outside(xml ? NULL : root, &kinds, &whole);
    *ret_machine = m;
    if (notes)
        *notes = said;
    return 0;
}

/* Bytes read of each file. The flags of the first CPU are in the first 4 KiB of /proc/cpuinfo. */
#define READ_SIZE 8192

/*
 * A file, and a word that it contains in a virtual machine; "": only virtual machines have the file. The words of DMI are those
 * of systemd-detect-virt (src/basic/virt.c), without those that real machines have, too: "Oracle Corporation", "Amazon EC2".
 */
static const struct {
    const char *path, *word;
} indicators[] = {
    {"proc/cpuinfo", " hypervisor"},                            /* CPUID leaf 1, ECX 31: all hypervisors on x86 */
    {"proc/cpuinfo", "User Mode Linux"},                        /* vendor_id */
    {"sys/hypervisor/type", ""},                                /* Xen */
    {"proc/xen/capabilities", ""},                              /* Xen, older kernels */
    {"proc/sysinfo", "VM00 Control Program"},                   /* z/VM and KVM on s390 */
    {"proc/device-tree/hypervisor/compatible", ""},             /* KVM, Xen and VMware on Arm */
    {"sys/firmware/devicetree/base/hypervisor/compatible", ""}, /* the same in captures with this path */
    {"proc/device-tree/compatible", "linux,dummy-virt"}, /* QEMU, kvmtool, crosvm, Firecracker on Arm: no DMI there */
    {"sys/firmware/devicetree/base/compatible", "linux,dummy-virt"},
    {"proc/device-tree/compatible", "riscv-virtio"}, /* QEMU */
    {"proc/device-tree/model", "emulated by qemu"},  /* pSeries */
    {"proc/device-tree/ibm,partition-name", ""},     /* PowerVM */
    /* Guests of Arm and of Parallels, bhyve and Apple have no CPU flag: their DMI names the maker or the product. */
    {"sys/class/dmi/id/sys_vendor", "QEMU"},
    {"sys/class/dmi/id/sys_vendor", "VMware"},
    {"sys/class/dmi/id/sys_vendor", "VMW"},
    {"sys/class/dmi/id/sys_vendor", "innotek GmbH"}, /* VirtualBox */
    {"sys/class/dmi/id/sys_vendor", "Xen"},
    {"sys/class/dmi/id/sys_vendor", "Parallels"},
    {"sys/class/dmi/id/sys_vendor", "OpenStack"},
    {"sys/class/dmi/id/sys_vendor", "KubeVirt"},
    {"sys/class/dmi/id/sys_vendor", "BHYVE"},
    {"sys/class/dmi/id/sys_vendor", "FreeBSD"}, /* bhyve */
    {"sys/class/dmi/id/bios_vendor", "BHYVE"},
    {"sys/class/dmi/id/bios_vendor", "Parallels"},
    {"sys/class/dmi/id/bios_vendor", "Xen"},
    {"sys/class/dmi/id/bios_vendor", "Bochs"},
    {"sys/class/dmi/id/board_vendor", "Parallels"},
    {"sys/class/dmi/id/product_name", "KVM"},
    {"sys/class/dmi/id/product_name", "QEMU"},
    {"sys/class/dmi/id/product_name", "Virtual Machine"}, /* Hyper-V; Parallels has it in a longer name */
    {"sys/class/dmi/id/product_name", "Parallels"},
    {"sys/class/dmi/id/product_name", "VMware"},
    {"sys/class/dmi/id/product_name", "VirtualBox"},
    {"sys/class/dmi/id/product_name", "Apple Virtualization"}, /* Docker Desktop, lima, UTM */
    {"sys/class/dmi/id/product_name", "BHYVE"},
    {"sys/class/dmi/id/product_name", "Google Compute Engine"},
    {"sys/class/dmi/id/product_version", "Hyper-V"},
};

bool asym_is_virtual(const struct asym_root *root)
{
    for (size_t i = 0; i < ASYM_LENGTH(indicators); i++) {
        char text[READ_SIZE];
        if (asym_root_read(root, indicators[i].path, text, sizeof text) > 0 && strstr(text, indicators[i].word))
            return true;
    }
    return false;
}
