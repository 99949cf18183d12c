/* SPDX-License-Identifier: GPL-2.0-or-later */
/** What an asymd has set, put back: by itself when it stops, or by the next one after it was killed. */
#ifndef ASYM_DAEMON_LEFTOVERS_H
#define ASYM_DAEMON_LEFTOVERS_H

#include <asym/error.h>

#include "daemon/run.h"
#include "linux/ledger.h"

/** Open the ledger of the state directory; what is wrong with its content is logged. 0; -errno with err. */
int asym_leftovers_open(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err);

/** Give threads back what they had, and log how it went; when: in words. 0; -errno of what could not be given back. */
int asym_leftovers_put_back(struct asym_run *run, struct asym_ledger *ledger, const char *when);

/** Open both ledgers, of threads and of speeds, and put back what they hold. 0; -errno with err: one cannot be opened. */
int asym_leftovers_clear(struct asym_run *run, struct asym_ledger **ret_ledger, struct asym_error *err);

/** The same and close it again, for a start that comes to nothing: no thread stays steered because of a wrong setting. */
void asym_leftovers_abandon(struct asym_run *run);

#endif
