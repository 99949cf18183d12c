/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses well-formed and malformed datagrams of the proc connector. */
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

#include "linux/observe/process-events.h"
#include "support/test.h"

/* struct cn_msg ends in a flexible array, which ISO C allows only at the end of a struct. */
struct message {
    struct cb_id id;
    uint32_t seq, ack;
    uint16_t len, flags;
};
_Static_assert(sizeof(struct message) == sizeof(struct cn_msg), "as the kernel has it");

struct datagram {
    struct nlmsghdr header;
    struct message message;
    struct proc_event event;
} __attribute__((packed));

#define BEFORE (sizeof(struct nlmsghdr) + sizeof(struct cn_msg))

static struct datagram make(const struct proc_event *e)
{
    struct datagram d;
    memset(&d, 0, sizeof d);
    d.header.nlmsg_len = sizeof d;
    d.header.nlmsg_type = NLMSG_DONE;
    d.message.id.idx = CN_IDX_PROC;
    d.message.id.val = CN_VAL_PROC;
    d.message.len = sizeof d.event;
    memcpy((char *)&d + BEFORE, e, sizeof *e);
    return d;
}

static struct proc_event fork_event(int child_pid, int child_tgid)
{
    struct proc_event e;
    memset(&e, 0, sizeof e);
    e.what = PROC_EVENT_FORK;
    e.timestamp_ns = UINT64_C(12345678901);
    e.event_data.fork.parent_pid = 11;
    e.event_data.fork.parent_tgid = 10;
    e.event_data.fork.child_pid = child_pid;
    e.event_data.fork.child_tgid = child_tgid;
    return e;
}

/* The buffer has exactly that size, so that a sanitiser detects a read past its end. */
static int parse(const struct datagram *d, size_t len, struct asym_process_event *ret)
{
    char *exact = malloc(len ? len : 1);
    assert_non_null(exact);
    memcpy(exact, d, len);
    int r = asym_process_events_parse(exact, len, ret);
    free(exact);
    return r;
}

TEST(fork_events_of_processes_name_their_creator)
{
    struct proc_event e = fork_event(20, 20);
    const struct datagram d = make(&e);
    struct asym_process_event b;
    assert_int_equal(parse(&d, sizeof d, &b), 0);
    assert_int_equal(b.kind, ASYM_PROCESS_EVENT_FORK);
    assert_true(b.pid == 20 && b.tgid == 20 && b.parent_pid == 11 && b.parent_tgid == 10);
    assert_true(b.when == 12345678);
}

TEST(fork_events_of_threads_name_their_process_only)
{
    struct proc_event e = fork_event(21, 20);
    const struct datagram d = make(&e);
    struct asym_process_event b;
    assert_int_equal(parse(&d, sizeof d, &b), 0);
    assert_int_equal(b.kind, ASYM_PROCESS_EVENT_CLONE);
    assert_true(b.pid == 21 && b.tgid == 20 && b.parent_pid == 0 && b.parent_tgid == 20);
}

TEST(exec_and_exit)
{
    struct proc_event e = {.what = PROC_EVENT_EXEC};
    struct asym_process_event b;
    e.event_data.exec.process_pid = e.event_data.exec.process_tgid = 30;
    struct datagram d = make(&e);
    assert_int_equal(parse(&d, sizeof d, &b), 0);
    assert_true(b.kind == ASYM_PROCESS_EVENT_EXEC && b.pid == 30 && b.tgid == 30 && b.parent_pid == 0);
    memset(&e, 0, sizeof e);
    e.what = PROC_EVENT_EXIT;
    e.event_data.exit.process_pid = 31;
    e.event_data.exit.process_tgid = 30;
    d = make(&e);
    assert_int_equal(parse(&d, sizeof d, &b), 0);
    assert_true(b.kind == ASYM_PROCESS_EVENT_EXIT && b.pid == 31 && b.tgid == 30);
    /* Kernels before 4.18 send the event without the parents. */
    d.message.len = (uint16_t)(offsetof(struct proc_event, event_data) + offsetof(struct exit_proc_event, parent_pid));
    d.header.nlmsg_len = (uint32_t)(BEFORE + d.message.len);
    assert_int_equal(parse(&d, d.header.nlmsg_len, &b), 0);
    assert_true(b.pid == 31 && b.tgid == 30);
}

TEST(other_events_are_passed_over)
{
    static const unsigned others[] = {PROC_EVENT_NONE, PROC_EVENT_UID, PROC_EVENT_GID, PROC_EVENT_SID,
                                      PROC_EVENT_COMM, 0x40000000,     UINT32_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct proc_event e = fork_event(20, 20);
        struct asym_process_event b = {.pid = -5};
        memcpy(&e, &others[i], sizeof others[i]);
        const struct datagram d = make(&e);
        assert_int_equal(parse(&d, sizeof d, &b), -ENOMSG);
        assert_int_equal(b.pid, -5);
    }
}

TEST(every_length_that_is_too_short_is_refused)
{
    struct proc_event e = fork_event(20, 20);
    const size_t needed = BEFORE + offsetof(struct proc_event, event_data) + sizeof e.event_data.fork;
    for (size_t len = 0; len < needed; len++) {
        struct datagram d = make(&e);
        struct asym_process_event b = {.pid = -5};
        /* The datagram is shorter than its headers say. */
        assert_int_equal(parse(&d, len, &b), -EINVAL);
        /* The netlink header has a shorter length. */
        d.header.nlmsg_len = (uint32_t)len;
        assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
        /* The connector header has a shorter length. */
        d = make(&e);
        if (len >= BEFORE) {
            d.message.len = (uint16_t)(len - BEFORE);
            assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
        }
        assert_int_equal(b.pid, -5);
    }
}

TEST(lengths_that_lie_are_refused)
{
    struct proc_event e = fork_event(20, 20);
    struct asym_process_event b;
    struct datagram d = make(&e);
    d.message.len = UINT16_MAX;
    assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
    d = make(&e);
    d.header.nlmsg_len = UINT32_MAX;
    assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
}

TEST(messages_of_another_connector_are_refused)
{
    struct proc_event e = fork_event(20, 20);
    struct asym_process_event b;
    struct datagram d = make(&e);
    d.message.id.idx = CN_IDX_PROC + 1;
    assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
    d = make(&e);
    d.message.id.val = CN_VAL_PROC + 1;
    assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
}

TEST(numbers_that_are_no_threads_are_refused)
{
    static const int bad[][2] = {{0, 20}, {20, 0}, {-1, -1}, {INT32_MIN, 5}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct proc_event e = fork_event(bad[i][0], bad[i][1]);
        const struct datagram d = make(&e);
        struct asym_process_event b;
        assert_int_equal(parse(&d, sizeof d, &b), -EINVAL);
    }
}

TEST(an_answer_is_known_by_what_was_asked)
{
    struct proc_event e = {.what = PROC_EVENT_NONE};
    int status = -1;
    e.event_data.ack.err = EPERM;
    struct datagram d = make(&e);
    d.message.ack = 78;
    assert_int_equal(asym_process_events_parse_answer(&d, sizeof d, 76, &status), -ENOMSG);
    assert_int_equal(asym_process_events_parse_answer(&d, 20, 77, &status), -EINVAL);
    assert_int_equal(status, -1);
    assert_int_equal(asym_process_events_parse_answer(&d, sizeof d, 77, &status), 0);
    assert_int_equal(status, EPERM);
    e = fork_event(20, 20);
    d = make(&e);
    d.message.ack = 78;
    assert_int_equal(asym_process_events_parse_answer(&d, sizeof d, 77, &status), -ENOMSG);
}

TEST_MAIN
