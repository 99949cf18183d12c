/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Giving a thread what it had, or what its creator had: never without a look at what it has now. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "linux/ledger-internal.h"
#include "linux/thread.h"

bool asym_ledger_same_mask(const struct asym_ledger *l, const struct asym_mask *a, const struct asym_mask *b)
{
    struct asym_mask x = asym_mask_and(a, &l->online), y = asym_mask_and(b, &l->online);
    return asym_mask_equal(&x, &y);
}

struct asym_mask asym_ledger_via(const struct asym_ledger_entry *e)
{
    struct asym_mask via = {0};
    if (e->via > 0)
        asym_mask_set(&via, e->via - 1);
    return via;
}

/* Not where there is none, or where it is offline: what is not there would be equal to nothing at all. */
static bool is_via(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found)
{
    const struct asym_mask via = asym_ledger_via(e);
    return asym_mask_meets(&via, &l->online) && asym_ledger_same_mask(l, found, &via);
}

bool asym_ledger_is_set(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found)
{
    return asym_ledger_same_mask(l, found, &e->set) || asym_ledger_same_mask(l, found, &e->before) ||
           (e->under_way && is_via(l, e, found));
}

/* One CPU is what programs choose for themselves, too: a child that has it is taken for an heir of that moment only. */
static bool is_inherited(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found,
                         asym_usec born)
{
    return asym_ledger_is_set(l, e, found) || (born <= e->via_until && is_via(l, e, found));
}

/* From the beginning sysfs writes it anew. Where it could not be opened, as descriptors were wanting, it is tried again. */
static void read_cpus(struct asym_ledger *l, enum asym_cpu_list list, struct asym_mask *ret)
{
    static const char *const paths[] = {
        [ASYM_CPUS_ONLINE] = "/sys/devices/system/cpu/online",
        [ASYM_CPUS_POSSIBLE] = "/sys/devices/system/cpu/possible",
        [ASYM_CPUS_ISOLATED] = "/sys/devices/system/cpu/isolated",
    };
    _Static_assert(ASYM_LENGTH(paths) == ASYM_N_CPU_LISTS, "one each");
    char text[8192];
    struct asym_mask m;
    if (l->cpu_fds[list] < 0)
        l->cpu_fds[list] = open(paths[list], O_RDONLY | O_CLOEXEC);
    ssize_t n = l->cpu_fds[list] >= 0 ? pread(l->cpu_fds[list], text, sizeof text, 0) : -1;
    if (n > 0 && asym_mask_parse_list(text, (size_t)n, &m) == 0)
        *ret = m;
}

void asym_ledger_renew_online(struct asym_ledger *l)
{
    struct asym_mask isolated = {0};
    memset(&l->online, 0xff, sizeof l->online);
    memset(&l->possible, 0xff, sizeof l->possible);
    read_cpus(l, ASYM_CPUS_ONLINE, &l->online);
    read_cpus(l, ASYM_CPUS_POSSIBLE, &l->possible);
    read_cpus(l, ASYM_CPUS_ISOLATED, &isolated);
    l->isolated = !asym_mask_empty(&isolated);
}

bool asym_ledger_is_nice_set(const struct asym_ledger_entry *e, int8_t nice)
{
    return nice == e->set_nice || nice == e->before_nice ||
           asym_nice_owes_boost(nice, ASYM_MIN(e->set_nice, e->before_nice), e->original_nice);
}

int asym_ledger_give_back_nice(const struct asym_ledger_entry *e)
{
    struct asym_thread_sched now;
    if (!e->boosted)
        return 0;
    int r = asym_thread_get_sched(e->id.tid, &now);
    if (r < 0)
        return r;
    const bool ours = now.nice == e->original_nice || asym_ledger_is_nice_set(e, now.nice);
    const int8_t nice = ours ? e->original_nice : now.nice;
    const bool realtime = asym_thread_is_realtime(&now);
    if (realtime && now.nice != nice)
        r = asym_thread_renice(e->id.tid, nice);
    else if (!realtime && (now.nice != nice || now.reset_on_fork != e->original_reset))
        r = asym_thread_set_nice(e->id.tid, nice, e->original_reset);
    return r < 0 || ours ? r : -EBUSY;
}

/*
 * Since 6.2 the kernel cuts what was asked for to the cpuset whenever that changes, and takes the cpuset instead when
 * nothing is left. Only asked where the mask is otherwise not known, as it takes two files.
 */
