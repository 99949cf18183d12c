/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The state that the files of the service share, and the functions that they call of each other. */
#ifndef ASYM_DAEMON_ASYMD_SERVICE_INTERNAL_H
#define ASYM_DAEMON_ASYMD_SERVICE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <systemd/sd-event.h>

#include <asym/types.h>

#include "app/command-line.h"
#include "app/cycle.h"
#include "app/machine-setup.h"
#include "app/observer-setup.h"
#include "app/own-cpu-time.h"
#include "app/rtx-service.h"
#include "base/token-bucket.h"
#include "app/run.h"
#include "app/settings-setup.h"
#include "bus/bus.h"
#include "core/overrides.h"
#include "explain/explain.h"
#include "explain/monitor.h"
#include "linux/enforce/enforce.h"
#include "linux/observe/proc-owner.h"
#include "linux/sys/proc-parse.h"
#include "report/check.h"
#include "report/openmetrics.h"

/*
 * The messages of the service to its manager ($NOTIFY_SOCKET, sd_notify(3)), without waiting. sd_notify() and the watchdog of
 * sd-event wait while the queue of the socket is full: a manager that hangs would stop asymd. Here a state waits until there is
 * room, and a status that finds no room is dropped.
 */

enum {
    ASYM_NOTIFY_STATES = 4,      /**< the states that wait; the oldest one goes first */
    ASYM_NOTIFY_STATE_SIZE = 64, /**< bytes of a state, with the NUL */
};

struct asym_notify {
    char states[ASYM_NOTIFY_STATES][ASYM_NOTIFY_STATE_SIZE]; /* the oldest first */
    size_t n_states;
    sd_event_source *watchdog; /* NULL: the manager expects no pings */
    uint64_t period;           /* between two pings, in microseconds */
};

/**
 * Send a state ("READY=1") as soon as there is room: now, in a later call of one of these functions, or, with a watchdog, in an
 * attempt every 10 ms. States keep their order; of more than ASYM_NOTIFY_STATES the oldest is lost.
 */
void asym_notify_state(struct asym_notify *n, const char *state);

