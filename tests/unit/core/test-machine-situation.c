/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first line of asymd --check: its row, and that it is one sentence. The policy that auto selects, and the policies that a
 * machine can run.
 */
#include <limits.h>
#include <string.h>

#include <asym/engine.h>

#include "base/macro.h"
#include "base/mask.h"
#include "core/machine-situation.h"
#include "support/engine-fixture.h"
#include "support/test.h"
/* n CPUs of these speeds; favour may be NULL. */
static struct asym_machine machine(const double *speeds, unsigned n, const uint32_t *favour)
{
    struct asym_machine m = {.n_cpus = n};
    for (unsigned c = 0; c < n; c++) {
        asym_mask_set(&m.online, c);
        m.cpus[c] = (struct asym_cpu){
            .speed = speeds[c], .core = (int16_t)c, .freq_domain = (int16_t)c, .favour = favour ? favour[c] : 0};
    }
    m.usable = m.online;
    assert_int_equal(asym_machine_finish(&m), 0);
    return m;
}

static void isolate(struct asym_machine *m, const char *list)
{
    if (list)
        assert_int_equal(asym_mask_parse_list(list, strlen(list), &m->isolated), 0);
}

static const double one[] = {1}, same[] = {1, 1, 1, 1}, hybrid[] = {2, 2, 1, 1}, near[] = {1.1, 1.1, 1, 1};
static const uint32_t favoured[] = {5, 9, 5, 5};

/* The facts beside machine and policy. */
#define RUNS(...)                                                                                                      \
    {                                                                                                                  \
        .policy_runs = true, __VA_ARGS__                                                                               \
    }

static const struct {
    const double *speeds;
    const uint32_t *favour;
    enum asym_situation situation;
    const char *name, *part;
    struct asym_situation_facts facts;
} rows[] = {
    {one, NULL, ASYM_SITUATION_ONE_CPU, "one-cpu", "one usable CPU", RUNS(.may_steer = true)},
    {hybrid, NULL, ASYM_SITUATION_POLICY, "policy", "this machine cannot run the policy pa.", {.may_steer = true}},
    {hybrid, NULL, ASYM_SITUATION_ASSUMED, "assumed", "2 CPUs fast and 2 slow, but no CPU was slowed",
     RUNS(.may_steer = true, .assumed_slow = true, .is_virtual = true)},
    {hybrid, NULL, ASYM_SITUATION_UNPRIVILEGED, "unprivileged", "CAP_SYS_NICE", RUNS(.may_steer = false)},
    {hybrid, NULL, ASYM_SITUATION_VM_HYBRID, "vm-hybrid", "virtual machine shows 2 fast CPUs and 2 slow",
     RUNS(.may_steer = true, .is_virtual = true)},
    {hybrid, NULL, ASYM_SITUATION_HYBRID, "hybrid", "of 4 CPUs 2 are fast and 2 slow", RUNS(.may_steer = true)},
    {near, NULL, ASYM_SITUATION_NEAR, "near", "[machine] fast_from", RUNS(.may_steer = true)},
    {same, NULL, ASYM_SITUATION_CPUSET, "cpuset", "the cpuset allows only CPUs 0-3",
     RUNS(.hidden = true, .unordered = true)},
    {same, NULL, ASYM_SITUATION_UNORDERED, "unordered", "[machine] speeds",
     RUNS(.unordered = true, .is_virtual = true)},
    {same, NULL, ASYM_SITUATION_NO_SPEEDS, "no-speeds", "speeds of the 4 CPUs", RUNS(.unknown = true)},
    {same, favoured, ASYM_SITUATION_VM_ALIKE, "vm-alike", "shows 4 CPUs that are alike",
     RUNS(.is_virtual = true, .unknown = true)},
    {same, favoured, ASYM_SITUATION_FAVOURED, "favoured", "the favoured CPU 1 first.", RUNS(.hidden = false)},
    {same, NULL, ASYM_SITUATION_ALIKE, "alike", "All 4 CPUs are alike", RUNS(.hidden = false)},
};

static void assert_says(const struct asym_situation_facts *facts, const char *part)
{
    char text[400];
    if (!strstr(asym_situation_text(facts, text, sizeof text), part))
        fail_msg("'%s' is not in '%s'", part, text);
}

