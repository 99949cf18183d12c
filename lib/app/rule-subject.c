/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/rule-subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/observe/proc-owner.h"
#include "linux/observe/proc-reader.h"
#include "linux/sys/proc-parse.h"

static void read_exe(const struct asym_root *root, int32_t pid, struct asym_rule_subject_texts *ret)
{
    char path[64];
    snprintf(path, sizeof path, "proc/%d/exe", (int)pid);
    const ssize_t n = readlinkat(root->fd, path, ret->exe, sizeof ret->exe - 1);
    if (n < 0)
        return;
    ret->exe[n] = '\0';
    ret->of.exe = ret->exe;
}

static void read_cgroup(const struct asym_root *root, int32_t pid, struct asym_rule_subject_texts *ret)
{
    char path[64], text[8192];
    const char *name;
    size_t len;
    snprintf(path, sizeof path, "proc/%d/cgroup", (int)pid);
    const ssize_t n = asym_root_read(root, path, text, sizeof text);
    if (n < 0 || asym_parse_cgroup_name(text, (size_t)n, &name, &len) < 0)
        return;
    snprintf(ret->cgroup, sizeof ret->cgroup, "%.*s", (int)len, name);
    ret->of.cgroup = ret->cgroup;
}

static int read_cmdline(const struct asym_root *root, int32_t pid, uint64_t start, struct asym_rule_subject_texts *ret)
{
    const struct asym_read_request request = {.pid = pid, .what = ASYM_READ_CMDLINE, .start = start};
    ASYM_AUTO_FREE struct asym_read_answer *answer = malloc(sizeof *answer);
    if (!answer)
        return -ENOMEM;
    asym_proc_read(root, &request, answer);
    if (answer->error == 0) {
        memcpy(ret->cmdline, answer->cmdline, sizeof ret->cmdline);
        ret->of.cmdline = ret->cmdline;
    }
    return answer->error == -ESRCH ? -ESRCH : 0;
}

int asym_rule_subject_read(const struct asym_root *root, int32_t pid, struct asym_rule_subject_texts *ret,
                           struct asym_error *err)
{
    struct asym_stat stat;
    uint32_t uid;
    *ret = (struct asym_rule_subject_texts){.of = {.uid = (uid_t)-1}};
    int r = asym_read_stat(root, pid, 0, &stat);
    if (r == -ENOENT || r == -ESRCH)
        return asym_fail(err, -ESRCH, "there is no process %d", (int)pid);
    if (r >= 0) {
        memcpy(ret->comm, stat.comm, sizeof ret->comm);
        ret->of.comm = ret->comm;
        read_exe(root, pid, ret);
        read_cgroup(root, pid, ret);
        if (asym_proc_owner(root, pid, &uid) == 0)
            ret->of.uid = (uid_t)uid;
        r = read_cmdline(root, pid, stat.start, ret);
    }
    return r < 0 ? asym_fail(err, r, "cannot read process %d: %s", (int)pid, strerror(-r)) : 0;
}
