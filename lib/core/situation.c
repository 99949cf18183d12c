/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/situation.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"

/* The parts that sentences are made of. */
struct words {
    const struct asym_situation_facts *facts;
    unsigned cpus, n_fast, n_slow, n_favoured;
    char fast[64], slow[64]; /* " (P-core)": names of core types, where they say more than the number does */
    char list[64];           /* the usable CPUs */
    char favoured[64];       /* those of the fastest type */
};

typedef int say_fn(const struct words *w, char *buf, size_t size);

static const char *plural(unsigned n)
{
    return n == 1 ? "" : "s";
}

static bool is_hybrid(const struct asym_situation_facts *f)
{
    return asym_machine_is_asymmetric(f->machine);
}

static bool has_one_cpu(const struct asym_situation_facts *f)
{
    return asym_mask_count(&f->machine->usable) == 1;
}

static bool policy_cannot_run(const struct asym_situation_facts *f)
{
    return !f->policy_runs;
}

static bool is_assumed(const struct asym_situation_facts *f)
{
    return is_hybrid(f) && f->assumed_slow;
}

static bool is_unprivileged(const struct asym_situation_facts *f)
{
    return is_hybrid(f) && !f->may_steer;
}

static bool is_virtual_hybrid(const struct asym_situation_facts *f)
{
    return is_hybrid(f) && f->is_virtual;
}

static bool is_near(const struct asym_situation_facts *f)
{
    return f->machine->n_types > 1;
}

static bool is_hidden(const struct asym_situation_facts *f)
{
    return f->hidden;
}

static bool is_unordered(const struct asym_situation_facts *f)
{
    return f->unordered;
}

static bool is_virtual(const struct asym_situation_facts *f)
{
    return f->is_virtual;
}

static bool has_favoured(const struct asym_situation_facts *f)
{
    struct asym_mask favoured;
    return asym_machine_favoured(f->machine, 0, &favoured);
}

static bool always(const struct asym_situation_facts *f)
{
    (void)f;
    return true;
}

static int say_one_cpu(const struct words *w, char *buf, size_t size)
{
    (void)w;
    return snprintf(buf, size, "There is one CPU here: asymd has nothing to choose, and steers nothing.");
}

static int say_policy(const struct words *w, char *buf, size_t size)
{
    return snprintf(buf, size,
                    "asymd cannot run as it is configured: the policy %s needs what this machine does not give.",
                    w->facts->policy);
}

static int say_assumed(const struct words *w, char *buf, size_t size)
{
    return snprintf(
        buf, size,
        "asymd takes %u CPU%s for fast and %u for slow because the configuration says so: nothing makes them slow.",
        w->n_fast, plural(w->n_fast), w->n_slow);
}

static int say_unprivileged(const struct words *w, char *buf, size_t size)
{
    return snprintf(buf, size,
                    "This machine has %u fast CPU%s%s and %u slow%s, but without CAP_SYS_NICE asymd may steer only the "
                    "programs of the user who runs it: run it as root.",
                    w->n_fast, plural(w->n_fast), w->fast, w->n_slow, w->slow);
}

static int say_virtual_hybrid(const struct words *w, char *buf, size_t size)
{
    return snprintf(buf, size,
                    "This virtual machine shows %u fast CPU%s%s and %u slow%s: asymd can steer by that if the host has "
                    "pinned each virtual CPU to a CPU of that kind, and does harm if it has not.",
                    w->n_fast, plural(w->n_fast), w->fast, w->n_slow, w->slow);
}

static int say_hybrid(const struct words *w, char *buf, size_t size)
{
    return snprintf(buf, size,
                    "asymd can help here: of %u CPUs %u %s fast%s and %u slow%s, and threads that others wait for can "
                    "have the fast ones.",
                    w->cpus, w->n_fast, w->n_fast == 1 ? "is" : "are", w->fast, w->n_slow, w->slow);
}

static int say_near(const struct words *w, char *buf, size_t size)
{
    return snprintf(
        buf, size,
        "The %u CPUs differ in speed%s, but all reach the share of the fastest that [machine] fast_from asks "
        "for: asymd has no slow ones, and only policies that go by speed tell them apart.",
        w->cpus, w->fast);
}

static int say_cpuset(const struct words *w, char *buf, size_t size)
{
    return snprintf(buf, size,
                    "This machine has fast and slow CPUs, but the cpuset allows only CPUs %s, which are alike: asymd "
                    "can only spread threads over them.",
                    w->list);
}

