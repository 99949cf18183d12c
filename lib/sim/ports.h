/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The ports of <asym/port.h> to a simulated machine. */
#ifndef ASYM_SIM_PORTS_H
#define ASYM_SIM_PORTS_H

#include <asym/port.h>

struct asym_sim;

/**
 * The ports; both borrow the simulation. next() lets interval pass first, and returns 0 once the run is over. The source takes
 * counter samples of the threads that the plan of the last feedback counts. It has no refresh: each snapshot shows what each
 * simulated program does at that time.
 */
struct asym_source *asym_sim_source(struct asym_sim *sim, asym_usec interval);
struct asym_actuator *asym_sim_actuator(struct asym_sim *sim);

#endif
