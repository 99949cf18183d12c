/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/output.h"

#include <errno.h>
#include <stdio.h>

int asym_output_end(void)
{
    if (fflush(stdout) != 0)
        return -errno;
    return ferror(stdout) ? -EIO : 0;
}
