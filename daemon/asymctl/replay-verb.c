/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl replay: opens a record, runs the engine over it under each policy, and prints the table or the plans. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/command-line.h"
#include "base/clock.h"
#include "base/macro.h"
#include "daemon/asymctl/long-verb.h"
#include "daemon/asymctl/record-files.h"
#include "daemon/asymctl/verb.h"
#include "experiment/replay.h"

/* The time between two updates of the bar. */
#define UPDATE_PERIOD (100 * ASYM_MSEC)

struct arguments {
    const char *policies;
    bool json, plans;
};

static const struct asym_arg args[] = {
    ASYM_ARG("--policy", STRING, "NAME,...", policies,
             .help = "policies to plan with; by default the one under which the record was made"),
    ASYM_ARG("--json", BOOL, NULL, json, .help = "print JSON"),
    ASYM_ARG("--plans", BOOL, NULL, plans,
             .help = "print the plans of the first policy given, and no table; by default the plans that were made"),
    {.option = {.key = NULL}},
};

struct replay {
    const char *path;
    FILE *in;
    struct asym_record_reader *reader;
    struct asym_settings *settings;
    const struct asym_policy *policies[ASYM_REPLAY_MAX_POLICIES];
    struct asym_replay_tally tallies[ASYM_REPLAY_MAX_POLICIES];
    size_t n;
    /* The bar counts passes over the record: the comparison, and one for each policy. */
    struct asym_progress_line progress;
    size_t n_passes;       /* complete ones */
    double size;           /* bytes of the file; 0: not known */
    struct asym_error cut; /* where the record was cut off, as the first pass has found it; "": it is complete */
    asym_usec shown;
};

static void replay_done(struct replay *p)
{
    asym_settings_free(p->settings);
    asym_record_reader_free(p->reader);
    asym_fclose_p(&p->in);
}

/* Returns the index of the policy; -errno. */
static int add_policy(void *ctx, const char *name, struct asym_error *err)
{
    struct replay *p = ctx;
    const struct asym_policy *policy = asym_policy_find(name);
    if (!policy)
        return asym_policy_unknown(name, "--policy", err);
    for (size_t i = 0; i < p->n; i++)
        if (p->policies[i] == policy)
            return (int)i;
    if (p->n == ASYM_REPLAY_MAX_POLICIES)
        return asym_fail(err, -EINVAL, "more than %d policies", ASYM_REPLAY_MAX_POLICIES);
    p->policies[p->n] = policy;
    return (int)p->n++;
}

/* The plans of the record's own policy are those that were made; the outcomes are the recorded ones. */
static int print_plans(struct replay *p, const struct arguments *a, struct asym_error *err)
{
    const struct asym_replay_watch watch = {.plan = asym_replay_print_plan, .ctx = stdout};
    struct asym_replay_check check;
    int r;
    if (!a->policies || strcmp(p->policies[0]->name, asym_record_reader_head(p->reader)->policy) == 0)
        r = asym_replay_check(p->reader, p->settings, &watch, &asym_interrupted, &check, err);
    else
        r = asym_replay_run(p->reader, p->settings, p->policies[0], &watch, &asym_interrupted, &p->tallies[0], err);
    return asym_record_input_result(r);
}

static int show_progress(void *ctx, size_t number, const struct asym_snapshot *s, const struct asym_plan *plan,
                         const struct asym_action *actions, size_t n_actions)
{
    struct replay *p = ctx;
    const asym_usec now = asym_clock_now();
    if (now - p->shown < UPDATE_PERIOD)
        return 0;
    const double part = p->size > 0 ? (double)ftello(p->in) / p->size : 0;
    asym_progress_line_show(&p->progress, (double)p->n_passes + ASYM_MIN(part, 1.0), (double)p->n + 1, "passes");
    p->shown = now;
    return 0;
}

/* The first row is none, which changes nothing that was seen. */
static int run_passes(struct replay *p, struct asym_replay_check *check, struct asym_error *err)
{
    const struct asym_replay_watch watch = {.plan = show_progress, .ctx = p};
    int r = asym_replay_check(p->reader, p->settings, &watch, &asym_interrupted, check, err);
    if (r >= 0 && asym_record_reader_cut(p->reader))
        asym_fail(&p->cut, 0, "%s", asym_record_reader_cut(p->reader));
    for (size_t i = 0; r >= 0 && i < p->n; i++) {
        p->n_passes++;
        r = asym_replay_run(p->reader, p->settings, p->policies[i], &watch, &asym_interrupted, &p->tallies[i], err);
    }
    p->n_passes += r >= 0;
    return r;
}