static bool cut_by_cpuset(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found)
{
    const struct asym_mask via = asym_ledger_via(e), *asked[] = {&e->set, &e->before, &via};
    struct asym_mask cpuset;
    if (asym_thread_get_cpuset(e->id.tgid, e->id.tid, &cpuset) < 0)
        return false;
    cpuset = asym_mask_and(&cpuset, &l->online);
    const size_t n = ASYM_LENGTH(asked) - (e->under_way ? 0 : 1);
    for (size_t i = 0; i < n; i++) {
        struct asym_mask cut = asym_mask_and(asked[i], &cpuset);
        if (asym_ledger_same_mask(l, found, asym_mask_empty(&cut) ? &cpuset : &cut))
            return true;
    }
    return false;
}

static int give_back_mask(const struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    struct asym_mask found;
    int r = asym_thread_get_mask(e->id.tid, &found);
    if (r < 0)
        return r;
    bool has_it = asym_ledger_same_mask(l, &found, &e->original);
    if (!has_it && !asym_ledger_is_set(l, e, &found) && !cut_by_cpuset(l, e, &found))
        return -EBUSY;
    /* Also where it seems to have it: the kernel may have widened it for a while (hotplug) and remember the request. */
    r = asym_thread_set_mask(e->id.tid, &e->original, e->whole);
    return has_it && r != -ESRCH ? 0 : r;
}

int asym_ledger_give_back(const struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    struct asym_stat stat;
    int r = asym_thread_get_stat(e->id.tgid, e->id.tid, &stat);
    if (r < 0 || stat.start != e->id.start)
        return r < 0 ? r : -ESRCH;
    r = give_back_mask(l, e);
    /* Each is given back whatever became of the other; a refusal says more than that somebody else was there. */
    int nice = asym_ledger_give_back_nice(e);
    return r == -ESRCH || (r < 0 && r != -EBUSY) || nice == 0 ? r : nice;
}

bool asym_ledger_looks_inherited(const struct asym_ledger *l, const struct asym_ledger_entry *e,
                                 const struct asym_mask *mask, int8_t nice, asym_usec born)
{
    if (!asym_ledger_same_mask(l, mask, &e->original))
        return is_inherited(l, e, mask, born);
    return e->boosted && nice > 0 && nice != e->original_nice && asym_ledger_is_nice_set(e, nice) &&
           asym_ledger_same_mask(l, mask, &e->set);
}

int8_t asym_ledger_nice_of_child(const struct asym_ledger_entry *e)
{
    return e->original_reset && e->original_nice < 0 ? 0 : e->original_nice;
}

/*
 * Reset-on-fork spares the child a negative nice value, but gives it 0, not what its creator had, and lets a positive
 * one pass, which the child may have raised since. The kernel has taken the flag from the child: what it has there is its
 * own. A thread that called exec has the leader's number now, and keeps both value and flag.
 */
static int repair_nice(const struct asym_ledger_entry *from, int32_t tid)
{
    struct asym_thread_sched now;
    if (!from->boosted)
        return 0;
    int r = asym_thread_get_sched(tid, &now);
    if (r < 0 || asym_thread_is_realtime(&now))
        return r;
    const bool by_exec = tid == from->id.tgid;
    const int8_t due = by_exec ? from->original_nice : asym_ledger_nice_of_child(from);
    const bool exact = now.nice == from->set_nice || now.nice == from->before_nice;
    const bool reset = now.nice == 0 && (from->set_nice < 0 || from->before_nice < 0);
    const bool passed = (by_exec || now.nice > 0) && asym_ledger_is_nice_set(from, now.nice);
    if (now.nice == due || !(exact || reset || passed))
        return 0;
    r = asym_thread_set_nice(tid, due, by_exec ? from->original_reset : now.reset_on_fork);
    return r < 0 ? r : 1;
}

int asym_ledger_repair(const struct asym_ledger *l, const struct asym_ledger_entry *from, int32_t tid, asym_usec born)
{
    struct asym_mask found;
    int r = asym_thread_get_mask(tid, &found);
    if (r < 0)
        return r;
    bool narrow = !asym_ledger_same_mask(l, &found, &from->original) && is_inherited(l, from, &found, born);
    if (narrow)
        r = asym_thread_set_mask(tid, &from->original, from->whole);
    int nice = repair_nice(from, tid);
    return r < 0 ? r : nice < 0 ? nice : narrow || nice > 0;
}
