/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The numbers that both sides of a helper know. */
#ifndef ASYM_LINUX_HELPER_INTERNAL_H
#define ASYM_LINUX_HELPER_INTERNAL_H

/** The helper's side of the channels. */
#define ASYM_HELPER_ORDERS_FD  3
#define ASYM_HELPER_REPORTS_FD 4
/** Free for a moment while they are put in place; a soft limit of descriptors is hardly ever smaller. */
#define ASYM_HELPER_SPARE_FD 60

#endif
