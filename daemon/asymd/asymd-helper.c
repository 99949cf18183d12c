/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of the helper processes (linux/sys/helper-process.h). Only asymd starts it. */
#include "base/macro.h"
#include "linux/observe/proc-reader.h"
#include "linux/sys/helper-process.h"

static const struct asym_helper_role roles[] = {
    {"read", asym_proc_reader_run},
};

int main(int argc, char **argv)
{
    return asym_helper_main(roles, ASYM_LENGTH(roles), argc, argv);
}
