/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A command of the user that measures one block of a trial: its last number is the block's rate. */
#ifndef ASYM_DAEMON_ASYMCTL_TRIAL_METRIC_H
#define ASYM_DAEMON_ASYMCTL_TRIAL_METRIC_H

#include <sys/types.h>

#include <asym/types.h>

/** The environment variable with the seconds that the command has: "8". */
#define ASYM_TRIAL_SECONDS "ASYM_TRIAL_SECONDS"

struct asym_trial_metric {
    pid_t pid;     /**< of the shell, which leads a process group; 0: it does not run */
    int out;       /**< its standard output, read without waiting */
    char last[64]; /**< the end of what it has printed, without NUL */
    size_t n;
};

/** Start the command with sh -c. Returns 0; -errno. */
int asym_trial_metric_begin(struct asym_trial_metric *m, const char *command, asym_usec time);

/** Read what it has printed. Call it often: a full pipe makes the command wait. */
void asym_trial_metric_read(struct asym_trial_metric *m);

/** End the command and all of its process group. Returns the last number that it printed; NAN: none. */
double asym_trial_metric_end(struct asym_trial_metric *m);

#endif
