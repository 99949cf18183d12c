/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The reports of a running asymd, as JSON: one way to read it. org.asymd.Manager(5), GetReport, has the topics and their keys.
 * What the caller may not see is left out: a program that is hidden is answered as if it did not exist.
 */
#ifndef ASYM_DAEMON_ASYMD_BUS_REPORT_H
#define ASYM_DAEMON_ASYMD_BUS_REPORT_H

#include <stdint.h>

#include "bus/bus.h"

struct asym_service;

enum {
    ASYM_BUS_APPLICATIONS = 1024,  /**< the most of one report. The owner and the text of one take 20 us */
    ASYM_BUS_OWN_THREADS = 64,     /**< the most threads of one application: each costs system calls */
    ASYM_BUS_DECISIONS = 1024,     /**< the most decisions since a number. The text of one takes about 5 us */
    ASYM_BUS_LAST_DECISIONS = 10,  /**< of an explanation */
    ASYM_BUS_KEPT = 8,             /**< reports that users other than root get again */
    ASYM_BUS_KEPT_BYTES = 1 << 20, /**< a longer text is not kept */
};

/** A user other than root gets a report again for so long, but for the one on decisions: it costs little where nothing is new. */
#define ASYM_BUS_KEEP ASYM_SEC

/** A report that was made for a user, or for all users where /proc hides nothing. */
struct asym_bus_kept {
    const char *topic; /**< NULL: none */
    uint64_t argument;
    uid_t view; /**< who may get it; -1: each user */
    asym_usec made;
    char *text;
};

/**
 * Make a report on a topic, or take one that was kept. argument: a PID, a TID or the number of a decision, else 0. *ret: its
 * text; free it. Returns 0; -EINVAL: there is no such topic, or it has no argument; -ESRCH: asymd knows no such process or
 * thread, or the caller may not see it; -ENOMEM.
 */
int asym_bus_report(struct asym_service *s, const struct asym_bus_caller *caller, const char *topic, uint64_t argument,
                    asym_usec now, char **ret);

/** Forget the kept reports that were made before; UINT64_MAX: all, as an order has changed something, or the service ends. */
void asym_bus_report_forget(struct asym_service *s, asym_usec before);

/**
 * Returns whether the caller may know of the process: root always; others, where /proc is mounted with hidepid, if it is theirs.
 * id: the process or a thread of it, as asymd knew it. A cgroup, and what has ended: root only there.
 */
bool asym_bus_may_see(const struct asym_service *s, const struct asym_bus_caller *caller, const struct asym_taskid *id);

#endif
