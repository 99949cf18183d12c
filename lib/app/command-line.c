/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/command-line.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"
#include "config/option-value.h"

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

int asym_args_default(const struct asym_arg *rows, void *base)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && rows[i].option.key; i++)
        r = asym_option_default(&rows[i].option, NULL, base);
    return r;
}

/* Takes the argument from the word itself or from the next one. If the next word is an option, the argument is missing. */
static int take_value(const struct asym_arg *row, const char *value, int argc, char **argv, int *at, void *base,
                      struct asym_error *err)
{
    const char *key = row->option.key;
    if (!row->argument)
        return value ? asym_fail(err, -EINVAL, "%s takes no argument", key)
                     : asym_option_parse(&row->option, NULL, base, "yes", err);
    if (!value && *at + 1 < argc && strncmp(argv[*at + 1], "--", 2) != 0)
        value = argv[++*at];
    /* An option of the configuration may have an empty value. */
    if (!value || (!*value && !row->option.section))
        return asym_fail(err, -EINVAL, "%s needs an argument; accepted is %s=%s", key, key, row->argument);
    return asym_option_parse(&row->option, NULL, base, value, err);
}

/*
 * Does not use getopt_long, which prints errors itself, keeps globals, and accepts abbreviations that a later option would
 * make ambiguous.
 */
int asym_args_take(const struct asym_arg *rows, int argc, char **argv, int *at, void *base, size_t *ret_row,
                   struct asym_error *err)
{
    const char *arg = argv[*at], *equals = strchr(arg, '=');
    const size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    for (size_t i = 0; rows[i].option.key; i++) {
        if (strlen(rows[i].option.key) != len || memcmp(rows[i].option.key, arg, len) != 0)
            continue;
        int r = take_value(&rows[i], equals ? equals + 1 : NULL, argc, argv, at, base, err);
        if (r < 0)
            return r;
        *ret_row = i;
        return 1;
    }
    return 0;
}

int asym_args_unknown(const struct asym_arg *rows, const char *arg, const char *remedy, struct asym_error *err)
{
    char given[64], text[256], hint[64];
    snprintf(given, sizeof given, "%.*s", (int)ASYM_MIN(strcspn(arg, "="), sizeof given - 1), arg);
    struct asym_nearest n = {.wanted = given};
    for (size_t i = 0; rows[i].option.key; i++)
        asym_nearest_consider(&n, rows[i].option.key);
    asym_nearest_hint(&n, hint, sizeof hint);
    return asym_fail(err, -EINVAL, "unknown option %s%s", asym_text_show(given, text, sizeof text),
                     *hint ? hint : remedy);
}

const char *asym_args_name(const struct asym_arg *row, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", row->option.key, row->argument ? "=" : "", row->argument ? row->argument : "");
    return buf;
}

void asym_args_line(const struct asym_terminal *terminal, int width, const char *what, const char *text)
{
    const size_t column = (size_t)width + 3;
    /* A text that is too long for its column gets a line of its own. */
    if (strlen(what) > (size_t)width)
        fprintf(terminal->out, "  %s\n%*s", what, (int)column, "");
    else
        fprintf(terminal->out, "  %-*s ", width, what);
    asym_columns_line(terminal, text, column, column);
}

int asym_output_end(void)
{
    if (fflush(stdout) != 0)
        return -errno;
    return ferror(stdout) ? -EIO : 0;
}

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
