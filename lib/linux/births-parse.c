/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/births-parse.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>

int asym_births_parse(const void *datagram, size_t len, struct asym_birth *ret)
{
    struct nlmsghdr header;
    struct cn_msg message;
    struct proc_event e = {0};
    const size_t before = sizeof header + sizeof message;
    if (len < before + offsetof(struct proc_event, event_data))
        return -EINVAL;
    memcpy(&header, datagram, sizeof header);
    memcpy(&message, (const char *)datagram + sizeof header, sizeof message);
    if (header.nlmsg_len > len || message.id.idx != CN_IDX_PROC || message.id.val != CN_VAL_PROC ||
        message.len > len - before)
        return -EINVAL;
    memcpy(&e, (const char *)datagram + before, message.len < sizeof e ? message.len : sizeof e);
    struct asym_birth b = {.when = e.timestamp_ns / 1000};
    switch (e.what) {
    case PROC_EVENT_FORK:
        b.kind = e.event_data.fork.child_pid == e.event_data.fork.child_tgid ? ASYM_BIRTH_PROCESS : ASYM_BIRTH_THREAD;
        b.pid = e.event_data.fork.child_pid;
        b.tgid = e.event_data.fork.child_tgid;
        /* The parent of a new thread is its process's, not the thread that created it. */
        b.parent_pid = b.kind == ASYM_BIRTH_PROCESS ? e.event_data.fork.parent_pid : 0;
        b.parent_tgid = b.kind == ASYM_BIRTH_PROCESS ? e.event_data.fork.parent_tgid : b.tgid;
        break;
    case PROC_EVENT_EXEC:
        b.kind = ASYM_BIRTH_EXEC;
        b.pid = e.event_data.exec.process_pid;
        b.tgid = e.event_data.exec.process_tgid;
        break;
    case PROC_EVENT_EXIT:
        b.kind = ASYM_BIRTH_EXIT;
        b.pid = e.event_data.exit.process_pid;
        b.tgid = e.event_data.exit.process_tgid;
        break;
    default:
        return -ENOMSG;
    }
    *ret = b;
    return 0;
}
