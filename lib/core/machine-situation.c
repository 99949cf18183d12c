/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/machine-situation.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

/* Cores of one type whose last-level caches differ in size, as on the two dies of an X3D. Pure. */

bool asym_machine_caches_differ(const struct asym_machine *m, struct asym_mask *ret_big_cache,
                                struct asym_mask *ret_high_clock)
{
    const struct asym_mask *cpus = &m->types[0].cpus;
    uint32_t most = 0;
    *ret_big_cache = *ret_high_clock = (struct asym_mask){0};
    ASYM_MASK_FOREACH (c, cpus)
        most = ASYM_MAX(most, m->cpus[c].l3_kib);
    ASYM_MASK_FOREACH (c, cpus)
        if (m->cpus[c].l3_kib < most)
            asym_mask_set(ret_high_clock, (unsigned)c);
    if (asym_mask_empty(ret_high_clock))
        return false;
    *ret_big_cache = asym_mask_minus(cpus, ret_high_clock);
    return true;
}

/* In the sentences {name} stands for a word of write_words. */
static const struct {
    const char *name, *sentence;
} rows[ASYM_N_SITUATIONS] = {
    [ASYM_SITUATION_ONE_CPU] = {"one-cpu",
                                "This machine has one usable CPU: asymd has nothing to choose and steers nothing."},
    [ASYM_SITUATION_POLICY] = {"policy",
                               "asymd cannot run as it is configured: this machine cannot run the policy {policy}."},
    [ASYM_SITUATION_ISOLATED] = {"isolated", "{isolated} isolated (isolcpus, nohz_full), and ordinary threads get only "
                                             "{ordinary}: there asymd has nothing to choose."},
    [ASYM_SITUATION_ASSUMED] = {"assumed",
                                "--slow or the configuration calls {fast CPUs} fast and {n slow} slow, but no CPU "
                                "was slowed: this is a what-if."},
    [ASYM_SITUATION_UNPRIVILEGED] =
        {"unprivileged", "This machine has {fast} and {slow}, but without CAP_SYS_NICE asymd may steer "
                         "only the programs of the user who runs it: run it as root, outside of containers."},
    [ASYM_SITUATION_VM_HYBRID] = {"vm-hybrid",
                                  "This virtual machine shows {fast} and {slow}: asymd can steer by that if the host "
                                  "has pinned each virtual CPU to a CPU of that kind, and does harm if it has not."},
    [ASYM_SITUATION_HYBRID] = {"hybrid",
                               "asymd can help here: of {n CPUs} {are fast} and {slow}, and threads that others wait "
                               "for can have the fast ones."},
    [ASYM_SITUATION_NEAR] = {"near",
                             "The {n CPUs} differ in speed{fast types}, but all reach the share of the fastest that "
                             "[machine] fast_from sets: asymd calls none slow, and only policies that use speeds, "
                             "such as asym, tell them apart."},
    [ASYM_SITUATION_CPUSET] = {"cpuset",
                               "This machine has fast and slow CPUs, but the cpuset allows only CPUs {list}, which "
                               "are alike: there asymd has nothing to choose."},
    [ASYM_SITUATION_UNORDERED] = {"unordered",
                                  "The CPUs are of different kinds, but no source says which are faster: asymd can "
                                  "help if you set [machine] speeds, and until then it treats them as alike."},
    [ASYM_SITUATION_NO_SPEEDS] = {"no-speeds",
                                  "No source gives the speeds of the {n CPUs}, so asymd takes them for alike: it "
                                  "can help if you set [machine] speeds and they differ."},
    [ASYM_SITUATION_VM_ALIKE] = {"vm-alike",
                                 "This virtual machine shows {n CPUs} that are alike: asymd has nothing to choose; "
                                 "if the host's CPUs differ in speed, run asymd there."},
    [ASYM_SITUATION_FAVOURED] =
        {"favoured", "All {n CPUs} are of one core type: by default asymd leaves threads to the kernel; "
                     "with policy = serial-first, a serial thread goes to the favoured {favoured} first{caches}."},
    [ASYM_SITUATION_ALIKE] = {"alike",
                              "All {n CPUs} are alike: by default asymd leaves threads to the kernel{caches}."},
};

