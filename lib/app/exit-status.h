/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The exit statuses of asymd and asymctl. */
#ifndef ASYM_APP_EXIT_STATUS_H
#define ASYM_APP_EXIT_STATUS_H

/** Users rely on these numbers (asymd(8), EXIT STATUS): they do not change. */
enum asym_exit {
    ASYM_EXIT_DONE = 0,
    ASYM_EXIT_FAILED = 1,
    ASYM_EXIT_USAGE = 2,
    ASYM_EXIT_NO_SIGNAL = 3,
    ASYM_EXIT_NOT_PERMITTED = 4,
    ASYM_EXIT_NO_SERVICE = 5,
};

/** The exit status for a set-up that failed with error, an -errno. */
enum asym_exit asym_exit_status(int error);

#endif
