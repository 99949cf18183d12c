/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The cap methods of a run, and the speeds that the configured one would give. Changes nothing. */
#ifndef ASYM_APP_SPEED_CAPS_H
#define ASYM_APP_SPEED_CAPS_H

#include <stdbool.h>

#include "app/run.h"

/** All cap methods, then NULL. */
extern const struct asym_cap_method *const asym_speed_methods[];

/** Returns the configured method; NULL: the configuration names none, so asymd slows no CPU. */
const struct asym_cap_method *asym_speed_method(const struct asym_settings *s);

/** Returns true if those CPUs have the configured speed now, set by this asymd or another. */
bool asym_speeds_are_in_force(const struct asym_run *run, const struct asym_mask *slow);

/** Compute the shares of their speed that the CPUs would get. Returns 0; -errno: no method is configured, or it fails here. */
int asym_speeds_predict(const struct asym_run *run, const struct asym_mask *slow, struct asym_caps *ret_caps);

#endif
