/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/machine-check.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "app/crash-recovery.h"
#include "app/observer-setup.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "linux/observe/proc-owner.h"
#include "linux/topology/topology.h"
#include "report/columns.h"
#include "report/report.h"

enum asym_situation asym_assess(const struct asym_run *run, char *buf, size_t size)
{
    const bool captured = run->cli->topology != NULL;
    const struct asym_situation_facts facts = {
        .machine = run->machine,
        .policy = run->policy->name,
        .policy_runs = asym_policy_can_run(run->policy, run->capabilities.missing),
        .may_steer = captured || asym_facts_may_steer(&run->root),
        .is_virtual = !captured && asym_is_virtual(&run->root),
        .assumed_slow = run->assumed_slow,
        .hidden = run->notes.hidden,
        .unordered = run->notes.unordered,
        .unknown = run->notes.unknown,
    };
    asym_situation_text(&facts, buf, size);
    return asym_situation_of(&facts);
}

/* Finds the programs of a snapshot that report their threads by RTX (linux/rtx/rtx-overlay.h). */

#define PATIENCE ASYM_SEC
#define BETWEEN  (5 * ASYM_MSEC)

enum { TO_ASK, ASKED, DONE };

struct detector {
    const struct asym_root *root;
    struct asym_proc_reader *reader;
    const struct asym_snapshot *s;
    enum asym_rtxd_detection *detection;
    unsigned char *stages; /* of each application: TO_ASK, ASKED or DONE */
    size_t n_left;         /* applications that are not DONE */
    size_t n_failed;       /* applications that are DONE, but could not be read */
};

static void finish(struct detector *d, size_t a, bool has_failed)
{
    d->stages[a] = DONE;
    d->n_left--;
    d->n_failed += has_failed;
}

static void ask_about(struct detector *d, size_t a)
{
    const struct asym_app *app = &d->s->apps[a];
    struct asym_read_request request = {.pid = app->id.tgid,
                                        .what = ASYM_READ_MAPS,
                                        .start = app->id.start,
                                        .tag = (uint32_t)a,
                                        .maps_most = ASYM_READ_MAPS_FIRST};
    const int unknown = asym_proc_owner(d->root, request.pid, &request.uid);
    if (unknown < 0) {
        /* ESRCH: it ended after the kernel had opened the file. */
        finish(d, a, unknown != -ENOENT && unknown != -ESRCH);
        return;
    }
    const int r = d->reader->ask(d->reader, &request);
    if (r == 0)
        d->stages[a] = ASKED;
    else if (r != -EAGAIN)
        finish(d, a, true);
}

static void take_answers(struct detector *d)
{
    struct asym_read_answer answer;
    while (d->reader->take(d->reader, &answer) > 0) {
        const size_t a = answer.tag;
        /* The reader also returns answers to requests of the sample. */
        if (a >= d->s->n_apps || answer.what != ASYM_READ_MAPS || d->s->apps[a].id.tgid != answer.pid ||
            d->stages[a] != ASKED)
            continue;
        if (answer.error == -EAGAIN) {
            d->stages[a] = TO_ASK;
            continue;
        }
        finish(d, a, answer.error < 0 && answer.error != -ESRCH);
        d->detection[a] = asym_rtxd_detect(answer.maps, d->s, &d->s->apps[a]);
    }
}

static void detect_all(struct detector *d)
{
    const asym_usec end = asym_clock_now() + PATIENCE;
    for (size_t a = 0; a < d->s->n_apps; a++) {
        d->detection[a] = asym_rtxd_detect(0, d->s, &d->s->apps[a]);
        d->stages[a] = asym_rtxd_detection_needs_maps(&d->s->apps[a]) ? TO_ASK : DONE;
        d->n_left += d->stages[a] == TO_ASK;
    }
    while (d->n_left > 0 && asym_clock_now() < end) {
        /* A request that the reader puts off is sent again later. */
        for (size_t a = 0; a < d->s->n_apps; a++)
            if (d->stages[a] == TO_ASK)
                ask_about(d, a);
        take_answers(d);
        if (d->n_left > 0)
            asym_clock_sleep(BETWEEN);
    }
}