TEST(each_situation_has_its_sentence)
{
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const struct asym_machine m = machine(rows[i].speeds, rows[i].speeds == one ? 1 : 4, rows[i].favour);
        struct asym_situation_facts facts = rows[i].facts;
        char text[400];
        facts.machine = &m;
        facts.policy = "pa";
        assert_int_equal(asym_situation_of(&facts), rows[i].situation);
        assert_string_equal(asym_situation_name(rows[i].situation), rows[i].name);
        assert_says(&facts, rows[i].part);
        asym_situation_text(&facts, text, sizeof text);
        assert_int_equal(text[strlen(text) - 1], '.');
        assert_null(strstr(text, ". "));   /* one sentence */
        assert_null(strpbrk(text, "{?}")); /* every word is filled in */
    }
    assert_int_equal(ASYM_LENGTH(rows) + 1, ASYM_N_SITUATIONS); /* ISOLATED is below */
}

/* Two cores with two hardware threads each, and two with one. */
TEST(hardware_threads_are_not_counted_as_cores)
{
    static const double speeds[] = {2, 2, 2, 2, 1, 1};
    static const struct {
        struct asym_situation_facts facts;
        const char *part;
    } cases[] = {
        {{.policy_runs = true, .may_steer = true}, "of 4 cores with 6 CPUs 2 are fast and 2 slow"},
        {{.policy_runs = true}, "has 2 fast cores and 2 slow"},
    };
    struct asym_machine m = machine(speeds, 6, NULL);
    m.cpus[1].core = m.cpus[0].core;
    m.cpus[3].core = m.cpus[2].core;
    assert_int_equal(asym_machine_finish(&m), 0);
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct asym_situation_facts facts = cases[i].facts;
        facts.machine = &m;
        assert_says(&facts, cases[i].part);
    }
}

/* Verdicts and thresholds are about CPUs that ordinary threads get. */
TEST(isolated_cpus_do_not_count)
{
    static const struct {
        const double *speeds;
        const char *isolated, *name, *part;
        unsigned hp_threshold;
    } cases[] = {
        {hybrid, NULL, "hybrid", "of 4 CPUs 2 are fast and 2 slow", 3},
        {hybrid, "0", "hybrid", "of 3 CPUs (0 is isolated) 1 is fast and 2 slow", 2},
        {hybrid, "1-2", "hybrid", "of 2 CPUs (1-2 are isolated) 1 is fast and 1 slow", 2},
        {hybrid, "2-3", "isolated", "get only CPUs 0-1, which are all fast", 3},
        {hybrid, "0-1", "isolated", "get only CPUs 2-3, which are all slow", 3}, /* no faster one for such a thread */
        {hybrid, "0-2", "isolated", "get only CPU 3:", 2},
        {hybrid, "0-3", "hybrid", "of 4 CPUs 2 are fast", 3}, /* all of them is none */
        {same, "3", "alike", "All 3 CPUs (3 is isolated) are alike", 4},
        {same, "1-3", "isolated",
         "CPUs 1-3 are isolated (isolcpus, nohz_full), and ordinary threads get only CPU 0:", 2},
        {near, "0", "near", "The 3 CPUs (0 is isolated) differ", 4},
        {near, "0-1", "alike", "All 2 CPUs (0-1 are isolated) are alike", 3},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct asym_machine m = machine(cases[i].speeds, 4, NULL);
        const struct asym_situation_facts facts = {
            .machine = &m, .policy = "pa", .policy_runs = true, .may_steer = true};
        const struct asym_classify_settings automatic = {.hp_threshold = UINT_MAX};
        isolate(&m, cases[i].isolated);
        assert_string_equal(asym_situation_name(asym_situation_of(&facts)), cases[i].name);
        assert_says(&facts, cases[i].part);
        assert_int_equal(asym_hp_threshold(&automatic, &m), cases[i].hp_threshold);
    }
    struct asym_machine m = machine(same, 4, favoured); /* CPU 1 is the favoured one */
    const struct asym_situation_facts facts = {.machine = &m, .policy = "pa", .policy_runs = true, .may_steer = true};
    isolate(&m, "1");
    assert_int_equal(asym_situation_of(&facts), ASYM_SITUATION_ALIKE);
}

