/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy that auto selects, and the policies that a machine can run, as tables. */

#include "core/machine-situation.h"
#include "support/test.h"

static const char *const all_there[ASYM_N_SIGNALS];
static const char *const no_counts[ASYM_N_SIGNALS] = {[ASYM_SIGNAL_RUNNABLE] = "no schedstat"};
static const char *const no_counters[ASYM_N_SIGNALS] = {[ASYM_SIGNAL_IPC] = "no PMU", [ASYM_SIGNAL_STALL] = "no PMU"};

static const struct {
    const char *name;
    const char *alike;
    bool kernel_knows;
    const char *const *missing;
    const char *policy, *why; /* why: its first words; NULL: none */
} selections[] = {
    {"auto", NULL, false, all_there, "asym", "CPUs differ in speed"},
    {"auto", "the cause", false, all_there, "none", "the cause"},
    /* Where all CPUs are alike, the other facts say nothing. */
    {"auto", "the cause", false, no_counts, "none", "the cause"},
    /* Without runnable counts asym does not know which thread is waited for. */
    {"auto", NULL, false, no_counts, "busyfcs", "this kernel cannot tell"},
    /* auto needs no counters. */
    {"auto", NULL, false, no_counters, "asym", "CPUs differ in speed"},
    /* A kernel that knows the speeds needs help only where fast CPUs are short, and a user is told so. */
    {"auto", NULL, true, all_there, "asym", "the kernel gives busy threads idle fast CPUs itself"},
    {"auto", NULL, true, no_counts, "busyfcs", "this kernel cannot tell"},
    {"auto", "the cause", true, all_there, "none", "the cause"},
    /* A given name is selected even if that policy cannot run. */
    {"rr", "the cause", false, all_there, "rr", NULL},
    {"ipc-driven", NULL, false, no_counters, "ipc-driven", NULL},
    {"none", NULL, false, all_there, "none", NULL},
    {"nonesuch", NULL, false, all_there, NULL, NULL},
};

TEST(auto_comes_to_the_first_row_that_fits_and_a_name_to_itself)
{
    for (size_t i = 0; i < ASYM_LENGTH(selections); i++) {
        const struct asym_policy_facts facts = {
            .alike = selections[i].alike, .kernel_knows = selections[i].kernel_knows, .missing = selections[i].missing};
        const struct asym_policy_choice choice = asym_policy_select(selections[i].name, &facts);
        const char *why = selections[i].why, *name = choice.policy ? choice.policy->name : "(unknown)";
        if (strcmp(name, selections[i].policy ? selections[i].policy : "(unknown)") != 0)
            fail_msg("row %zu: %s comes to %s", i, selections[i].name, name);
        if (!why != !choice.why || (why && strncmp(choice.why, why, strlen(why)) != 0))
            fail_msg("row %zu: why is %s", i, choice.why ? choice.why : "NULL");
    }
}

#define NEEDS(signal) (1u << (signal))

static const struct {
    unsigned needs;
    const char *refuses;
    const char *const *missing;
    enum asym_signal from, lacks;
    bool can_run;
} abilities[] = {
    {0, NULL, no_counters, 0, ASYM_N_SIGNALS, true},
    {NEEDS(ASYM_SIGNAL_IPC), NULL, all_there, 0, ASYM_N_SIGNALS, true},
    {NEEDS(ASYM_SIGNAL_IPC), NULL, no_counts, 0, ASYM_N_SIGNALS, true},
    {NEEDS(ASYM_SIGNAL_IPC), NULL, no_counters, 0, ASYM_SIGNAL_IPC, false},
    {NEEDS(ASYM_SIGNAL_STALL), NULL, no_counters, 0, ASYM_SIGNAL_STALL, false},
    {NEEDS(ASYM_SIGNAL_IPC) | NEEDS(ASYM_SIGNAL_STALL), NULL, no_counters, 0, ASYM_SIGNAL_IPC, false},
    {NEEDS(ASYM_SIGNAL_IPC) | NEEDS(ASYM_SIGNAL_STALL), NULL, no_counters, ASYM_SIGNAL_STALL, ASYM_SIGNAL_STALL, false},
    {NEEDS(ASYM_SIGNAL_IPC), NULL, no_counters, ASYM_SIGNAL_STALL, ASYM_N_SIGNALS, false},
    {0, "it needs a kernel of its own", all_there, 0, ASYM_N_SIGNALS, false},
};

TEST(a_policy_can_run_where_nothing_that_it_needs_is_missing)
{
    for (size_t i = 0; i < ASYM_LENGTH(abilities); i++) {
        const struct asym_policy policy = {.needs = abilities[i].needs, .refuses = abilities[i].refuses};
        const enum asym_signal lacks = asym_policy_lacks(&policy, abilities[i].missing, abilities[i].from);
        if (lacks != abilities[i].lacks || asym_policy_can_run(&policy, abilities[i].missing) != abilities[i].can_run)
            fail_msg("row %zu: lacks %d", i, (int)lacks);
    }
}

TEST_MAIN