static int say_unordered(const struct words *w, char *buf, size_t size)
{
    (void)w;
    return snprintf(buf, size,
                    "The CPUs are of different kinds, but nothing here says which are faster: asymd can help if "
                    "[machine] speeds says it, and until then only spreads threads.");
}

static int say_virtual_alike(const struct words *w, char *buf, size_t size)
{
    return snprintf(buf, size,
                    "This virtual machine shows %u CPUs that are alike: asymd can only spread threads; if the host's "
                    "CPUs differ in speed, run asymd there.",
                    w->cpus);
}

static int say_favoured(const struct words *w, char *buf, size_t size)
{
    return snprintf(
        buf, size,
        "All %u CPUs are of one core type: asymd can only spread threads; with policy = serial-first, a serial "
        "thread goes to the favoured CPU%s %s first.",
        w->cpus, plural(w->n_favoured), w->favoured);
}

static int say_alike(const struct words *w, char *buf, size_t size)
{
    return snprintf(buf, size, "All %u CPUs are alike: asymd can only spread threads, which the kernel does as well.",
                    w->cpus);
}

static const struct {
    const char *name;
    bool (*fits)(const struct asym_situation_facts *facts);
    say_fn *say;
} rows[ASYM_N_SITUATIONS] = {
    [ASYM_SITUATION_ONE_CPU] = {"one-cpu", has_one_cpu, say_one_cpu},
    [ASYM_SITUATION_POLICY] = {"policy", policy_cannot_run, say_policy},
    [ASYM_SITUATION_ASSUMED] = {"assumed", is_assumed, say_assumed},
    [ASYM_SITUATION_UNPRIVILEGED] = {"unprivileged", is_unprivileged, say_unprivileged},
    [ASYM_SITUATION_VM_HYBRID] = {"vm-hybrid", is_virtual_hybrid, say_virtual_hybrid},
    [ASYM_SITUATION_HYBRID] = {"hybrid", is_hybrid, say_hybrid},
    [ASYM_SITUATION_NEAR] = {"near", is_near, say_near},
    [ASYM_SITUATION_CPUSET] = {"cpuset", is_hidden, say_cpuset},
    [ASYM_SITUATION_UNORDERED] = {"unordered", is_unordered, say_unordered},
    [ASYM_SITUATION_VM_ALIKE] = {"vm-alike", is_virtual, say_virtual_alike},
    [ASYM_SITUATION_FAVOURED] = {"favoured", has_favoured, say_favoured},
    [ASYM_SITUATION_ALIKE] = {"alike", always, say_alike},
};

enum asym_situation asym_situation_of(const struct asym_situation_facts *facts)
{
    unsigned s = 0;
    while (s < ASYM_SITUATION_ALIKE && !rows[s].fits(facts))
        s++;
    return (enum asym_situation)s;
}

const char *asym_situation_name(enum asym_situation situation)
{
    return (unsigned)situation < ASYM_N_SITUATIONS ? rows[situation].name : "unknown";
}

/* Is it one of the names that asym_machine_finish() gives to a type of no named kind? */
static bool is_plain(const char *name)
{
    return strcmp(name, "fast") == 0 || strcmp(name, "slow") == 0 || strncmp(name, "type ", 5) == 0;
}

/* " (P-core)", " (E-core, LP E-core)"; "" where the machine names no kinds. */
static void name_types(const struct asym_machine *m, const struct asym_mask *cpus, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (unsigned t = 0; t < m->n_types && used < size; t++) {
        const char *name = m->types[t].name;
        if (!asym_mask_meets(&m->types[t].cpus, cpus) || is_plain(name))
            continue;
        used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : " (", name);
    }
    if (used > 0 && used + 1 < size)
        memcpy(buf + used, ")", 2);
}

const char *asym_situation_text(const struct asym_situation_facts *facts, char *buf, size_t size)
{
    const struct asym_machine *m = facts->machine;
    struct words w = {
        .facts = facts,
        .cpus = asym_mask_count(&m->usable),
        .n_fast = asym_mask_count(&m->fast),
        .n_slow = asym_mask_count(&m->slow),
    };
    struct asym_mask favoured;
    asym_machine_favoured(m, 0, &favoured);
    name_types(m, &m->fast, w.fast, sizeof w.fast);
    name_types(m, &m->slow, w.slow, sizeof w.slow);
    asym_mask_format_list(&m->usable, w.list, sizeof w.list);
    w.n_favoured = asym_mask_count(&favoured);
    asym_mask_format_list(&favoured, w.favoured, sizeof w.favoured);
    rows[asym_situation_of(facts)].say(&w, buf, size);
    return buf;
}
