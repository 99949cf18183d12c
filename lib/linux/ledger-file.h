/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The ledger's file. Text, a record a line:
 *
 *     asymd-ledger 1 BOOT_ID
 *     T tid tgid start since session  original_nice original_reset whole boosted set_nice before_nice
 *       original set before [via]
 *     G tid tgid start
 *
 * (T on one line.) T is what is known of a thread from here on, G that it needs nothing any more. Masks are CPU lists,
 * "-" when empty; via is there while the thread may have that, between before and set. Written, not synced: it need not
 * outlive the machine, as no mask does.
 */
#ifndef ASYM_LINUX_LEDGER_FILE_H
#define ASYM_LINUX_LEDGER_FILE_H

#include "linux/ledger-internal.h"

/**
 * Read what an earlier asymd left, and begin a fresh file with what of it still counts. 0: with err where lines are not a
 * ledger's, or the fresh file cannot be written, which is owed then; -errno with err: there is one that cannot be read.
 */
int asym_ledger_read_file(struct asym_ledger *l, struct asym_error *err);

/**
 * Read what is there and leave it so. 0: with err where some lines are not a ledger's, and what could be read is in the
 * table; -ENOENT: there is none; -errno with err.
 */
int asym_ledger_peek_file(struct asym_ledger *l, struct asym_error *err);

#endif
