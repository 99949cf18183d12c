/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl: finds the verb in verbs.def and runs it. */
#include <stdio.h>
#include <string.h>

#include "daemon/asymctl/verb.h"

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: asymctl VERB [ARGUMENT...]; asymctl help lists the verbs\n", stderr);
        return ASYM_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("asymctl " ASYM_VERSION);
        return asym_verb_end(ASYM_EXIT_DONE);
    }
    const struct asym_verb *verb = is_help(argv[1]) ? &asym_verb_help : asym_verb_find(argv[1]);
    if (verb && argc > 2 && is_help(argv[2])) {
        /* "sim --help" is "help sim". */
        char *words[] = {argv[2], argv[1], NULL};
        return asym_verb_end(asym_verb_run(&asym_verb_help, is_help(argv[1]) ? 1 : 2, words));
    }
    return verb ? asym_verb_end(asym_verb_run(verb, argc - 1, argv + 1)) : asym_verb_unknown(argv[1]);
}
