/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/parse.h"

/* Wider lines would make the programs pad columns with thousands of spaces. */
#define MOST_COLUMNS 1000

size_t asym_terminal_columns(const char *variable, unsigned columns)
{
    uint64_t wanted = 0;
    if (variable && asym_parse_u64(variable, strlen(variable), &wanted) < 0)
        wanted = 0;
    if (wanted == 0)
        wanted = columns > 0 ? columns : ASYM_COLUMNS_DEFAULT;
    return (size_t)ASYM_MIN(ASYM_MAX(wanted, (uint64_t)ASYM_COLUMNS_LEAST), (uint64_t)MOST_COLUMNS);
}

struct asym_terminal asym_terminal_of(FILE *out)
{
    struct winsize size = {.ws_col = 0};
    const bool is_terminal = isatty(fileno(out));
    const char *term = getenv("TERM");
    if (!is_terminal || ioctl(fileno(out), TIOCGWINSZ, &size) < 0)
        size.ws_col = 0;
    return (struct asym_terminal){
        .out = out,
        .columns = asym_terminal_columns(getenv("COLUMNS"), size.ws_col),
        .colour = is_terminal && !getenv("NO_COLOR") && !(term && strcmp(term, "dumb") == 0),
    };
}

void asym_terminal_message(FILE *out, const char *text)
{
    const struct asym_terminal terminal = asym_terminal_of(out);
    if (isatty(fileno(out)))
        asym_columns_wrap(&terminal, text, 0, 2);
    else
        fputs(text, out);
    fputc('\n', out);
}
