/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The descriptor numbers that both sides of a helper use. */
#ifndef ASYM_LINUX_SYS_HELPER_INTERNAL_H
#define ASYM_LINUX_SYS_HELPER_INTERNAL_H

/** The channels in the helper process. */
#define ASYM_HELPER_ORDERS_FD  3
#define ASYM_HELPER_REPORTS_FD 4
/** This number and the next are used while the channels are put in place. A soft limit of descriptors is seldom lower. */
#define ASYM_HELPER_SPARE_FD 60

#endif
