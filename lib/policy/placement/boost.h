/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The boost of light threads: a nice delta that gives a thread, which shares its fast CPU because it sleeps much, that CPU when
 * it wakes. Only serial phases and serial programs have it, and only while all CPUs are busy.
 */
#ifndef ASYM_POLICY_PLACEMENT_BOOST_H
#define ASYM_POLICY_PLACEMENT_BOOST_H

#include <asym/policy.h>

/** The params and the options of a policy with this boost. */
struct asym_boost_params {
    int sp_boost;
};
extern const struct asym_option asym_boost_options[];

/** Boost the light threads on fast CPUs, which the policy has placed. */
void asym_boost_light(const struct asym_policy_input *in, struct asym_assignment *ret);

#endif