/** Send "STATUS=" and the text now, or not at all: the next one follows. */
void asym_notify_status(struct asym_notify *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * If the manager expects pings of a watchdog, send them while the event loop runs, before the work of sources with the priority
 * IMPORTANT or a lower one. Returns 0; -errno.
 */
int asym_notify_watchdog(struct asym_notify *n, sd_event *event);

struct asym_service;

/*
 * The orders that a running service accepts, and the facts that it reports. The bus calls these functions, between two cycles, in
 * the thread of the event loop. They check no permission: the caller does.
 *
 * A function that fails returns -errno, with err for the user, and changes nothing:
 * -ESRCH: no such process. -EINVAL: the argument is wrong. -ENOSPC: ASYM_OVERRIDES_MAX processes have an order already.
 * -ENOMEM. -ENODATA: this machine lacks a signal that the policy needs. -EPERM: asymd cannot steer that process.
 */

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

/** The facts of a running service that are properties of its object on the bus. */
struct asym_service_facts {
    const char *policy; /**< static */
    /**
     * Such as "the default", "set by FILE:LINE, which overrides rr at FILE:LINE", "set by uid 0 over the bus, which overrides ...
     * until asymd ends", "auto chose it: there is only one CPU; auto is set by --policy".
     */
    char policy_reason[1024];
    bool paused;
    uint64_t paused_until; /**< microseconds, CLOCK_REALTIME; 0: until resume, or not paused */
    uint32_t threads_steered;
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

/*
 * The reports of a running asymd, as JSON: one way to read it. org.asymd.Manager(5), GetReport, has the topics and their keys.
 * A report leaves out what the caller may not see: a program that is hidden is answered as if it did not exist.
 */

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

/* The bus in the service: opens it, and announces what has changed. */

/** Open the bus, after the first cycle. Without it the service still steers; the log says why there is none. */
void asym_service_bus_open(struct asym_service *s);

/** Close it, before the monitor and the event loop. */
void asym_service_bus_close(struct asym_service *s);

/**
 * Call this about every second. It announces what has changed without an order, for example when asymd has steered threads.
 */
void asym_service_bus_housekeeping(struct asym_service *s, asym_usec now);

/** The orders of users, and who hears of them. */
struct asym_service_control {
    struct asym_overrides *overrides; /* the outermost source */
    struct asym_monitor *monitor;
    sd_event_source *pause_timer; /* NULL: no pause, or one without an end */
    uint64_t paused_until;        /* CLOCK_REALTIME, microseconds; 0: no end */
    char *policy;                 /* the policy that SetPolicy has set in place of the configuration; NULL: none */
    char policy_reason[384];      /* with policy: who has set it, as users read it */
    asym_usec checked;            /* when it last looked for processes that have ended */
    uint64_t started;             /* CLOCK_REALTIME, microseconds */
    void (*changed)(struct asym_service *s); /* called when the bus may have a change to announce; NULL: no bus */
    bool waits;                              /* an order takes effect when the snapshot in progress is complete */
};

/**
 * When all samples have failed for so many intervals, asymd gives back what it has set, and ends: masks must not outlive their
 * reason. It is no count, because programs (RTX) and policies can ask for early samples.
 */
#define ASYM_SERVICE_FAILED_MOST 100

/** The answers to serial phases that the observer bpf has seen. */
struct asym_service_phases {
    struct asym_source *bpf; /* of the observer; NULL: asymd observes without it */
    struct asym_asker asker;
    bool dozes;     /* the next sample comes when a program runs */
    asym_usec next; /* when the next sample would come without that */
};

/** The measurement of who waits for whom, while users ask. */
struct asym_service_waits {
    struct asym_waits *kernel; /* NULL: no user has asked yet */
    asym_usec begun;           /* 0: it does not measure */
    asym_usec asked;           /* last */
    int refused;               /* what the kernel said of the program: asymd does not load it again */
};

struct asym_service {
    struct asym_run *run;
    sd_event *event;
    sd_event_source *timer;        /* of the samples */
    sd_event_source *housekeeping; /* its timer: the interval of the samples can be a minute */
    struct asym_ledger *ledger;
    struct asym_observer observer;
    struct asym_rtx_service *rtx; /* NULL: asymd accepts no reports of programs */
    struct asym_service_phases phases;
    struct asym_service_waits waits;
    struct asym_actuator *actuator;
    struct asym_cycle cycle;
    struct asym_budget budget;
    size_t n_hangs;                      /* reads that did not answer in time, as last logged */
    size_t n_changes;                    /* the number of changes to threads since the start */
    char reload_error[256];              /* why asymd refused the configuration on disk; "": it is in force */
    struct asym_check rivals;            /* programs and settings that place the same threads */
    struct asym_rivals *rivals_look;     /* the look for them in progress; NULL: none */
    asym_usec rivals_at;                 /* when the last one ended; 0: never */
    struct asym_bus *bus;                /* NULL: users cannot ask asymd */
    struct asym_service_facts announced; /* when the bus announced changes last */
    struct asym_bus_kept kept[ASYM_BUS_KEPT];
    struct asym_proc_owners *owners; /* NULL: each question reads the start time of the process */
    struct asym_notify notify;
    int error;
    bool sampling;           /* a snapshot is not complete */
    asym_usec failing_since; /* since then each sample has failed; 0: the last one did not */
    bool ledger_failed;      /* asymd cannot write the ledger, and has logged it */
    bool cpus_failed;        /* asymd cannot read the CPUs, and has logged it */
    bool failure_logged, lost_events_logged, no_process_events_logged, no_urgency_logged; /* asymd logs each once */
    bool
        hidepid; /* /proc hides processes, or asymd does not know: users other than root learn of their own ones only */
    struct asym_self_affinity self_affinity;
    struct asym_service_control control;
    struct asym_cpu_load load; /* of the last second, while it is read */
    asym_usec load_asked;      /* when a user asked for the CPUs last */
    uint64_t abilities;        /* asym_watch_abilities, when they were last read */
    struct asym_cpu_facts cpu_facts;
};

/* service-loop.c: the event loop. */

/** Call this before any thread starts: sd-event takes signals from a signalfd, so every thread has to block them. */
void asym_service_block_signals(void);

/** Put the timers, the signals, the watchdog and RTX on a new event loop. 0; -errno. */
int asym_service_attach(struct asym_service *s);

/** Run the event loop until it ends. Returns the exit status; -errno. */
int asym_service_loop(struct asym_service *s);

/* service-phases.c: an early plan, or an exchange, when a program has come down to one runnable thread. */

/** Listen to the observer bpf, if there is one. Returns 0; -errno. */
int asym_service_phases_attach(struct asym_service *s);

/** Call this about every second, and when the policy or the configuration has changed. */
void asym_service_phases_housekeeping(struct asym_service *s);

/**
 * Returns when the next sample is due, which would be after wait: while no program runs, with the next housekeeping. The kernel
 * tells when one does, and then the sample comes at once, but not before that wait is over.
 */
asym_usec asym_service_phases_sleep(struct asym_service *s, asym_usec now, asym_usec wait);

/** Call this after a snapshot, which takes the kernel's events: if a program runs, the next sample comes as without a doze. */
void asym_service_phases_wake_up(struct asym_service *s);

/* service-waits.c: who waits for whom, measured while users ask. */

/**
 * Make the report on the thread or program of the explanation, which the caller may see (org.asymd.Manager(5), GetReport). Begins
 * to measure, unless it does so already. A user other than root gets it for processes of its own only, whatever /proc shows: which
 * thread wakes which stands nowhere else. Returns it; NULL: no memory.
 */
json_t *asym_service_waits(struct asym_service *s, const struct asym_bus_caller *caller,
                           const struct asym_explanation *e, int32_t id, asym_usec now);

/** Returns the sentences on these threads of the report. measured: in us. tid: of the question; 0: it is about the program. */
json_t *asym_service_waits_sentences(const json_t *threads, double measured, int32_t tid);

/** Call it about every second: ends the measurement when no user has asked for some seconds. */
void asym_service_waits_housekeeping(struct asym_service *s, asym_usec now);

/** End it, before the observer. */
void asym_service_waits_close(struct asym_service *s);

/* service-cycle.c */

/** Run one cycle, and log its actions. Returns 0; -errno; -EINPROGRESS: the next call continues the snapshot. */
int asym_service_cycle(struct asym_service *s);

/**
 * asym_service *: a program or the kernel has reported a phase: run a cycle on a refresh of the last snapshot. While a snapshot
 * is in progress, do nothing: the sources cannot return the last snapshot again, and the complete one has the phase. Returns 0;
 * -errno: the loop cannot end. An error of the cycle ends the loop.
 */
int asym_service_prompt_cycle(void *service);

/** End the loop after an error of a cycle (-errno). Returns 0; -errno: the loop cannot end. */
int asym_service_give_up(struct asym_service *s, int error);

/** Log once that asymd cannot write the ledger (r: -errno), and once that it can again (r >= 0). */
void asym_service_report_apply(struct asym_service *s, int r);

/** Log how many rules lend something to programs of any user. */
void asym_service_log_rules(const struct asym_service *s);

/* service-facts.c: the state that the service tells others. */

/** Send the status line to systemd. */
void asym_service_status(struct asym_service *s);

/** Tell the bus that a property may have changed. */
void asym_service_changed(struct asym_service *s);

/** Microseconds between two samples while programs run: the configured interval, or more while asymd is above its CPU budget. */
asym_usec asym_service_interval(const struct asym_service *s);

/** The CPU time, in microseconds, that asymd and its reading helper process have used so far. */
asym_usec asym_service_cpu_time(const struct asym_service *s);

/* service-housekeeping.c: the work of every second. */

/** The period of housekeeping, in microseconds. */
#define ASYM_SERVICE_HOUSEKEEPING ASYM_SEC

/** Do the work of every second, which its timer calls. */
void asym_service_housekeeping(struct asym_service *s, asym_usec now);

/** End a period of the CPU budget after a sample. Does nothing in the first second of the period. */
void asym_service_update_budget(struct asym_service *s, asym_usec now);

/* service-reload.c */

/** If CPUs have changed, read the machine again, reapply the frequency caps, and select the policy again. */
void asym_service_update_cpus(struct asym_service *s);

/* service-control.c */

/** Open the monitor and the overrides, around the observer's source. Returns 0; -ENOMEM. */
int asym_service_control_open(struct asym_service *s);
void asym_service_control_close(struct asym_service *s);

/** Forget the orders for processes that have ended, every ten seconds. */
void asym_service_control_housekeeping(struct asym_service *s, asym_usec now);

/* service-reload.c */

/** Put another policy in force, or keep the present one and its origin. Returns 0; -errno with err. */
int asym_service_switch_policy(struct asym_service *s, const char *name, const char *origin, struct asym_error *err);

/** SIGHUP: read the configuration again and use it, or keep the old one. An sd_event_signal_handler_t. */
int asym_service_on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata);

/*
 * The object org.asymd.Manager: its table of properties, methods and signals, and the functions behind them. The userdata of the
 * bus (lib/bus/bus.h) is the service. org.asymd.Manager(5) describes it for users.
 */

extern const sd_bus_vtable asym_bus_manager_vtable[];
extern const struct asym_bus_method asym_bus_manager_methods[];

/** Set error for -errno of an order, with its text. Returns -errno. */
int asym_bus_manager_fail(sd_bus_error *error, int r, const struct asym_error *err);

#endif