/* Returns whether ordinary threads get favoured CPUs of the fastest type that they get, and these. */
static bool find_favoured(const struct asym_machine *m, const struct asym_mask *ordinary, struct asym_mask *ret)
{
    unsigned first = 0;
    while (first + 1 < m->n_types && !asym_mask_meets(&m->types[first].cpus, ordinary))
        first++;
    const bool some = asym_machine_favoured(m, first, ret);
    *ret = asym_mask_and(ret, ordinary);
    return some && !asym_mask_empty(ret);
}

enum asym_situation asym_situation_of(const struct asym_situation_facts *facts)
{
    const struct asym_machine *m = facts->machine;
    const struct asym_mask ordinary = asym_machine_ordinary(m);
    const bool hybrid = asym_mask_meets(&m->fast, &ordinary) && asym_mask_meets(&m->slow, &ordinary);
    const bool one = asym_mask_count(&ordinary) == 1;
    struct asym_mask favoured;
    const bool fits[ASYM_N_SITUATIONS] = {
        [ASYM_SITUATION_ONE_CPU] = asym_mask_count(&m->usable) == 1,
        [ASYM_SITUATION_POLICY] = !facts->policy_runs,
        [ASYM_SITUATION_ISOLATED] = one || (asym_machine_is_asymmetric(m) && !hybrid),
        [ASYM_SITUATION_ASSUMED] = hybrid && facts->assumed_slow,
        [ASYM_SITUATION_UNPRIVILEGED] = hybrid && !facts->may_steer,
        [ASYM_SITUATION_VM_HYBRID] = hybrid && facts->is_virtual,
        [ASYM_SITUATION_HYBRID] = hybrid,
        [ASYM_SITUATION_NEAR] = asym_machine_speeds_differ(m),
        [ASYM_SITUATION_CPUSET] = facts->hidden,
        [ASYM_SITUATION_UNORDERED] = facts->unordered,
        [ASYM_SITUATION_NO_SPEEDS] = facts->unknown && !facts->is_virtual,
        [ASYM_SITUATION_VM_ALIKE] = facts->is_virtual,
        [ASYM_SITUATION_FAVOURED] = find_favoured(m, &ordinary, &favoured),
        [ASYM_SITUATION_ALIKE] = true,
    };
    unsigned s = 0;
    while (!fits[s])
        s++;
    return (enum asym_situation)s;
}

const struct asym_alike *asym_situation_alike(const struct asym_situation_facts *facts)
{
    enum { ONE, ISOLATED, CONFIGURED, CPUSET, UNORDERED, UNKNOWN, ALIKE, N_CAUSES };
    static const struct asym_alike causes[N_CAUSES] = {
        [ONE] = {"there is one usable CPU", ""},
        [ISOLATED] = {"ordinary threads get no CPU that is faster than another; the others are isolated", ""},
        [CONFIGURED] = {"the configuration gives all CPUs one speed",
                        "leave a CPU out of [asymmetry] slow, or name other speeds in [machine] speeds"},
        [CPUSET] = {"the cpuset allows only CPUs that are alike", ""},
        [UNORDERED] = {"the CPUs are of different kinds, and no source says which are faster", "set [machine] speeds"},
        [UNKNOWN] = {"no source gives the speeds of the CPUs", "set [machine] speeds if they differ"},
        [ALIKE] = {"all CPUs are alike", "try a plan with --dry-run --slow=N, or name slow CPUs in [asymmetry] slow"},
    };
    const struct asym_machine *m = facts->machine;
    const bool fits[N_CAUSES] = {
        [ONE] = asym_mask_count(&m->usable) == 1,
        [ISOLATED] = m->types[m->n_types - 1].speed < m->types[0].speed,
        [CONFIGURED] = m->types[0].origin == ASYM_ORIGIN_CONFIG,
        [CPUSET] = facts->hidden,
        [UNORDERED] = facts->unordered,
        [UNKNOWN] = facts->unknown,
        [ALIKE] = true,
    };
    size_t i = 0;
    if (asym_machine_speeds_differ(m))
        return NULL;
    while (!fits[i])
        i++;
    return &causes[i];
}

const char *asym_situation_name(enum asym_situation situation)
{
    return (unsigned)situation < ASYM_N_SITUATIONS ? rows[situation].name : "unknown";
}

