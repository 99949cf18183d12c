/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The rules in force, and how they match a process, as text and as JSON. */
#ifndef ASYM_DAEMON_ASYMCTL_RULES_REPORT_H
#define ASYM_DAEMON_ASYMCTL_RULES_REPORT_H

#include <stdio.h>

#include <asym/settings.h>

#include "report/columns.h"

/** Print the rule of that name, or each: name, what it does, where it stands, what it matches. Returns 0; -EIO. */
int asym_rules_list_text(const struct asym_settings *s, const char *name, const struct asym_terminal *terminal);

/** Print the process, and for each rule whether it matches and, if not, which key does not. Returns 0; -EIO. */
int asym_rules_test_text(const struct asym_settings *s, const struct asym_rule_subject *subject,
                         const struct asym_terminal *terminal);

/** Do either as JSON, asymctl.rules/1. name NULL: each rule; subject NULL: the list. Returns 0; -ENOMEM, -EIO. */
int asym_rules_json(const struct asym_settings *s, const char *name, const struct asym_rule_subject *subject,
                    FILE *out);

#endif
