/* SPDX-License-Identifier: GPL-2.0-or-later */
/** asymctl sim. */
#ifndef ASYM_DAEMON_SIM_VERB_H
#define ASYM_DAEMON_SIM_VERB_H

/** argv[0] is the verb. Returns the exit status. */
int asym_sim_verb(int argc, char **argv);

#endif
