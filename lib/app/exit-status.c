/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/exit-status.h"

#include <errno.h>
#include <stddef.h>

#include "base/macro.h"

enum asym_exit asym_exit_status(int error)
{
    static const struct {
        int error;
        enum asym_exit exit;
    } rows[] = {
        {-EINVAL, ASYM_EXIT_USAGE},         {-ENODATA, ASYM_EXIT_NO_SIGNAL},   {-EPERM, ASYM_EXIT_NOT_PERMITTED},
        {-EACCES, ASYM_EXIT_NOT_PERMITTED}, {-ENOTCONN, ASYM_EXIT_NO_SERVICE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (rows[i].error == error)
            return rows[i].exit;
    return ASYM_EXIT_FAILED;
}
