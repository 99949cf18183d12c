/* SPDX-License-Identifier: GPL-2.0-or-later */
/** asymctl run: start a program so that it says what its threads do. */
#ifndef ASYM_DAEMON_LAUNCH_H
#define ASYM_DAEMON_LAUNCH_H

#include <stdbool.h>

struct asym_launch {
    const char *tool; /**< path of libasym-ompt.so */
    bool gcc;         /**< preload LLVM's runtime in the place of GCC's */
    char **argv;      /**< of the program; argv[0] is looked for in PATH */
};

/** Become the program. Only where that fails it returns, an exit status: 1, or as a shell has them 126 and 127. */
int asym_launch(const struct asym_launch *launch);

#endif
