/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl help. */
#include <stdio.h>
#include <string.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "daemon/asymctl/verb.h"

static int help_of(const char *name)
{
    const struct asym_verb *v = asym_verb_find(name);
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    char option[64], path[ASYM_PATH_SIZE];
    if (!v)
        return asym_verb_unknown(name);
    asym_verb_usage(v, &terminal);
    putchar('\n');
    asym_columns_text(&terminal, v->help);
    int width = 0;
    for (const struct asym_arg *row = v->args; row && row->option.key; row++)
        width = ASYM_MAX(width, (int)strlen(asym_args_name(row, option, sizeof option)) + 1);
    if (width > 0)
        putchar('\n');
    for (const struct asym_arg *row = v->args; row && row->option.key; row++)
        asym_args_line(&terminal, width, asym_args_name(row, option, sizeof option), row->option.help);
    if (v->file_option)
        printf("\nDefault of %s: %s\n", v->file_option, asym_path(v->file, path));
    return ASYM_EXIT_DONE;
}

static int help(const void *args, char **operands)
{
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    const struct asym_verb *v;
    if (operands[0])
        return help_of(operands[0]);
    puts("usage: asymctl VERB [ARGUMENT...]\n");
    for (size_t i = 0; (v = asym_verb_at(i)); i++)
        asym_args_line(&terminal, 10, v->name, v->summary);
    asym_columns_text(&terminal,
                      "\nExit status: 0 done; 1 failed; 2 wrong usage; 3 a measurement that is needed is missing "
                      "here; 4 not permitted; 5 no asymd runs.\n");
    return ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_help = {
    .name = "help",
    .operands = ASYM_OPERANDS_MAY,
    .usage = "[VERB]",
    .summary = "print this text, or the help of one verb",
    .help = "Prints the help of VERB, or the list of verbs.\n",
    .run = help,
};
