/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The orders that a running service accepts, and the facts that it reports. The bus calls these functions, between two cycles, in
 * the thread of the event loop. They check no permission: the caller does.
 *
 * A function that fails returns -errno, with err for the user, and changes nothing:
 * -ESRCH: no such process. -EINVAL: the argument is wrong. -ENOSPC: ASYM_OVERRIDES_MAX processes have an order already.
 * -ENOMEM. -ENODATA: this machine lacks a signal that the policy needs. -EPERM: asymd cannot steer that process.
 */
#ifndef ASYM_DAEMON_ASYMD_SERVICE_CONTROL_H
#define ASYM_DAEMON_ASYMD_SERVICE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <asym/error.h>
#include <asym/snapshot.h>

#include "app/settings-setup.h"
#include "explain/explain.h"
#include "explain/monitor.h"
#include "report/openmetrics.h"

struct asym_service;

/**
 * Put back everything that is steered, and continue to observe. seconds: end by itself after that time; 0: at
 * asym_service_resume. A second call replaces the time. What asymd put back is back when it returns, unless a snapshot was in
 * progress: then it is at the end of that. The pause does not survive a restart of asymd. Frequency caps stay.
 * Returns 0; -EINVAL: seconds is above ASYM_PAUSE_MAX; -errno.
 */
int asym_service_pause(struct asym_service *s, uint64_t seconds, struct asym_error *err);

/** The longest pause with an end, in seconds: a year. */
#define ASYM_PAUSE_MAX ((uint64_t)366 * 24 * 3600)

/** Steer again. Does nothing if asymd is not paused. */
void asym_service_resume(struct asym_service *s);

/**
 * Switch the policy; name may be "auto". permanent: also write it to rules.d/zz-policy.conf beside the configuration, which
 * a later start or reload reads last; else it holds until asymd ends, and a reload keeps it. by: the user who asks.
 * Returns 0; -EINVAL: no such policy; -ENODATA, -errno of the file and others. Then the old policy stays in force.
 */
int asym_service_set_policy(struct asym_service *s, const char *name, bool permanent, uid_t by, struct asym_error *err);

/** Read the configuration again, as SIGHUP does, or keep the old one. Returns 0; -errno with err. */
int asym_service_reload(struct asym_service *s, struct asym_error *err);

/**
 * Set a rule for one process until it ends. It goes before the rules of the configuration. IGNORE puts back everything of the
 * process at once. by: the user who asks. This order and the next are for the process of which pid is a TID. The number of a job
 * stands for each process that the job has now (asym_observer_job_each): what some of them refuse is no error. -ENOSPC: too many
 * processes have an order.
 */
int asym_service_set_program(struct asym_service *s, int32_t pid, enum asym_rule_action action, uid_t by,
                             struct asym_error *err);

/**
 * Undo asym_service_set_program: the rules of the configuration decide again. Takes back threads that asymd leaves alone since
 * their mask was changed or the kernel refused; and a mask of its own excludes no thread of it any more. What a thread has now
 * counts as its own.
 */
int asym_service_unset_program(struct asym_service *s, int32_t pid, struct asym_error *err);

/** The answer of asym_service_set_rule. */
struct asym_set_rule {
    char file[ASYM_PATH_SIZE];
    char before[256]; /**< the name of the rule that matches the program, too, and comes first; "": none does */
};

/**
 * Write a lasting rule for the program of the process to rules.d/50-set-NAME.conf beside the configuration, and read the
 * configuration again. It matches the path of the executable, and the name of the process where that is another one, as that of a
 * script is. action: as of asym_service_parse_action; "auto": remove the file.
 * Returns 0; -EEXIST: the file is of another program; -errno; with err. On failure the file is as it was.
 */
int asym_service_set_rule(struct asym_service *s, int32_t pid, const char *action, uid_t by, struct asym_set_rule *ret,
                          struct asym_error *err);

/** Parse "fast", "slow", "ignore" or "steer". Returns 0; -EINVAL with err. */
int asym_service_parse_action(const char *text, enum asym_rule_action *ret, struct asym_error *err);

/** The facts of a running service. The path of profiles is valid until the next cycle. */
struct asym_service_facts {
    const char *policy; /**< static */
    /**
     * Such as "the default", "set by FILE:LINE, which overrides rr at FILE:LINE", "set by uid 0 over the bus, which overrides ...
     * until asymd ends", "auto chose it: there is only one CPU; auto is set by --policy".
     */
    char policy_reason[1024];
    const struct asym_machine *machine;
    bool assumed_slow; /**< some CPUs only count as slow */
    bool paused;
    uint64_t paused_until; /**< microseconds, CLOCK_REALTIME; 0: until resume, or not paused */
    uint64_t started;      /**< microseconds, CLOCK_REALTIME */
    asym_usec interval;    /**< between two samples now */
    double cpu_usage;      /**< share of one CPU over the last budget window */
    uint32_t threads_steered;
    uint32_t orders;     /**< processes that a user has given a rule */
    char observer[128];  /**< what asymd reads, as the report on the status shows it */
    const char *profile; /**< path of the file of profiles; "": none */
};

void asym_service_facts(const struct asym_service *s, struct asym_service_facts *ret);

/** Returns the resident bytes of asymd, without its helpers. It reads a file; 0: it cannot. */
uint64_t asym_service_memory(void);

/** Call say for each thing that asymd cannot do here, as a sentence (asym_coverage_each). */
void asym_service_lacks(const struct asym_service *s, void (*say)(void *ctx, bool missed, const char *sentence),
                        void *ctx);

/** The settings of a thread now, and those that it would have without asymd. */
struct asym_service_thread {
    struct asym_mask mask, own_mask; /**< offline CPUs are left out of mask */
    int nice, own_nice;
};

/** Returns 0; -ESRCH: it has ended; -errno. */
int asym_service_settings_of(const struct asym_service *s, const struct asym_taskid *id,
                             struct asym_service_thread *ret);

/**
 * Write id, flags, rule and orders of the process of a thread, which may sleep. Returns 1; 0: the rules were not compared with it
 * yet; -ESRCH: it has ended, or is not known.
 */
int asym_service_proc_of(struct asym_service *s, const struct asym_taskid *id, struct asym_proc *ret);

struct asym_service_explanation {
    struct asym_explanation e;
    struct asym_engine_config config;
    struct asym_proc proc;
    struct asym_service_thread thread;
};

/**
 * Explain a PID or a TID (explain/explain.h) by what the monitor remembers. It reads nothing, so the caller can ask it before
 * it knows whether the user may see the process. Texts of the result are valid until the next cycle. Returns 0; -ESRCH.
 */
int asym_service_explain(struct asym_service *s, int32_t id, struct asym_service_explanation *ret);

/** The same, but it reads the masks, nice values and rule of today: it spends CPU time for that process. */
int asym_service_explain_now(struct asym_service *s, int32_t id, struct asym_service_explanation *ret);

/** Returns the counters of the service, those of the bus too, as the report on them lists them; NULL: no memory. */
json_t *asym_service_counters(const struct asym_service *s);

/** Returns CLOCK_REALTIME in microseconds for a CLOCK_MONOTONIC time of the monitor; 0 for 0. */
uint64_t asym_service_realtime(asym_usec monotonic);

#endif