/* Each cause has its text: what helps is another thing for each. */
TEST(why_no_cpu_is_faster_is_said_by_cause)
{
    static const struct {
        const double *speeds;
        unsigned n;
        const char *isolated;
        struct asym_situation_facts facts; /* without the machine */
        const char *why, *remedy;          /* parts; why: NULL: the CPUs differ */
    } cases[] = {
        {hybrid, 4, NULL, {.unknown = true}, NULL, ""},
        {near, 4, NULL, {.unordered = true}, NULL, ""},
        {one, 1, NULL, {.unknown = true}, "one usable CPU", ""},
        {hybrid, 4, "0-1", {.unknown = true}, "the others are isolated", ""},
        {hybrid, 4, "0-2", {.hidden = true}, "the others are isolated", ""},
        {near, 4, "0-1", {0}, "the others are isolated", ""},
        {same, 4, NULL, {.hidden = true, .unordered = true}, "the cpuset allows only", ""},
        {same, 4, NULL, {.unordered = true}, "different kinds", "[machine] speeds"},
        {same, 4, "0-1", {.unknown = true}, "no source gives the speeds", "[machine] speeds"},
        {same, 4, NULL, {0}, "all CPUs are alike", "--slow=N"},
        {same, 4, NULL, {.assumed_slow = true}, "one speed", "leave a CPU out of [asymmetry] slow"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct asym_machine m = machine(cases[i].speeds, cases[i].n, NULL);
        struct asym_situation_facts facts = cases[i].facts;
        facts.machine = &m;
        isolate(&m, cases[i].isolated);
        if (facts.assumed_slow)
            assert_int_equal(asym_machine_assume_slow(&m, &m.usable, 0.5), 0);
        const struct asym_alike *alike = asym_situation_alike(&facts);
        if (!alike != !cases[i].why ||
            (alike && (!strstr(alike->why, cases[i].why) || !strstr(alike->remedy, cases[i].remedy) ||
                       !*alike->remedy != !*cases[i].remedy)))
            fail_msg("row %zu: %s (%s)", i, alike ? alike->why : "NULL", alike ? alike->remedy : "");
    }
}

/* The dies of an X3D: CPUs 0 and 1 have the stacked cache. Caches of other core types do not count. */
TEST(caches_of_two_sizes_are_said)
{
    static const struct {
        const double *speeds;
        uint32_t mib[4];
        const char *part; /* NULL: nothing is said of caches */
    } cases[] = {
        {same,
         {96, 96, 32, 32},
         "; CPUs 0-1 have a larger L3 than 2-3 (96 and 32 MiB): a rule can say cpus = big-cache"},
        {same, {32, 32, 32, 32}, NULL},
        {same, {0, 0, 0, 0}, NULL},
        {hybrid, {16, 16, 8, 8}, NULL},
    };
    for (size_t i = 0; i < ASYM_LENGTH(cases); i++) {
        struct asym_machine m = machine(cases[i].speeds, 4, NULL);
        const struct asym_situation_facts facts = {
            .machine = &m, .policy = "pa", .policy_runs = true, .may_steer = true};
        char text[400];
        for (unsigned c = 0; c < 4; c++)
            m.cpus[c].l3_kib = cases[i].mib[c] * 1024;
        asym_situation_text(&facts, text, sizeof text);
        assert_int_equal(strstr(text, cases[i].part ? cases[i].part : "larger L3") != NULL, cases[i].part != NULL);
    }
}

/* The longest names of core types, and the most CPUs. */
TEST(a_long_sentence_is_whole_and_a_short_buffer_is_not_overrun)
{
    static double speeds[ASYM_MAX_CPUS];
    for (unsigned c = 0; c < ASYM_MAX_CPUS; c++)
        speeds[c] = 1 + c % 16;
    static struct asym_machine m;
    m = machine(speeds, ASYM_MAX_CPUS, NULL);
    for (unsigned t = 0; t < m.n_types; t++)
        memset(m.types[t].name, 'x', sizeof m.types[t].name - 1);
    const struct asym_situation_facts facts = {.machine = &m, .policy = "pa", .policy_runs = true};
    char text[400], tiny[8];
    asym_situation_text(&facts, text, sizeof text);
    assert_non_null(strstr(text, "run it as root, outside of containers."));
    asym_situation_text(&facts, tiny, sizeof tiny);
    assert_true(strlen(tiny) == sizeof tiny - 1);
    assert_string_equal(asym_situation_name((enum asym_situation)99), "unknown");
}

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
