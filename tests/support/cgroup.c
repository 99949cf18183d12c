/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "support/live.h"
#include "support/process.h"
#include "support/test.h"

#define PREFIX "asymd-test-"

static char path[128];

static void write_file(const char *name, const char *text)
{
    char file[192];
    snprintf(file, sizeof file, "%s/%s", path, name);
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        fail_msg("%s: cannot write '%s': %s", file, text, strerror(errno));
    close(fd);
}

void asym_cpuset_make(const char *cpus)
{
    bool v1 = access("/sys/fs/cgroup/cpuset/cpuset.cpus", R_OK) == 0;
    const char *parent = v1 ? "/sys/fs/cgroup/cpuset" : "/sys/fs/cgroup";
    /*
     * Removes cpusets of tests that were killed. The kernel refuses to remove a cpuset with a process, so a running test keeps its
     * own.
     */
    DIR *d = opendir(parent);
    for (struct dirent *e; d && (e = readdir(d));) {
        char left[sizeof path + sizeof e->d_name];
        int pid;
        if (sscanf(e->d_name, PREFIX "%d", &pid) != 1 || pid <= 0 || asym_process_signal(pid, 0) != -ESRCH)
            continue;
        snprintf(left, sizeof left, "%s/%s", parent, e->d_name);
        rmdir(left);
    }
    if (d)
        closedir(d);
    snprintf(path, sizeof path, "%s/" PREFIX "%d", parent, (int)getpid());
    if (mkdir(path, 0755) < 0)
        fail_msg("%s: %s: this test needs root, and cgroups that may be written", path, strerror(errno));
    write_file("cpuset.cpus", cpus);
    if (v1)
        write_file("cpuset.mems", "0");
}

void asym_cpuset_set(const char *cpus)
{
    write_file("cpuset.cpus", cpus);
}

void asym_cpuset_join(pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    write_file("cgroup.procs", text);
}

void asym_cpuset_remove(void)
{
    for (double end = asym_live_now() + 5; rmdir(path) < 0 && asym_live_now() < end;)
        asym_live_sleep(0.01);
    assert_int_equal(access(path, F_OK), -1);
}
