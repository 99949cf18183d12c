/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/steered.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/mask.h"
#include "linux/sys/thread.h"
#include "support/live.h"
#include "support/test.h"
#include "support/tree.h"

struct asym_mask all_cpus, first, last;
struct asym_ledger *ledger;
struct asym_actuator *actuator;
static struct tree tree;

int steered_set_up(void **state)
{
    setpriority(PRIO_PROCESS, 0, 0);
    assert_int_equal(asym_thread_get_mask(0, &all_cpus), 0);
    if (asym_mask_count(&all_cpus) < 2)
        fail_msg("these tests need two CPUs, there is one");
    first = last = (struct asym_mask){0};
    asym_mask_set(&first, (unsigned)asym_mask_next(&all_cpus, 0));
    asym_mask_set(&last, (unsigned)asym_mask_next(&all_cpus, asym_mask_next(&all_cpus, 0) + 1));
    tree_make(&tree);
    return 0;
}

int steered_tear_down(void **state)
{
    close_ledger();
    tree_remove(&tree);
    return 0;
}

void open_ledger(void)
{
    struct asym_error err = {""};
    if (asym_ledger_open(tree.path, &ledger, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(asym_actuator_linux_new(ledger, &actuator), 0);
}

void close_ledger(void)
{
    if (actuator)
        actuator->close(actuator);
    asym_ledger_close(ledger);
    actuator = NULL;
    ledger = NULL;
}

struct asym_restore_report restore(void)
{
    struct asym_restore_report report;
    asym_ledger_restore(ledger, &report);
    assert_int_equal(report.failed, 0);
    assert_int_equal(asym_ledger_count(ledger), 0);
    return report;
}

static struct asym_taskid id_of(pid_t tgid, pid_t tid)
{
    struct asym_stat stat;
    assert_int_equal(asym_thread_get_stat(tgid, tid, &stat), 0);
    return (struct asym_taskid){.tid = tid, .tgid = tgid, .start = stat.start};
}

struct asym_action action(enum asym_action_kind kind, pid_t tgid, pid_t tid, const struct asym_mask *expect,
                          const struct asym_mask *mask)
{
    return (struct asym_action){.kind = kind,
                                .id = id_of(tgid, tid),
                                .expect = *expect,
                                .mask = *mask,
                                .full_cpuset = asym_mask_equal(mask, &all_cpus)};
}

int apply(const struct asym_action *a)
{
    struct asym_outcome outcome = {.error = 1};
    assert_int_equal(actuator->apply(actuator, a, 1, &outcome), 0);
    assert_int_equal(outcome.kind, asym_outcome_of(outcome.error));
    return outcome.error;
}

int steer(pid_t tgid, pid_t tid, const struct asym_mask *expect, const struct asym_mask *mask)
{
    const struct asym_action a = action(ASYM_ACTION_STEER, tgid, tid, expect, mask);
    return apply(&a);
}

bool has(pid_t tid, const struct asym_mask *mask)
{
    struct asym_mask found;
    assert_int_equal(asym_thread_get_mask(tid, &found), 0);
    return asym_mask_equal(&found, mask);
}

void await(const atomic_int *what, int value)
{
    double end = asym_live_now() + ASYM_LIVE_PATIENCE;
    while (*what < value && asym_live_now() < end)
        asym_live_sleep(0.0002);
    assert_true(*what >= value);
}
