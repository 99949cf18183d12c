/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The items of a segment of snapshots. It begins with a machine; a feedback follows its snapshot. */
#ifndef ASYM_RECORD_RECORD_ITEM_H
#define ASYM_RECORD_RECORD_ITEM_H

enum asym_record_item_kind {
    ASYM_RECORD_ITEM_MACHINE = 1,
    ASYM_RECORD_ITEM_SNAPSHOT = 2,
    ASYM_RECORD_ITEM_FEEDBACK = 3,
};

#endif
