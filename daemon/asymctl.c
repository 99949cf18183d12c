/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl: a table of verbs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "daemon/json.h"
#include "daemon/run.h"

struct verb {
    const char *name, *usage, *summary;
    int (*run)(int argc, char **argv);
};

static int verb_policies(int argc, char **argv);
static int verb_help(int argc, char **argv);

static const struct verb verbs[] = {
    {"policies", "asymctl policies [--json]", "every policy: source, signals it needs, whether it can run here",
     verb_policies},
    {"help", "asymctl help [VERB]", "this text, or a verb's", verb_help},
};

static int unknown(const char *what, const char *given)
{
    const char *best = verbs[0].name;
    for (size_t i = 1; i < ASYM_LENGTH(verbs); i++)
        if (asym_text_distance(given, verbs[i].name) < asym_text_distance(given, best))
            best = verbs[i].name;
    fprintf(stderr, "asymctl: unknown %s '%s'; did you mean '%s'?\n", what, given, best);
    return ASYM_EXIT_USAGE;
}

static int verb_help(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < ASYM_LENGTH(verbs); i++) {
        if (strcmp(argv[1], verbs[i].name) != 0)
            continue;
        printf("usage: %s\n\n%s\n", verbs[i].usage, verbs[i].summary);
        return ASYM_EXIT_DONE;
    }
    if (argc > 1)
        return unknown("verb", argv[1]);
    puts("usage: asymctl VERB [ARGUMENT...]\n");
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        printf("  %-10s %s\n", verbs[i].name, verbs[i].summary);
    return ASYM_EXIT_DONE;
}

/* Signals the policy needs, as words; what of it is missing here goes to *ret_missing. */
static const char *needs_of(const struct asym_policy *p, unsigned given, char *buf, size_t size, bool *ret_missing)
{
    size_t used = 0;
    *ret_missing = (p->needs & ~given) != 0;
    snprintf(buf, size, "nothing special");
    for (int k = 0; k < ASYM_N_SIGNALS; k++)
        if (p->needs >> k & 1)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "",
                                     asym_signal_name((enum asym_signal)k));
    return buf;
}

static int read_signals(unsigned *ret_given)
{
    struct asym_root root;
    struct asym_error err = {""};
    int r = asym_root_open(NULL, &root, &err);
    struct asym_machine *m = calloc(1, sizeof *m);
    if (r >= 0) {
        r = m ? asym_topology_read(&root, NULL, m, NULL, &err) : -ENOMEM;
        asym_root_done(&root);
    }
    if (r < 0)
        fprintf(stderr, "asymctl: %s\n", err.text);
    else
        *ret_given = 1u << ASYM_SIGNAL_RUNNABLE |
                     (m->n_cores < asym_mask_count(&m->usable) ? 1u << ASYM_SIGNAL_SMT : 0);
    free(m);
    return r;
}

static int verb_policies(int argc, char **argv)
{
    bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    unsigned given;
    if (argc > 1 && !as_json)
        return unknown("argument", argv[1]);
    if (read_signals(&given) < 0)
        return ASYM_EXIT_FAILED;
    json_t *array = json_array();
    for (size_t i = 0; asym_policy_at(i); i++) {
        const struct asym_policy *p = asym_policy_at(i);
        char needs[96];
        bool missing;
        needs_of(p, given, needs, sizeof needs, &missing);
        json_array_append_new(array, json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "name", p->name, "summary", p->summary,
                                               "source", p->source, "needs", p->needs ? needs : "", "pin",
                                               asym_pin_name(p->pin), "can_run", !missing));
        if (!as_json)
            printf("%-10s %s\n%-10s %s; needs %s; pin %s; %s\n", p->name, p->summary, "", p->source, needs,
                   asym_pin_name(p->pin), missing ? "cannot run here" : "can run here");
    }
    int r = 0;
    if (as_json)
        r = asym_json_print(json_pack("{s:s, s:O}", "schema", "asymd.policies/1", "policies", array), stdout);
    json_decref(array);
    return r < 0 || fflush(stdout) != 0 ? ASYM_EXIT_FAILED : ASYM_EXIT_DONE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        verb_help(1, argv);
        return ASYM_EXIT_USAGE;
    }
    const char *name = strcmp(argv[1], "--help") == 0 ? "help" : argv[1];
    for (size_t i = 0; i < ASYM_LENGTH(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    return unknown("verb", argv[1]);
}
