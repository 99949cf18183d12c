/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The rule of a program, as a part of its explanation (explain-text.h). */
#ifndef ASYM_EXPLAIN_EXPLAIN_RULE_H
#define ASYM_EXPLAIN_EXPLAIN_RULE_H

#include <stdbool.h>
#include <stddef.h>

#include "explain/explain.h"

/**
 * Write the sentence on the rule, with a full stop: its name, or the user who has set it, the CPUs that it leaves, and how to
 * undo that. Returns buf.
 */
const char *asym_explain_rule(const struct asym_explanation *e, char *buf, size_t size);

/** Returns the name of the rule with its action, for the evidence. Returns buf. */
const char *asym_explain_rule_evidence(const struct asym_explanation *e, char *buf, size_t size);

/** Returns true if a user has set the rule "ignore" (asymctl set PID ignore): asym_explain_rule says all about that. */
bool asym_explain_user_ignores(const struct asym_explanation *e);

/** Returns true if its rule, and its own affinity as far as that is known, leave it a fast CPU. */
bool asym_explain_may_be_fast(const struct asym_explanation *e);

#endif
