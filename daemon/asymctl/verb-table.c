/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/verb-table.h"

#include <stdio.h>
#include <string.h>

#include "app/command-line.h"
#include "base/macro.h"
#include "base/text.h"
#include "config/nearest.h"

static const struct asym_verb *const verbs[] = {
#define ASYM_VERB(name) &asym_verb_##name,
#include "daemon/asymctl/verbs.def"
#undef ASYM_VERB
};

const struct asym_verb *asym_verb_at(size_t i)
{
    return i < ASYM_LENGTH(verbs) ? verbs[i] : NULL;
}

const struct asym_verb *asym_verb_find(const char *name)
{
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

int asym_verb_unknown(const char *name)
{
    struct asym_nearest n = {.wanted = name};
    char text[128], hint[64], message[1024];
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        asym_nearest_list(&n, verbs[i]->name);
    snprintf(message, sizeof message, "asymctl: unknown verb '%s'%s; accepted are %s",
             asym_text_escape(name, strlen(name), text, sizeof text), asym_nearest_hint(&n, hint, sizeof hint), n.list);
    asym_terminal_message(stderr, message);
    return ASYM_EXIT_USAGE;
}