enum asym_rtxd_detection *asym_machine_check_rtx(const struct asym_root *root, struct asym_proc_reader *reader,
                                                 const struct asym_snapshot *s, uint32_t *ret_unread)
{
    struct detector d = {
        .root = root, .reader = reader, .s = s, .detection = calloc(s->n_apps + 1, sizeof *d.detection)};
    ASYM_AUTO_FREE unsigned char *stages = calloc(s->n_apps + 1, 1);
    if (!d.detection || !stages) {
        free(d.detection);
        return NULL;
    }
    d.stages = stages;
    if (d.reader)
        detect_all(&d);
    *ret_unread = (uint32_t)(d.n_left + d.n_failed);
    return d.detection;
}

/* Adds the source of the speeds, and the sources before it whose figures asymd did not use. Other sources change nothing. */
static void add_sources(struct asym_check *check, const struct asym_topology_notes *notes)
{
    bool used = false;
    for (size_t i = 0; i < notes->n && !used; i++) {
        const struct asym_speed_note *note = &notes->note[i];
        used = note->used;
        if (note->there)
            asym_check_add(check, used ? "speed source" : "not used", used ? ASYM_FACT_GOOD : ASYM_FACT_NOTE, "", "%s",
                           note->text);
    }
}

static void add_isolated(struct asym_check *check, const struct asym_machine *m)
{
    char list[96];
    if (asym_mask_empty(&m->isolated))
        return;
    asym_columns_cpus(&m->isolated, 64, list, sizeof list);
    asym_check_add(check, "isolated", ASYM_FACT_NOTE, "",
                   "%s (isolcpus, nohz_full): not counted for ordinary threads; asymd steers a program to them if "
                   "its mask includes them",
                   list);
}

/* Returns "s" for a list of several CPUs, "" for one. */
static const char *plural(const char *list)
{
    return strpbrk(list, ",-") ? "s" : "";
}

static void add_unplaced(struct asym_check *check, const struct asym_mask *cpus)
{
    char list[96];
    if (asym_mask_empty(cpus))
        return;
    asym_columns_cpus(cpus, 64, list, sizeof list);
    asym_check_add(check, "topology", ASYM_FACT_NOTE, "",
                   "CPU%s %s: online, but sysfs has no topology: each counts as a core of its own", plural(list), list);
}

static void add_machine(struct asym_check *check, const struct asym_run *run)
{
    const struct asym_machine *m = run->machine;
    char l3[256];
    for (unsigned t = 0; t < m->n_types; t++) {
        const struct asym_core_type *type = &m->types[t];
        char cpus[96];
        asym_columns_cpus(&type->cpus, 64, cpus, sizeof cpus);
        asym_check_add(check, "core type", ASYM_FACT_GOOD, "", "%s: CPU%s %s, speed %.2f, %s%s", type->name,
                       plural(cpus), cpus, type->speed,
                       type->origin != ASYM_ORIGIN_NONE ? "from "
                       : run->assumed_slow              ? "not slowed"
                                                        : "no source tells its CPUs apart",
                       type->origin == ASYM_ORIGIN_NONE ? "" : asym_origin_name(type->origin));
    }
    add_isolated(check, m);
    add_unplaced(check, &run->notes.unplaced);
    const struct asym_alike *alike = asym_describe_alike(m, &run->notes);
    if (alike || !asym_machine_is_asymmetric(m))
        asym_check_add(check, "asymmetry", ASYM_FACT_NOTE, alike ? alike->remedy : "", "%s",
                       alike ? alike->why : ASYM_NO_SLOW_CPU);
    if (run->assumed_slow)
        asym_check_add(check, "asymmetry", ASYM_FACT_NOTE, "",
                       "--slow or the configuration calls some CPUs slow; asymd has not slowed them");
    add_sources(check, &run->notes);
    for (unsigned t = 0; t < m->n_types; t++) {
        char favoured[96];
        if (asym_describe_favoured(m, t, favoured, sizeof favoured))
            asym_check_add(check, "favoured", ASYM_FACT_GOOD, "", "%s: CPU%s %s, by %s", m->types[t].name,
                           plural(favoured), favoured, run->notes.favour ? run->notes.favour : "configuration");
    }
    if (asym_describe_l3(m, l3, sizeof l3))
        asym_check_add(check, "cache", ASYM_FACT_GOOD, "", "%.190s (this makes no other core type)", l3);
}

static void add_process_events(struct asym_check *check, const struct asym_run *run)
{
    struct asym_process_events *process_events = NULL;
    struct asym_error err = {""};
    if (!run->root.live)
        return;
    int r = asym_process_events_open(&process_events, &err);
    asym_process_events_close(process_events);
    if (r < 0)
        asym_check_add(check, "process events", ASYM_FACT_LACK,
                       r == -EPROTONOSUPPORT ? "a kernel with CONFIG_PROC_EVENTS"
                                             : "run as root or with CAP_NET_ADMIN, outside of containers",
                       "%.190s", *err.text ? err.text : strerror(-r));
    else
        asym_check_add(check, "process events", ASYM_FACT_GOOD, "",
                       "the kernel reports new and ended processes (proc connector)");
}

