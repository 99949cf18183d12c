/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Appends what asymd knows of CPUs, applications and threads to a message, as dictionaries (org.asymd.Manager(5)). */
#ifndef ASYM_DAEMON_ASYMD_BUS_DESCRIBE_H
#define ASYM_DAEMON_ASYMD_BUS_DESCRIBE_H

#include <systemd/sd-bus.h>

#include "bus/bus.h"
#include "explain/monitor.h"

struct asym_service;

/** The most threads of one application that a reply describes: each costs system calls in the thread of the event loop. */
enum { ASYM_BUS_OWN_THREADS = 64 };

/** Write the reason of a decision as valid UTF-8. Returns buf. */
const char *asym_bus_reason(const struct asym_reason *reason, const double figure[2], char *buf, size_t size);

/**
 * Returns whether the caller may know of the process: root always; others, where /proc is mounted with hidepid, if it is theirs.
 * id: the process or a thread of it, as asymd knew it. A cgroup, and what has ended: root only there.
 */
bool asym_bus_may_see(const struct asym_service *s, const struct asym_bus_caller *caller, const struct asym_taskid *id);

/** The same for an application: a job is its leader's user's, or after its end that of the process that ran most. */
bool asym_bus_may_see_app(const struct asym_service *s, const struct asym_bus_caller *caller,
                          const struct asym_monitor_app *app);

/** Append one dictionary a{sv}. All return 0 or more; -errno. */
int asym_bus_append_cpu(sd_bus_message *m, const struct asym_service *s, const struct asym_bus_caller *caller,
                        unsigned cpu);
/** Appends nothing if the caller may not see it. */
int asym_bus_append_app(sd_bus_message *m, const struct asym_service *s, const struct asym_bus_caller *caller,
                        const struct asym_monitor_app *app);
/** The same without that check, with its rule, its busiest threads, and how many of the last snapshot with it are left out. */
int asym_bus_append_whole_app(sd_bus_message *m, const struct asym_service *s, const struct asym_monitor_app *app);
/** With its last decisions. The masks of a thread that has ended are empty. */
int asym_bus_append_thread(sd_bus_message *m, const struct asym_service *s, const struct asym_monitor_thread *thread);

#endif