/* True for the default names that asym_machine_finish() gives to types without a named kind. */
static bool is_plain(const char *name)
{
    return strcmp(name, "fast") == 0 || strcmp(name, "slow") == 0 || strncmp(name, "type ", 5) == 0;
}

/* Writes " (P-core)" or " (E-core, LP E-core)"; "" if the machine names no kinds. */
static const char *name_types(const struct asym_machine *m, const struct asym_mask *cpus, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    for (unsigned t = 0; t < m->n_types; t++)
        if (asym_mask_meets(&m->types[t].cpus, cpus) && !is_plain(m->types[t].name))
            asym_text_add(&text, "%s%s", text.used ? ", " : " (", m->types[t].name);
    if (text.used > 0)
        asym_text_add(&text, ")");
    return buf;
}

struct word {
    const char *name;
    char text[200];
};

__attribute__((format(printf, 3, 4))) static void add(struct word **next, const char *name, const char *format, ...)
{
    struct word *word = (*next)++;
    va_list args;
    word->name = name;
    va_start(args, format);
    vsnprintf(word->text, sizeof word->text, format, args);
    va_end(args);
}

/* Writes "CPUs 16-31, which are all slow", "CPU 0". */
static void write_ordinary(const struct asym_machine *m, const struct asym_mask *ordinary, char *buf, size_t size)
{
    char list[64];
    asym_mask_format_list(ordinary, list, sizeof list);
    if (asym_mask_count(ordinary) == 1)
        snprintf(buf, size, "CPU %s", list);
    else
        snprintf(buf, size, "CPUs %s, which are all %s", list, asym_mask_within(ordinary, &m->fast) ? "fast" : "slow");
}

static unsigned count_cores(const struct asym_machine *m, const struct asym_mask *cpus)
{
    const struct asym_mask cores = asym_machine_cores(m, cpus);
    return asym_mask_count(&cores);
}

/* Writes "32 CPUs", "24 cores with 32 CPUs", "24 CPUs (0-7 are isolated)". */
static void write_count(const struct asym_machine *m, const struct asym_mask *ordinary, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    const unsigned n = asym_mask_count(ordinary), n_cores = count_cores(m, ordinary);
    char list[64];
    if (n_cores < n)
        asym_text_add(&text, "%u core%s with ", n_cores, n_cores == 1 ? "" : "s");
    asym_text_add(&text, "%u CPUs", n);
    if (!asym_mask_equal(ordinary, &m->usable))
        asym_text_add(&text, " (%s %s isolated)", asym_mask_format_list(&m->isolated, list, sizeof list),
                      asym_mask_count(&m->isolated) == 1 ? "is" : "are");
}

/* Writes "; CPUs 0-7 have a larger L3 than 8-15 (96 and 32 MiB): ..." if the fastest type has caches of two sizes; else "". */
static void write_caches(const struct asym_machine *m, char *buf, size_t size)
{
    struct asym_mask big, others;
    char big_list[48], other_list[48];
    *buf = '\0';
    if (!asym_machine_caches_differ(m, &big, &others))
        return;
    snprintf(buf, size,
             "; CPUs %s have a larger L3 than %s (%u and %u MiB): a rule can say cpus = big-cache or high-clock",
             asym_mask_format_list(&big, big_list, sizeof big_list),
             asym_mask_format_list(&others, other_list, sizeof other_list),
             m->cpus[asym_mask_next(&big, 0)].l3_kib / 1024, m->cpus[asym_mask_next(&others, 0)].l3_kib / 1024);
}

/* The last word has no name. */
#define N_WORDS 14