/* The configuration may name another policy than auto would choose. */
static void add_recommended(struct asym_check *check, const struct asym_run *run)
{
    const struct asym_policy_choice choice = asym_run_choose(run, "auto");
    char remedy[200];
    if (choice.policy == run->policy)
        return;
    snprintf(remedy, sizeof remedy, "sudo asymctl policy %s --permanent, if asymd runs; else policy = %s below [asymd]",
             choice.policy->name, choice.policy->name);
    asym_check_add(check, "recommended", ASYM_FACT_NOTE, remedy, "%s, which auto chooses here: %s", choice.policy->name,
                   choice.why);
}

static void add_policy(struct asym_check *check, const struct asym_run *run)
{
    const struct asym_policy *policy = run->policy;
    const char *const *missing = run->capabilities.missing;
    char others[180], remedy[200];
    asym_capabilities_policies(missing, others, sizeof others);
    snprintf(remedy, sizeof remedy, "choose another: %s", others);
    check->can_run = asym_policy_can_run(policy, missing);
    if (policy->refuses) {
        asym_check_add(check, "policy", ASYM_FACT_LACK, remedy, "%s cannot run on a live machine: %s", policy->name,
                       policy->refuses);
        return;
    }
    enum asym_signal k = asym_policy_lacks(policy, missing, 0);
    for (; k < ASYM_N_SIGNALS; k = asym_policy_lacks(policy, missing, k + 1))
        asym_check_add(check, "policy", ASYM_FACT_LACK, remedy, "%s needs the signal %s: %s", policy->name,
                       asym_signal_name(k), missing[k]);
    if (check->can_run)
        asym_check_add(check, "policy", ASYM_FACT_GOOD, "", "%s: this machine gives every signal that it needs%s%s",
                       policy->name, run->policy_why ? "; chosen by auto: " : "",
                       run->policy_why ? run->policy_why : "");
}

/* The time between the two samples that show which threads of OpenMP programs never pause. */
#define WATCH (60 * ASYM_MSEC)

struct names {
    char buf[120];
    struct asym_text text;
    size_t n;
};

static void add_name(struct names *names, const struct asym_app *app)
{
    char comm[4 * ASYM_COMM_LEN];
    asym_text_escape(app->comm, strnlen(app->comm, sizeof app->comm), comm, sizeof comm);
    if (names->n++ == 0)
        names->text = asym_text_in(names->buf, sizeof names->buf);
    asym_text_add(&names->text, "%s%s (%d)", names->n > 1 ? ", " : "", comm, (int)app->id.tgid);
}

/* Takes two samples, WATCH apart; the second shows what ran in between. */
static int watch(struct asym_source *source, struct asym_snapshot *ret)
{
    int r = source->next(source, ret);
    if (r > 0)
        asym_clock_sleep(WATCH);
    return r > 0 ? source->next(source, ret) : r;
}

static void add_detected(struct asym_check *check, const struct asym_root *root, struct asym_proc_reader *reader,
                         const struct asym_snapshot *s)
{
    struct names by[ASYM_RTXD_DETECTION_SUSPECT + 1] = {{.n = 0}};
    uint32_t unread;
    ASYM_AUTO_FREE enum asym_rtxd_detection *detection = asym_machine_check_rtx(root, reader, s, &unread);
    for (size_t a = 0; detection && a < s->n_apps; a++)
        add_name(&by[detection[a]], &s->apps[a]);
    const struct names *reporting = &by[ASYM_RTXD_DETECTION_REPORTS], *suspect = &by[ASYM_RTXD_DETECTION_SUSPECT];
    if (reporting->n > 0)
        asym_check_add(check, "rtx", ASYM_FACT_GOOD, "", "%zu busy program%s: %s", reporting->n,
                       reporting->n == 1 ? " reports what its threads do" : "s report what their threads do",
                       reporting->buf);
    if (suspect->n > 0)
        asym_check_add(check, "rtx", ASYM_FACT_NOTE, "start them with asymctl run, and they report when threads spin",
                       "%zu OpenMP program%s threads that never pause and may be spinning: %s", suspect->n,
                       suspect->n == 1 ? " has" : "s have", suspect->buf);
}

