/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of the expendable processes (linux/helper.h). asymd starts it; nothing else has a use for it. */
#include <stdio.h>

#include "base/macro.h"
#include "linux/helper.h"

static const struct asym_helper_role roles[] = {
    {0},
};

int main(int argc, char **argv)
{
    return asym_helper_main(roles, ASYM_LENGTH(roles) - 1, argc, argv);
}