static void write_words(const struct asym_situation_facts *facts, struct word ret[N_WORDS])
{
    const struct asym_machine *m = facts->machine;
    const struct asym_mask ordinary = asym_machine_ordinary(m);
    const struct asym_mask fasts = asym_mask_and(&m->fast, &ordinary), slows = asym_mask_and(&m->slow, &ordinary);
    const unsigned n_fast = count_cores(m, &fasts), n_slow = count_cores(m, &slows),
                   isolated = asym_mask_count(&m->isolated);
    const char *unit = n_fast + n_slow < asym_mask_count(&ordinary) ? "core" : "CPU";
    char fast[64], slow[64], usable[64], favoured[64], counted[96], got[96], caches[200];
    struct asym_mask first;
    find_favoured(m, &ordinary, &first);
    name_types(m, &fasts, fast, sizeof fast);
    name_types(m, &slows, slow, sizeof slow);
    write_count(m, &ordinary, counted, sizeof counted);
    write_ordinary(m, &ordinary, got, sizeof got);
    write_caches(m, caches, sizeof caches);
    add(&ret, "caches", "%s", caches);
    add(&ret, "policy", "%s", facts->policy);
    add(&ret, "n CPUs", "%s", counted);
    add(&ret, "ordinary", "%s", got);
    add(&ret, "isolated", "CPU%s %s %s", isolated == 1 ? "" : "s",
        asym_mask_format_list(&m->isolated, usable, sizeof usable), isolated == 1 ? "is" : "are");
    add(&ret, "n slow", "%u", n_slow);
    add(&ret, "fast CPUs", "%u %s%s", n_fast, unit, n_fast == 1 ? "" : "s");
    add(&ret, "fast", "%u fast %s%s%s", n_fast, unit, n_fast == 1 ? "" : "s", fast);
    add(&ret, "are fast", "%u %s fast%s", n_fast, n_fast == 1 ? "is" : "are", fast);
    add(&ret, "fast types", "%s", fast);
    add(&ret, "slow", "%u slow%s", n_slow, slow);
    add(&ret, "list", "%s", asym_mask_format_list(&m->usable, usable, sizeof usable));
    add(&ret, "favoured", "CPU%s %s", asym_mask_count(&first) == 1 ? "" : "s",
        asym_mask_format_list(&first, favoured, sizeof favoured));
    ret->name = NULL;
}

static const char *find_word(const struct word *words, const char *name, size_t len)
{
    while (words->name && (strncmp(words->name, name, len) != 0 || words->name[len] != '\0'))
        words++;
    return words->name ? words->text : "?";
}

const char *asym_situation_text(const struct asym_situation_facts *facts, char *buf, size_t size)
{
    const char *rest = rows[asym_situation_of(facts)].sentence;
    struct word words[N_WORDS];
    size_t used = 0;
    write_words(facts, words);
    for (bool in_braces = false; *rest && used < size; in_braces = !in_braces) {
        size_t len = 0;
        while (rest[len] && rest[len] != '{' && rest[len] != '}')
            len++;
        used += (size_t)(in_braces ? snprintf(buf + used, size - used, "%s", find_word(words, rest, len))
                                   : snprintf(buf + used, size - used, "%.*s", (int)len, rest));
        rest += len + (rest[len] != '\0');
    }
    return buf;
}

struct asym_policy_choice asym_policy_select(const char *name, const struct asym_policy_facts *facts)
{
    /* The first row that fits wins. */
    const struct {
        bool fits;
        const char *policy, *why;
    } choices[] = {
        {facts->alike != NULL, "none", facts->alike},
        {facts->missing[ASYM_SIGNAL_RUNNABLE] != NULL, "busyfcs",
         "this kernel cannot tell serial from parallel programs"},
        {facts->kernel_knows, "asym",
         "the kernel gives busy threads idle fast CPUs itself; where these are short, the threads that are waited for "
         "most get them"},
        {true, "asym", "CPUs differ in speed, and the threads that are waited for most gain from the fast ones"},
    };
    size_t i = 0;
    if (strcmp(name, "auto") != 0)
        return (struct asym_policy_choice){.policy = asym_policy_find(name)};
    while (!choices[i].fits)
        i++;
    return (struct asym_policy_choice){.policy = asym_policy_find(choices[i].policy), .why = choices[i].why};
}

enum asym_signal asym_policy_lacks(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS],
                                   enum asym_signal from)
{
    unsigned k = from;
    while (k < ASYM_N_SIGNALS && !(policy->needs >> k & 1 && missing[k]))
        k++;
    return (enum asym_signal)k;
}

bool asym_policy_can_run(const struct asym_policy *policy, const char *const missing[ASYM_N_SIGNALS])
{
    return !policy->refuses && asym_policy_lacks(policy, missing, 0) == ASYM_N_SIGNALS;
}
