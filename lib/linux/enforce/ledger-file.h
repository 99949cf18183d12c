/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The file of the ledger. It is text, one record a line:
 *
 *     asymd-ledger 1 BOOT_ID
 *     T tid tgid start since session  original_nice original_reset full_cpuset boosted set_nice before_nice
 *       original set before [via]
 *     G tid tgid start
 *
 * (A T record is one line.) A T record replaces what earlier records say of the thread. A G record says that the thread
 * needs nothing any more. Masks are CPU lists, "-" when empty. via is the transit CPU: a record has it while the thread
 * may have that mask, between before and set. The file is not synced: it need not survive a reboot,
 * because no mask does.
 */
#ifndef ASYM_LINUX_ENFORCE_LEDGER_FILE_H
#define ASYM_LINUX_ENFORCE_LEDGER_FILE_H

#include "linux/enforce/ledger-internal.h"

/**
 * Reads what an earlier asymd left, and starts a new file with the entries that still count.
 * Returns 0, with err if some lines are not a ledger's, or if the new file cannot be written (the next write tries again);
 * -errno with err if the file exists but cannot be read.
 */
int asym_ledger_read_file(struct asym_ledger *l, struct asym_error *err);

/**
 * Reads the file and does not change it. The table holds what could be read.
 * Returns 0, with err if some lines are not a ledger's; -ENOENT if there is no file; -errno with err.
 */
int asym_ledger_peek_file(struct asym_ledger *l, struct asym_error *err);

#endif
