/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of the helper processes (linux/sys/helper-process.h). Only asymd starts it. */
#include "linux/observe/proc-reader.h"
#include "linux/sys/helper-process.h"

int main(void)
{
    return asym_helper_main(asym_proc_reader_run);
}