static void add_observer(struct asym_check *check, const struct asym_run *run, const struct asym_observer *observer)
{
    if (observer->observers.links[ASYM_OBSERVER_BPF])
        asym_check_add(check, "observer", ASYM_FACT_GOOD, "",
                       "bpf: the kernel counts what threads do, and tells when a program is down to one");
    else if (run->settings->daemon.observer == ASYM_OBSERVE_PROCFS)
        asym_check_add(check, "observer", ASYM_FACT_NOTE, "", "procfs, as asymd.observer says");
    else
        asym_check_add(check, "observer", ASYM_FACT_NOTE, "", "procfs, samples of /proc; not %s", observer->without);
}

/* Reports by what asymd observes, which busy programs use RTX, and which OpenMP programs may be spinning without it. */
static int add_observed(struct asym_check *check, struct asym_run *run)
{
    ASYM_CLEANUP(asym_observer_close) struct asym_observer observer = {.process_events = NULL};
    struct asym_error err = {""};
    struct asym_snapshot s;
    if (!run->root.live)
        return 0;
    if (asym_observer_open(run, &observer, &err) < 0) {
        asym_check_add(check, "observer", ASYM_FACT_LACK, "set asymd.observer to auto", "%s", err.text);
        return 0;
    }
    add_observer(check, run, &observer);
    const int r = watch(observer.source, &s);
    if (r > 0)
        add_detected(check, &run->root, observer.reader, &s);
    return r > 0 ? 0 : r;
}

/* Masks of an asymd that died look like masks that the threads chose. */
static void add_left_over(struct asym_check *check, const struct asym_run *run)
{
    char text[160];
    if (!run->root.live || !asym_crash_recovery_left(run->settings->daemon.state_dir, false, text, sizeof text))
        return;
    asym_check_add(check, "left over", ASYM_FACT_LACK, ASYM_RESTORE_COMMAND, "%s", text);
}

static int add_rivals(struct asym_check *check, const struct asym_run *run)
{
    struct asym_rivals *rivals = asym_rivals_new();
    if (!rivals)
        return -ENOMEM;
    while (!asym_rivals_look(rivals, &run->root, UINT_MAX))
        ;
    asym_rivals_each(rivals, true, asym_check_add_fact, check);
    asym_rivals_free(rivals);
    return 0;
}

/* Limits of other programs. asymd does not read them for its plans, so the user should know of them. */
static void add_limits(struct asym_check *check, const struct asym_run *run)
{
    const struct asym_machine *m = run->machine;
    const struct asym_mask cpus = asym_mask_minus(&m->usable, &run->slow);
    double own[ASYM_MAX_CPUS], limit[ASYM_MAX_CPUS];
    struct asym_mask held = {0};
    double most[ASYM_MAX_TYPES] = {0};
    char list[128];
    if (run->cli->topology || *run->settings->machine.speeds)
        return;
    asym_topology_figures(&run->root, "cpufreq/cpuinfo_max_freq", &cpus, own);
    asym_topology_figures(&run->root, "cpufreq/scaling_max_freq", &cpus, limit);
    ASYM_MASK_FOREACH (c, &cpus)
        most[m->cpus[c].type] = ASYM_MAX(most[m->cpus[c].type], limit[c]);
    ASYM_MASK_FOREACH (c, &cpus)
        if (limit[c] > 0 && limit[c] < ASYM_MIN(most[m->cpus[c].type], own[c]) * (1 - ASYM_TYPE_TOLERANCE))
            asym_mask_set(&held, (unsigned)c);
    if (asym_mask_empty(&held))
        return;
    asym_mask_format_list(&held, list, sizeof list);
    asym_check_add(check, "limits", ASYM_FACT_NOTE, "if the limit is to stay, give all speeds in [machine] speeds",
                   "scaling_max_freq holds CPU%s %s below others of their type: asymd counts them with their full "
                   "speed",
                   plural(list), list);
}

int asym_run_check(struct asym_run *run, struct asym_check *check)
{
    add_left_over(check, run);
    add_machine(check, run);
    asym_facts_each(&run->root, asym_check_add_fact, check);
    add_limits(check, run);
    asym_speeds_check(check, run);
    int r = add_rivals(check, run);
    add_process_events(check, run);
    add_policy(check, run);
    add_recommended(check, run);
    check->situation = asym_situation_name(asym_assess(run, check->verdict, sizeof check->verdict));
    if (r >= 0)
        r = add_observed(check, run);
    return r < 0 ? r : check->error;
}
