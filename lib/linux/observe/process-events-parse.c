/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/observe/process-events-parse.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <string.h>

/* Unpack both headers and an event. Other kernel versions may send a shorter or a longer event. 0; -EINVAL. */
static int unwrap(const char *datagram, size_t len, struct cn_msg *ret_message, struct proc_event *ret)
{
    struct nlmsghdr header;
    struct proc_event e = {0};
    const size_t before = sizeof header + sizeof *ret_message;
    if (len < before)
        return -EINVAL;
    memcpy(&header, datagram, sizeof header);
    memcpy(ret_message, datagram + sizeof header, sizeof *ret_message);
    if (header.nlmsg_len < before || header.nlmsg_len > len || ret_message->id.idx != CN_IDX_PROC ||
        ret_message->id.val != CN_VAL_PROC || ret_message->len > header.nlmsg_len - before ||
        ret_message->len < offsetof(struct proc_event, event_data))
        return -EINVAL;
    memcpy(&e, datagram + before, ret_message->len < sizeof e ? ret_message->len : sizeof e);
    *ret = e;
    return 0;
}

static int translate(const struct proc_event *e, size_t len, struct asym_process_event *b)
{
    size_t needed = 0;
    switch (e->what) {
    case PROC_EVENT_FORK:
        needed = sizeof e->event_data.fork;
        b->kind = e->event_data.fork.child_pid == e->event_data.fork.child_tgid ? ASYM_PROCESS_EVENT_FORK
                                                                                : ASYM_PROCESS_EVENT_CLONE;
        b->pid = e->event_data.fork.child_pid;
        b->tgid = e->event_data.fork.child_tgid;
        /* For a new thread, the kernel reports the parent of its process, not the thread that created it. */
        b->parent_pid = b->kind == ASYM_PROCESS_EVENT_FORK ? e->event_data.fork.parent_pid : 0;
        b->parent_tgid = b->kind == ASYM_PROCESS_EVENT_FORK ? e->event_data.fork.parent_tgid : b->tgid;
        break;
    case PROC_EVENT_EXEC:
        needed = sizeof e->event_data.exec;
        b->kind = ASYM_PROCESS_EVENT_EXEC;
        b->pid = e->event_data.exec.process_pid;
        b->tgid = e->event_data.exec.process_tgid;
        break;
    case PROC_EVENT_EXIT:
        needed = 2 * sizeof e->event_data.exit.process_pid; /* Linux 4.18 added the fields of parents */
        b->kind = ASYM_PROCESS_EVENT_EXIT;
        b->pid = e->event_data.exit.process_pid;
        b->tgid = e->event_data.exit.process_tgid;
        break;
    default:
        return -ENOMSG;
    }
    return len < offsetof(struct proc_event, event_data) + needed || b->pid <= 0 || b->tgid <= 0 ? -EINVAL : 0;
}

int asym_process_events_parse(const void *datagram, size_t len, struct asym_process_event *ret)
{
    struct cn_msg message;
    struct proc_event e;
    int r = unwrap(datagram, len, &message, &e);
    if (r < 0)
        return r;
    struct asym_process_event b = {.when = e.timestamp_ns / 1000};
    r = translate(&e, message.len, &b);
    if (r == 0)
        *ret = b;
    return r;
}

int asym_process_events_parse_answer(const void *datagram, size_t len, uint32_t asked, int *ret_status)
{
    struct cn_msg message;
    struct proc_event e;
    int r = unwrap(datagram, len, &message, &e);
    if (r < 0)
        return r;
    if (e.what != PROC_EVENT_NONE || message.ack != asked + 1)
        return -ENOMSG;
    *ret_status = (int)e.event_data.ack.err;
    return 0;
}