/* Returns how many policies are done: fewer than all after an interruption; -errno with err. */
static int replay_all(struct replay *p, struct asym_replay_check *check, struct asym_error *err)
{
    struct stat st;
    p->size = fstat(fileno(p->in), &st) == 0 ? (double)st.st_size : 0;
    p->progress = asym_progress_line_begin();
    const int r = run_passes(p, check, err);
    asym_progress_line_end(&p->progress);
    if (r < 0 && r != -EINTR)
        return asym_record_input_result(r);
    return p->n_passes > 0 ? (int)p->n_passes - 1 : 0;
}

static int print_report(const struct replay *p, const struct arguments *a, const struct asym_replay_check *check,
                        size_t n, struct asym_error *err)
{
    const struct asym_replay_report report = {.name = p->path,
                                              .head = asym_record_reader_head(p->reader),
                                              .check = check,
                                              .tallies = p->tallies,
                                              .n_tallies = n,
                                              .cut = *p->cut.text ? p->cut.text : NULL};
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    const int r = a->json ? asym_replay_json(&report, stdout) : asym_replay_text(&report, &terminal);
    return r >= 0 || ferror(stdout) ? 0 : asym_fail(err, r, "%s", strerror(-r));
}

/* An interruption leaves the policies that are done. */
static int print_table(struct replay *p, const struct arguments *a, struct asym_error *err)
{
    struct asym_replay_check check;
    const int n = replay_all(p, &check, err);
    const int r = n > 0 ? print_report(p, a, &check, (size_t)n, err) : n;
    if (r < 0 || (size_t)n == p->n)
        return r;
    return asym_fail(err, -EINTR, "interrupted: %d of %zu policies are done", n, p->n);
}

/* Reads the head of the record, and the names of the policies. */
static int begin(struct replay *p, const struct arguments *a, struct asym_error *err)
{
    int r = asym_record_input_open(p->path, &p->in, &p->reader, err);
    if (r >= 0)
        r = asym_replay_settings(asym_record_reader_head(p->reader), &p->settings, err);
    if (r >= 0 && !a->plans)
        r = add_policy(p, "none", err);
    if (r < 0)
        return r;
    return asym_verb_each_word(a->policies ? a->policies : asym_record_reader_head(p->reader)->policy, add_policy, p,
                               err);
}

static int run_replay(const void *parsed, char **operands)
{
    const struct arguments *a = parsed;
    ASYM_CLEANUP(replay_done) struct replay p = {.path = operands[0]};
    struct asym_error err = {""};
    if (a->json && a->plans)
        return asym_verb_fail(ASYM_EXIT_USAGE, "replay: --plans prints lines to compare, and has no --json");
    asym_interruption_catch();
    int r = begin(&p, a, &err);
    if (r >= 0)
        r = a->plans ? print_plans(&p, a, &err) : print_table(&p, a, &err);
    /* The caller reports a standard output that cannot be written. */
    if (r < 0 && !ferror(stdout))
        return asym_verb_fail(asym_exit_status(r), "%s", err.text);
    asym_record_input_say_cut(p.reader);
    return ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_replay = {
    .name = "replay",
    .args = args,
    .operands = ASYM_OPERANDS_MUST,
    .usage = "FILE",
    .needs = "a record",
    .summary = "show what policies would have planned for a record, side by side",
    .help = "Plans again for each snapshot of a record that asymctl record made, under each policy, as if each\n"
            "planned change had been made. The first row, seen, is what ran under the asymd that recorded. Machine\n"
            "and settings are those of the record.\n"
            "\n"
            "A replay shows what a policy would have planned for what was seen. It does not show how the programs\n"
            "would have run: on other CPUs they would have done other work.\n"
            "\n"
            "asymctl also plans again under the policy of the record, with the outcomes that were recorded, and\n"
            "says whether the plans are those that were made, byte for byte.\n",
    .run = run_replay,
};
