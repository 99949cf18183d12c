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

/**
 * Become the program. Where the tool or the runtime is missing, say so on standard error and run the program without.
 * Returns only where the program cannot be executed, the exit status of env(1): 127: it was not found; 126: any other reason.
 */
int asym_launch(const struct asym_launch *launch);

#endif
