/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A number that stands for a plan with its actions: a replay compares it to learn whether it has made the same plan. */
#ifndef ASYM_RECORD_PLAN_DIGEST_H
#define ASYM_RECORD_PLAN_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <asym/plan.h>

/** The same plan and actions give the same number on every machine. Reasons count by their texts. */
uint64_t asym_plan_digest(const struct asym_plan *plan, const struct asym_action *actions, size_t n_actions);

#endif
