/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mode behind asymd --check: gathers the lines, changes nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "core/situation.h"
#include "daemon/attributes.h"
#include "daemon/check.h"
#include "daemon/columns.h"
#include "daemon/hear.h"
#include "daemon/policies.h"
#include "daemon/run.h"
#include "daemon/speeds.h"
#include "linux/procfs.h"
#include "linux/virtual.h"

static int add_machine(struct asym_check *check, const struct asym_run *run)
{
    const struct asym_machine *m = run->machine;
    char l3[256];
    int r = 0;
    for (unsigned t = 0; r >= 0 && t < m->n_types; t++) {
        const struct asym_core_type *type = &m->types[t];
        char cpus[96];
        asym_columns_cpus(&type->cpus, 64, cpus, sizeof cpus);
        r = asym_check_add(check, "core type", ASYM_FACT_GOOD, "", "%s: CPUs %s, speed %.2f, %s%s", type->name, cpus,
                           type->speed, type->origin == ASYM_ORIGIN_NONE ? "as the machine is" : "from ",
                           type->origin == ASYM_ORIGIN_NONE ? "" : asym_origin_name(type->origin));
    }
    if (r >= 0 && !asym_machine_is_asymmetric(m))
        r = asym_check_add(check, "asymmetry", ASYM_FACT_NOTE,
                           "try a plan with --dry-run --slow=N, or name slow CPUs in [asymmetry] slow",
                           m->n_types > 1 ? "no CPU is slow: all core types reach machine.fast_from of the fastest"
                                          : "all CPUs are alike: threads are only spread");
    if (r >= 0 && run->assumed_slow)
        r = asym_check_add(check, "asymmetry", ASYM_FACT_NOTE, "",
                           "some CPUs are only taken for slow, as configured: nothing makes them so");
    for (size_t i = 0; r >= 0 && i < run->notes.n; i++) {
        const struct asym_speed_note *note = &run->notes.note[i];
        r = asym_check_add(check, note->used ? "speed source" : "not used",
                           note->used ? ASYM_FACT_GOOD : ASYM_FACT_NOTE, "", "%s", note->text);
    }
    for (unsigned t = 0; r >= 0 && t < m->n_types; t++) {
        char favoured[96];
        if (asym_describe_favoured(m, t, favoured, sizeof favoured))
            r = asym_check_add(check, "favoured", ASYM_FACT_GOOD, "", "%s: CPUs %s, by %s", m->types[t].name, favoured,
                               run->notes.favour ? run->notes.favour : "configuration");
    }
    if (r >= 0 && asym_describe_l3(m, l3, sizeof l3))
        r = asym_check_add(check, "attribute", ASYM_FACT_GOOD, "", "%.190s (no core type by itself)", l3);
    return r;
}

static int add_births(struct asym_check *check, const struct asym_run *run)
{
    struct asym_births *births = NULL;
    struct asym_error err = {""};
    if (!run->root.live)
        return 0;
    int r = asym_births_open(&births, &err);
    asym_births_close(births);
    if (r < 0)
        return asym_check_add(check, "births", ASYM_FACT_LACK,
                              "run as root or with CAP_NET_ADMIN, outside containers; until then /proc is scanned",
                              "%.190s", *err.text ? err.text : strerror(-r));
    return asym_check_add(check, "births", ASYM_FACT_GOOD, "", "the proc connector tells of births and deaths");
}

static int add_policy(struct asym_check *check, const struct asym_run *run)
{
    const struct asym_policy *policy = run->policy;
    const char *const *missing = run->signals.missing;
    char others[180], remedy[200];
    int r = 0;
    asym_signals_policies(missing, others, sizeof others);
    snprintf(remedy, sizeof remedy, "choose another: %s", others);
    check->can_run = asym_policies_can_run(policy, missing);
    if (policy->refuses)
        return asym_check_add(check, "policy", ASYM_FACT_LACK, remedy, "%s cannot run on a live machine: %s",
                              policy->name, policy->refuses);
    for (int k = 0; r >= 0 && k < ASYM_N_SIGNALS; k++) {
        if (!(policy->needs >> k & 1) || !missing[k])
            continue;
        r = asym_check_add(check, "policy", ASYM_FACT_LACK, remedy, "%s needs the signal %s: %s", policy->name,
                           asym_signal_name((enum asym_signal)k), missing[k]);
    }
    if (r >= 0 && check->can_run)
        r = asym_check_add(check, "policy", ASYM_FACT_GOOD, "", "%s: every signal it needs is there%s%s", policy->name,
                           run->policy_why ? "; chosen by auto: " : "", run->policy_why ? run->policy_why : "");
    return r;
}

