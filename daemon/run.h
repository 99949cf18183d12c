/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * What every mode of asymd starts from, and the modes. A mode wires a source and an actuator to the engine; none of
 * them hands a mode down.
 */
#ifndef ASYM_DAEMON_RUN_H
#define ASYM_DAEMON_RUN_H

#include <stdbool.h>

#include <asym/engine.h>
#include <asym/error.h>
#include <asym/machine.h>
#include <asym/port.h>
#include <asym/settings.h>

#include "daemon/cli.h"
#include "daemon/log.h"
#include "daemon/signals.h"
#include "linux/asymmetry.h"
#include "linux/births.h"
#include "linux/proc-reader.h"
#include "linux/root.h"
#include "linux/topology.h"

/** Exit statuses: a promise (cli.md). */
enum asym_exit {
    ASYM_EXIT_DONE = 0,
    ASYM_EXIT_FAILED = 1,
    ASYM_EXIT_USAGE = 2,
    ASYM_EXIT_NO_SIGNAL = 3,
    ASYM_EXIT_NOT_PERMITTED = 4,
};

struct asym_run {
    const struct asym_cli *cli; /* borrowed */
    struct asym_settings *settings;
    struct asym_root root;
    struct asym_machine *machine; /* owned; content changes when CPUs come and go */
    struct asym_topology_notes notes;
    struct asym_mask
        slow; /* what the settings came to when they were read: a CPU of it that goes and comes is slow again */
    bool assumed_slow; /* some CPUs are only taken for slow: [asymmetry] slow without a method that makes them so */
    struct asym_asymmetry *asymmetry; /* owned; NULL in modes that change nothing */
    const struct asym_caps *caps;     /* the speeds obtained; NULL: slow CPUs are only taken for slow */
    struct asym_signals signals;
    const struct asym_policy *policy; /* what the settings name, or what auto came to */
    const char *policy_why;           /* of auto; NULL: it was named. Static */
    bool keep_nice;                   /* asym_run_check_boost */
    struct asym_log log;
};

/** Share of the CPU budget that may go into reading what can block (linux/proc-reader.h). */
#define ASYM_RUN_READING_SHARE 0.25

/** What looks at the machine. */
struct asym_lookout {
    struct asym_births *births;      /* NULL: they do not come as events */
    struct asym_proc_reader *reader; /* NULL: a captured machine */
    struct asym_source *procfs;
    struct asym_source *source; /* procfs, and what is counted */
};

/** Files, then --set and the like in the order given. 0; -EINVAL or -errno with err. */
int asym_run_settings(const struct asym_cli *cli, struct asym_settings **ret_settings, struct asym_error *err);

/** As much of the same as can be had where that fails: lines and assignments that are wrong are left out. 0; -errno. */
int asym_run_salvage(const struct asym_cli *cli, struct asym_settings **ret_settings, struct asym_error *err);

/** Read the machine and take the configured CPUs for slow. 0; -errno with err, and nothing changed. */
int asym_run_machine(struct asym_run *run, struct asym_error *err);

/** The same when CPUs have come or gone: which of them are slow is not chosen anew, and those that are gone are not missed. */
int asym_run_machine_changed(struct asym_run *run, struct asym_error *err);

/**
 * Find out what can be measured, and with that which policy it is to be. 0; -errno with err (a file of profiles that cannot
 * be read as one), and nothing changed.
 */
int asym_run_policy(struct asym_run *run, struct asym_error *err);

/**
 * Before asymd changes anything: where it could not give nice values back, it is to leave them alone, and says so if the
 * policy would change them. What an ordinary user's asymd lowers, and the flag that goes with it, would stay for good.
 */
void asym_run_check_boost(struct asym_run *run);

/** What the engine is to do, by the policy and the settings. Borrows from them. */
struct asym_engine_config asym_run_engine_config(const struct asym_run *run);

/**
 * Begin to look. piece: how long one call of its source's next() may take, 0: as long as the look takes (linux/procfs.h).
 * 0; -errno with err.
 */
int asym_run_look(struct asym_run *run, asym_usec piece, struct asym_lookout *ret, struct asym_error *err);
void asym_lookout_close(struct asym_lookout *l);

/** -errno of a failed set-up to an exit status. */
enum asym_exit asym_run_exit(int error);

/** Log what is left out of sight: a line for each reason. */
void asym_run_warn(struct asym_run *run, const struct asym_snapshot *s);

/** CPU time of this process so far, all threads. */
asym_usec asym_run_cpu_time(void);
asym_usec asym_run_now(void);

/* The modes. Each says on stderr what went wrong and returns the exit status. */
enum asym_exit asym_mode_service(struct asym_run *run);
enum asym_exit asym_mode_dry_run(struct asym_run *run);
enum asym_exit asym_mode_once(struct asym_run *run);
enum asym_exit asym_mode_restore(struct asym_run *run);
enum asym_exit asym_mode_check(struct asym_run *run);
enum asym_exit asym_mode_print_config(struct asym_run *run);

#endif
