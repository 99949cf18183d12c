/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Divides the CPU time for answers fairly among the programs. asym_token_bucket (base/token-bucket.h) has another rule: there each
 * bucket earns at a rate of its own. Here one rate is divided among the active clients, a client that comes takes its part of the
 * reserve, and one that goes returns its CPU time or its debt. With one bucket for each user, a single user would get only a
 * part of the CPU time, and the processes of a user would take it from each other.
 */
#ifndef ASYM_LINUX_RTX_RTX_FAIR_SHARE_H
#define ASYM_LINUX_RTX_RTX_FAIR_SHARE_H

#include "linux/rtx/rtx-server-config.h"

struct asym_rtxd_client;

/**
 * Charge the CPU time of the last serve and of the answer to it. The clients that reported a change pay in equal parts. If no
 * client did, the clients pay that serve sampled in vain.
 */
void asym_rtxd_server_charge(struct asym_rtxd_server *s, asym_usec cpu);

/**
 * Returns when serve must be called without a wakeup, for a deferred client or a second sample; 0: never. The time may be 1 us
 * after the last call, if a page asks for that: the caller limits the rate of its calls.
 */
asym_usec asym_rtxd_server_due(const struct asym_rtxd_server *s);

/** Divide the CPU time earned up to now; retire clients without a report within ASYM_RTXD_ACTIVE. */
void asym_rtxd_settle(struct asym_rtxd_server *s, asym_usec now);

/** The client has reported a phase and becomes active. Returns whether asymd may answer it now. */
bool asym_rtxd_may_answer(struct asym_rtxd_server *s, struct asym_rtxd_client *c, asym_usec now);

/** Returns whether the client may be sampled: it is not active, or has not overspent. */
bool asym_rtxd_has_cpu_time(struct asym_rtxd_server *s, struct asym_rtxd_client *c);

/** Make the client inactive; its CPU time, or its debt, goes to the reserve. */
void asym_rtxd_retire(struct asym_rtxd_server *s, struct asym_rtxd_client *c);

#endif
