/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program of the helper processes (linux/sys/helper-process.h). Only asymd starts it. */
#include "base/macro.h"
#include "linux/observe/hidepid.h"
#include "linux/observe/proc-reader.h"
#include "linux/rtx/rtx-acceptor.h"
#include "linux/sys/helper-process.h"
#include "profile/build-id.h"

_Static_assert(ASYM_READ_BUILD_ID_MAX == ASYM_BUILD_ID_MAX, "an answer has room for a build id");

static int read_processes(int orders, int reports)
{
    return asym_proc_reader_run(orders, reports, asym_build_id_read);
}

static const struct asym_helper_role roles[] = {
    {"read", ASYM_HELPER_MAY_READ_FILES | ASYM_HELPER_MAY_PTRACE, read_processes},
    {"hidepid", ASYM_HELPER_MAY_READ_FILES, asym_hidepid_run},
    {"rtx", 0, asym_rtxd_acceptor_run},
};

int main(int argc, char **argv)
{
    return asym_helper_main(roles, ASYM_LENGTH(roles), argc, argv);
}
