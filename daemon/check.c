/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd --check: what this machine offers and lacks; one line each, with the remedy. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mask.h"
#include "daemon/json.h"
#include "daemon/run.h"
#include "linux/facts.h"

static const char *const levels[] = {[ASYM_FACT_GOOD] = "good", [ASYM_FACT_NOTE] = "note", [ASYM_FACT_LACK] = "lack"};

static int add(void *ctx, const char *name, const struct asym_fact *fact)
{
    json_t *lines = ctx;
    return json_array_append_new(lines, json_pack("{s:s, s:s, s:o, s:o}", "name", name, "level", levels[fact->level],
                                                  "text", asym_json_bytes(fact->text, strlen(fact->text)), "remedy",
                                                  asym_json_bytes(fact->remedy, strlen(fact->remedy))));
}

__attribute__((format(printf, 5, 6))) static void say(json_t *lines, const char *name, enum asym_fact_level level,
                                                      const char *remedy, const char *format, ...)
{
    struct asym_fact fact = {.level = level};
    va_list args;
    va_start(args, format);
    vsnprintf(fact.text, sizeof fact.text, format, args);
    va_end(args);
    snprintf(fact.remedy, sizeof fact.remedy, "%s", remedy);
    add(lines, name, &fact);
}

static void add_machine(json_t *lines, const struct asym_run *run)
{
    const struct asym_machine *m = run->machine;
    for (unsigned t = 0; t < m->n_types; t++) {
        char cpus[96];
        say(lines, "core type", ASYM_FACT_GOOD, "", "%s: CPUs %s, speed %.2f, from %s", m->types[t].name,
            asym_mask_format_list(&m->types[t].cpus, cpus, sizeof cpus), m->types[t].speed,
            asym_origin_name(m->types[t].origin));
    }
    if (!asym_machine_is_asymmetric(m))
        say(lines, "asymmetry", ASYM_FACT_NOTE, "try a plan with --slow, or name slow CPUs in [asymmetry] slow",
            "all CPUs are alike: there is nothing to choose between");
    if (run->assumed_slow)
        say(lines, "asymmetry", ASYM_FACT_NOTE, "", "some CPUs are only taken for slow, as configured");
    for (size_t i = 0; i < run->notes.n; i++)
        say(lines, run->notes.note[i].used ? "speed source" : "not used", ASYM_FACT_GOOD, "", "%s: %s",
            asym_origin_name(run->notes.note[i].origin), run->notes.note[i].text);
}

static void add_births(json_t *lines, const struct asym_run *run)
{
    struct asym_births *births = NULL;
    struct asym_error err = {""};
    if (!run->root.live)
        return;
    if (asym_births_open(&births, &err) < 0)
        say(lines, "births", ASYM_FACT_LACK, "run as root, or with CAP_NET_ADMIN, outside containers", "%.180s",
            err.text);
    else
        say(lines, "births", ASYM_FACT_GOOD, "", "the proc connector tells of births and deaths");
    asym_births_close(births);
}

/* What the policy needs beyond what every machine gives; counters and profiles are not read by this version. */
static bool add_policy(json_t *lines, const struct asym_run *run)
{
    const struct asym_policy *policy = asym_run_policy(run->settings);
    bool smt = run->machine->n_cores < asym_mask_count(&run->machine->usable);
    unsigned given = 1u << ASYM_SIGNAL_RUNNABLE | (smt ? 1u << ASYM_SIGNAL_SMT : 0);
    for (int k = 0; k < ASYM_N_SIGNALS; k++)
        if ((policy->needs & ~given) >> k & 1)
            say(lines, "policy", ASYM_FACT_LACK, "choose another: asymctl policies", "%s needs the signal %s",
                policy->name, asym_signal_name((enum asym_signal)k));
    if (policy->needs & ~given)
        return false;
    say(lines, "policy", ASYM_FACT_GOOD, "", "%s can run here", policy->name);
    return true;
}

static int print_text(json_t *lines, bool can_run)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        const char *remedy = json_string_value(json_object_get(line, "remedy"));
        printf("%-5s %-14s %s\n", json_string_value(json_object_get(line, "level")),
               json_string_value(json_object_get(line, "name")), json_string_value(json_object_get(line, "text")));
        if (remedy && *remedy)
            printf("%-20s -> %s\n", "", remedy);
    }
    printf("\n%s\n", can_run ? "The configured policy can run here." : "The configured policy cannot run here.");
    return fflush(stdout) == 0 ? 0 : -EIO;
}

enum asym_exit asym_mode_check(struct asym_run *run)
{
    ASYM_AUTO_JSON json_t *lines = json_array();
    if (!lines)
        return ASYM_EXIT_FAILED;
    add_machine(lines, run);
    asym_facts_each(&run->root, add, lines);
    add_births(lines, run);
    bool can_run = add_policy(lines, run);
    int r = run->cli->json ? asym_json_print(json_pack("{s:s, s:O, s:b}", "schema", "asymd.check/1", "lines", lines,
                                                       "can_run", can_run),
                                             stdout)
                           : print_text(lines, can_run);
    return r < 0 ? ASYM_EXIT_FAILED : can_run ? ASYM_EXIT_DONE : ASYM_EXIT_NO_SIGNAL;
}
