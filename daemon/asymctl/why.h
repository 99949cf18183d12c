/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The answer of asymctl why: asymd's sentences on a process or a thread, their evidence, and the last decisions. */
#ifndef ASYM_DAEMON_ASYMCTL_WHY_H
#define ASYM_DAEMON_ASYMCTL_WHY_H

#include "client/client.h"
#include "report/columns.h"

/** Print the sentences, then the evidence, then the decisions. Returns 0; -EIO. */
int asym_why_text(const struct asym_client_explanation *why, const struct asym_terminal *terminal);

#endif
