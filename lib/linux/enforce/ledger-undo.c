/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restores a thread's original values, or gives a child those of its creator. Reads the present values first. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/nice.h"
#include "linux/enforce/ledger-internal.h"
#include "linux/sys/thread.h"

bool asym_ledger_same_mask(const struct asym_ledger *l, const struct asym_mask *a, const struct asym_mask *b)
{
    struct asym_mask x = asym_mask_and(a, &l->online), y = asym_mask_and(b, &l->online);
    return asym_mask_equal(&x, &y);
}

struct asym_mask asym_ledger_transit(const struct asym_ledger_entry *e)
{
    struct asym_mask transit_cpu = {0};
    if (e->transit_cpu > 0)
        asym_mask_set(&transit_cpu, e->transit_cpu - 1);
    return transit_cpu;
}

/* False if the entry has no transit CPU or it is offline: an empty mask must not count as equal. */
static bool is_transit(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found)
{
    const struct asym_mask transit_cpu = asym_ledger_transit(e);
    return asym_mask_meets(&transit_cpu, &l->online) && asym_ledger_same_mask(l, found, &transit_cpu);
}

bool asym_ledger_is_set(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found)
{
    return asym_ledger_same_mask(l, found, &e->set) || asym_ledger_same_mask(l, found, &e->before) ||
           (e->under_way && is_transit(l, e, found));
}

/*
 * Programs often choose a single CPU themselves. So a child with the transit CPU alone counts as inherited only if it was
 * born while its creator may have had that mask.
 */
static bool is_inherited(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found,
                         asym_usec born)
{
    return asym_ledger_is_set(l, e, found) || (born <= e->transit_until && is_transit(l, e, found));
}

/*
 * pread at offset 0 makes sysfs produce the list anew. A file that could not be opened (no free descriptor) is tried again
 * each time.
 */
void asym_ledger_read_cpus(struct asym_ledger *l, enum asym_cpu_list list, struct asym_mask *ret)
{
    static const char *const paths[] = {
        [ASYM_CPUS_ONLINE] = "/sys/devices/system/cpu/online",
        [ASYM_CPUS_POSSIBLE] = "/sys/devices/system/cpu/possible",
        [ASYM_CPUS_ISOLATED] = "/sys/devices/system/cpu/isolated",
    };
    _Static_assert(ASYM_LENGTH(paths) == ASYM_N_CPU_LISTS, "one each");
    char text[8192];
    struct asym_mask m;
    memset(ret, list == ASYM_CPUS_ISOLATED ? 0 : 0xff, sizeof *ret);
    if (l->cpu_fds[list] < 0)
        l->cpu_fds[list] = open(paths[list], O_RDONLY | O_CLOEXEC);
    ssize_t n = l->cpu_fds[list] >= 0 ? pread(l->cpu_fds[list], text, sizeof text, 0) : -1;
    if (n > 0 && asym_mask_parse_list(text, (size_t)n, &m) == 0)
        *ret = m;
}

bool asym_ledger_is_nice_set(const struct asym_ledger_entry *e, int8_t nice)
{
    return nice == e->set_nice || nice == e->before_nice ||
           asym_nice_owes_boost(nice, ASYM_MIN(e->set_nice, e->before_nice), e->original_nice);
}

int asym_ledger_restore_nice(const struct asym_ledger_entry *e)
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
    else if (!realtime && (now.nice != nice || (now.reset_on_fork && !e->original_reset)))
        r = asym_thread_set_nice(e->id.tid, nice, now.reset_on_fork && e->original_reset);
    return r < 0 || ours ? r : 1;
}

/*
 * Since 6.2 the kernel cuts the requested mask to the cpuset whenever the cpuset changes, and uses the whole cpuset if no
 * CPU is left. This check reads two files, so it is the last one.
 */
static bool cut_by_cpuset(const struct asym_ledger *l, const struct asym_ledger_entry *e, const struct asym_mask *found)
{
    const struct asym_mask transit_cpu = asym_ledger_transit(e), *asked[] = {&e->set, &e->before, &transit_cpu};
    struct asym_mask cpuset;
    if (asym_thread_get_cpuset(&l->cgroups, e->id.tgid, e->id.tid, &cpuset) < 0)
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

/* The EBUSY of the kernel is about deadline threads. It does not say that another program has changed the thread. */
static int refusal_of(int r)
{
    return r == -EBUSY ? -EIO : r;
}

static int restore_mask(const struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    struct asym_mask found;
    int r = asym_thread_get_mask(e->id.tid, &found);
    if (r < 0)
        return r;
    bool has_it = asym_ledger_same_mask(l, &found, &e->original);
    if (!has_it && !asym_ledger_is_set(l, e, &found) && !cut_by_cpuset(l, e, &found))
        return -EBUSY;
    /*
     * Set the mask even if the thread seems to have it: the kernel may have widened the mask for a while (hotplug), and
     * still remember the narrower request.
     */
    r = refusal_of(asym_thread_set_mask(e->id.tid, &e->original, e->full_cpuset));
    return has_it && r != -ESRCH ? 0 : r;
}

int asym_ledger_restore_thread(const struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    struct asym_stat stat;
    int r = asym_thread_get_stat(e->id.tgid, e->id.tid, &stat);
    /* A /proc that does not show a thread (unmounted, hidepid) is no proof that the thread has ended. */
    if (r == -ESRCH && asym_thread_is_of(e->id.tgid, e->id.tid) == 0)
        return -EIO;
    if (r < 0 || stat.start != e->id.start)
        return r < 0 ? r : -ESRCH;
    r = restore_mask(l, e);
    /* Mask and nice value are restored independently. A refusal of the kernel counts more than a foreign value. */
    int nice = refusal_of(asym_ledger_restore_nice(e));
    return r == 0 || (r == -EBUSY && nice < 0) ? nice : r;
}

bool asym_ledger_looks_inherited(const struct asym_ledger *l, const struct asym_ledger_entry *e,
                                 const struct asym_mask *mask, int8_t nice, asym_usec born)
{
    if (!asym_ledger_same_mask(l, mask, &e->original))
        return is_inherited(l, e, mask, born);
    return e->boosted && nice > 0 && nice != e->original_nice && asym_ledger_is_nice_set(e, nice) &&
           asym_ledger_same_mask(l, mask, &e->set);
}

/* A child of e's thread has this while the thread has nice: asymd lends values with reset-on-fork. */
static int8_t passed(const struct asym_ledger_entry *e, int8_t nice)
{
    return nice == e->original_nice && !e->original_reset ? nice : ASYM_MAX(nice, 0);
}

bool asym_ledger_passes_nice(const struct asym_ledger_entry *e, int8_t nice)
{
    return nice == passed(e, e->set_nice) || nice == passed(e, e->before_nice);
}

/*
 * With reset-on-fork, a child of a thread with a negative nice value gets 0, not its creator's original value. A child of a
 * thread with a positive one gets that value, and may have raised it since. The kernel clears the flag in the child, so a
 * flag that is set there is the child's own. A thread that called exec now has the leader's TID, and keeps value and flag.
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
    const int8_t due = by_exec ? from->original_nice : passed(from, from->original_nice);
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
        r = asym_thread_set_mask(tid, &from->original, from->full_cpuset);
    int nice = repair_nice(from, tid);
    return r < 0 ? r : nice < 0 ? nice : narrow || nice > 0;
}
