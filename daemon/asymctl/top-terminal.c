/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/top-terminal.h"

#include <curses.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "base/text.h"

#define ONCE "asymctl top --once prints one frame as text"

int asym_top_terminal_check(struct asym_error *err)
{
    const char *name = getenv("TERM");
    char text[128];
    int found;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return asym_fail(err, -ENOTTY, "top needs a terminal on standard input and output; " ONCE);
    if (!name || *name == '\0')
        return asym_fail(err, -ENOTTY, "TERM does not say which terminal this is; " ONCE);
    asym_text_escape(name, strlen(name), text, sizeof text);
    if (setupterm(name, STDOUT_FILENO, &found) != OK)
        return asym_fail(err, -ENOTTY, "no terminal TERM=%s is known here; " ONCE, text);
    const char *move = tigetstr("cup");
    const bool moves = move && move != (char *)-1;
    del_curterm(cur_term);
    if (!moves)
        return asym_fail(err, -ENOTTY, "a terminal with TERM=%s cannot move its cursor; " ONCE, text);
    return 0;
}