/* How long the threads of OpenMP programs are watched. */
#define WATCH_MS 60

struct names {
    char text[120];
    size_t n, used;
};

static void add_name(struct names *names, const struct asym_app *app)
{
    char comm[4 * ASYM_COMM_LEN];
    asym_text_escape(app->comm, strnlen(app->comm, sizeof app->comm), comm, sizeof comm);
    int n = snprintf(names->text + names->used, sizeof names->text - names->used, "%s%s (%d)", names->n ? ", " : "",
                     comm, (int)app->id.tgid);
    if (n > 0 && (size_t)n < sizeof names->text - names->used)
        names->used += (size_t)n;
    else
        names->text[names->used] = '\0';
    names->n++;
}

/* Two looks: what runs between them. */
static int watch(struct asym_source *source, struct asym_snapshot *ret)
{
    const struct timespec t = {.tv_nsec = WATCH_MS * 1000000L};
    int r = source->next(source, ret);
    if (r > 0)
        nanosleep(&t, NULL);
    return r > 0 ? source->next(source, ret) : r;
}

static int add_heard(struct asym_check *check, const struct asym_lookout *lookout, const struct asym_snapshot *s)
{
    struct names by[ASYM_SPEECH_SUSPECT + 1] = {{.n = 0}};
    uint32_t unread;
    ASYM_AUTO_FREE enum asym_speech *speech = asym_hear(lookout, s, &unread);
    for (size_t a = 0; speech && a < s->n_apps; a++)
        add_name(&by[speech[a]], &s->apps[a]);
    const struct names *speak = &by[ASYM_SPEECH_SPEAKS], *suspect = &by[ASYM_SPEECH_SUSPECT];
    int r = 0;
    if (speak->n > 0)
        r = asym_check_add(check, "rtx", ASYM_FACT_GOOD, "", "%zu busy program%s what threads do: %s", speak->n,
                           speak->n == 1 ? " says" : "s say", speak->text);
    if (r >= 0 && suspect->n > 0)
        r = asym_check_add(check, "rtx", ASYM_FACT_NOTE, "start them with asymctl run",
                           "%zu OpenMP program%s threads that never pause, and may be spinning: %s", suspect->n,
                           suspect->n == 1 ? " has" : "s have", suspect->text);
    return r;
}

/* Which busy programs say what their threads do, and which might have to. */
static int add_speech(struct asym_check *check, struct asym_run *run)
{
    ASYM_CLEANUP(asym_lookout_close) struct asym_lookout lookout = {.births = NULL};
    struct asym_snapshot s;
    if (!run->root.live || asym_run_look(run, 0, &lookout, NULL) < 0)
        return 0;
    int r = watch(lookout.source, &s);
    return r > 0 ? add_heard(check, &lookout, &s) : 0;
}

/* Behind add_policy, which finds out whether it can run. */
static void add_verdict(struct asym_check *check, const struct asym_run *run)
{
    const bool captured = run->cli->topology != NULL;
    const struct asym_situation_facts facts = {
        .machine = run->machine,
        .policy = run->policy->name,
        .policy_runs = check->can_run,
        .may_steer = captured || asym_facts_may_steer(&run->root),
        .is_virtual = !captured && asym_is_virtual(&run->root),
        .assumed_slow = run->assumed_slow,
        .hidden = run->notes.hidden,
        .unordered = run->notes.unordered,
    };
    check->situation = asym_situation_name(asym_situation_of(&facts));
    asym_situation_text(&facts, check->verdict, sizeof check->verdict);
}

enum asym_exit asym_mode_check(struct asym_run *run)
{
    ASYM_CLEANUP(asym_check_done) struct asym_check check = {.lines = NULL};
    int r = add_machine(&check, run);
    if (r >= 0)
        r = asym_check_add_facts(&check, &run->root);
    if (r >= 0)
        r = asym_speeds_check(&check, run);
    if (r >= 0)
        r = add_births(&check, run);
    if (r >= 0)
        r = add_policy(&check, run);
    if (r >= 0)
        add_verdict(&check, run);
    if (r >= 0)
        r = add_speech(&check, run);
    if (r >= 0)
        r = run->cli->json ? asym_check_json(&check, stdout)
                           : asym_check_text(&check, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
    if (r >= 0 && fflush(stdout) != 0)
        r = -EIO;
    if (r < 0) {
        asym_log_say(&run->log, LOG_ERR, "cannot report: %s", strerror(-r));
        return ASYM_EXIT_FAILED;
    }
    return check.can_run ? ASYM_EXIT_DONE : ASYM_EXIT_NO_SIGNAL;
}
