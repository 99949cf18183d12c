/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl trial: what asymd gains on this machine, by blocks of steering and of pause. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/sort.h"
#include "base/text.h"
#include "daemon/asymctl/observation.h"
#include "daemon/asymctl/service-verb.h"
#include "experiment/trial-row.h"
#include "linux/perf/sampler.h"
#include "report/json.h"

/* The beginning of each block: asymd acts at its next sample, then threads move, and caches fill. */
#define DROP (2 * ASYM_SEC)
/* A command that uses all the time that it is told of needs as much to start and to print. */
#define STARTS (ASYM_SEC / 2)
/* A pause ends by itself that long after its block: asymctl may be killed. */
#define GRACE 30
/* Without names: a program that used less than this of a CPU in the mean is not active. */
#define ACTIVE 0.05

/* A command of the user that measures one block: its last number is the block's rate. */

/* The environment variable with the seconds that the command has: "8". */
#define ASYM_TRIAL_SECONDS "ASYM_TRIAL_SECONDS"

#define MOST_READS         16

struct metric {
    pid_t pid;     /* of the shell, which leads a process group; 0: it does not run */
    int out;       /* its standard output, read without waiting */
    char last[64]; /* the end of what it has printed, without NUL */
    size_t n;
};

static int spawn_shell(struct metric *m, const char *command, int out)
{
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r == 0) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        /* It is in the background: a read of the terminal would stop it. */
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
            r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (r == 0)
            r = posix_spawn(&m->pid, "/bin/sh", &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* Starts the command with sh -c. Returns 0; -errno. */
static int start_metric(struct metric *m, const char *command, asym_usec time)
{
    char seconds[32];
    int ends[2];
    *m = (struct metric){.out = -1};
    snprintf(seconds, sizeof seconds, "%.3g", (double)time / ASYM_SEC);
    if (setenv(ASYM_TRIAL_SECONDS, seconds, 1) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const int r = spawn_shell(m, command, ends[1]);
    close(ends[1]);
    m->out = ends[0];
    if (r < 0) {
        close(ends[0]);
        *m = (struct metric){.out = -1};
    }
    return r;
}

/* Keeps the last bytes. */
static void keep_last(struct metric *m, const char *bytes, size_t n)
{
    const size_t of_new = ASYM_MIN(n, sizeof m->last), of_old = ASYM_MIN(m->n, sizeof m->last - of_new);
    memmove(m->last, m->last + m->n - of_old, of_old);
    memcpy(m->last + of_old, bytes + n - of_new, of_new);
    m->n = of_old + of_new;
}

/* Reads what it has printed. Called often: a full pipe makes the command wait. */
static void read_metric(struct metric *m)
{
    char buf[4096];
    ssize_t n = 1;
    /* A command that prints without end must not keep the trial here. */
    for (int i = 0; m->pid > 0 && n > 0 && i < MOST_READS; i++) {
        n = read(m->out, buf, sizeof buf);
        if (n > 0)
            keep_last(m, buf, (size_t)n);
    }
}

static double last_number(const struct metric *m)
{
    char text[sizeof m->last + 1], *end;
    double last = (double)NAN;
    memcpy(text, m->last, m->n);
    text[m->n] = '\0';
    for (char *word = strtok(text, " \t\r\n,;:="); word; word = strtok(NULL, " \t\r\n,;:=")) {
        const double number = strtod(word, &end);
        if (end != word && *end == '\0' && isfinite(number))
            last = number;
    }
    return last;
}

/* Ends the command and all of its process group. Returns the last number that it printed; NAN: none. */
static double end_metric(struct metric *m)
{
    if (m->pid <= 0)
        return (double)NAN;
    read_metric(m);
    const double number = last_number(m);
    kill(-m->pid, SIGKILL);
    while (waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(m->out);
    *m = (struct metric){.out = -1};
    return number;
}

struct arguments {
    asym_usec time, block;
    const char *metric, *config;
    bool json;
};

static const struct asym_arg args[] = {
    ASYM_ARG_OF(struct arguments, "--time", DURATION, "TIME", time, .def = "6min", .min = 12e6, .max = 7200e6,
                .help = "how long; 6 min by default"),
    ASYM_ARG_OF(struct arguments, "--block", DURATION, "TIME", block, .def = "10s", .min = 3e6, .max = 600e6,
                .help = "length of a block; 10 s by default, of which the first 2 s do not count"),
    ASYM_ARG_OF(struct arguments, "--metric", STRING, "COMMAND", metric,
                .help = "measure each block by the last number that this command prints"),
    ASYM_ARG_OF(struct arguments, "--config", STRING, "FILE", config,
                .help = "a configuration, instead of that of the running asymd"),
    ASYM_ARG_OF(struct arguments, "--json", BOOL, NULL, json, .help = "print the report as JSON"),
    {.option = {.key = NULL}},
};

enum { MACHINE, ROWS_MAX = 65 };

struct trial {
    const struct arguments *args;
    char **names; /* end in NULL; none: all active programs */
    struct asym_observation observation;
    struct asym_client *client;
    struct asym_crossover plan;
    struct asym_crossover_moment now;
    asym_usec began, counted, in_block; /* counted: of all blocks; in_block: of the one under way */
    bool begun, changed, yields;        /* changed, yields: another user has resumed, or has paused asymd */
    struct metric metric;
    struct asym_trial_row *rows[ROWS_MAX]; /* MACHINE is the machine's */
    size_t n_rows;
    struct asym_crossover_series *numbers; /* of the command; NULL: there is none */
    struct asym_error err;
};

static void trial_done(struct trial *t)
{
    end_metric(&t->metric);
    for (size_t i = 0; i < t->n_rows; i++)
        free(t->rows[i]);
    free(t->numbers);
    asym_client_close(t->client);
    asym_observation_done(&t->observation);
}

/* NULL: no memory, or there are as many rows as the table has. */
static struct asym_trial_row *find_row(struct trial *t, const char *name, bool add)
{
    for (size_t i = MACHINE + 1; i < t->n_rows; i++)
        if (strcmp(t->rows[i]->name, name) == 0)
            return t->rows[i];
    struct asym_trial_row *row = add && t->n_rows < ROWS_MAX ? calloc(1, sizeof *row) : NULL;
    if (!row)
        return NULL;
    snprintf(row->name, sizeof row->name, "%s", name);
    return t->rows[t->n_rows++] = row;
}

/* Returns the share of the interval that its threads ran, in all. */
static double running_of(const struct asym_snapshot *s, const struct asym_app *app)
{
    double running = 0;
    for (uint32_t i = 0; i < app->n_tasks; i++)
        running += s->tasks[app->first_task + i].running;
    return running;
}

/* The samples stand in the order of the threads. */
static const struct asym_sample *sample_of(const struct asym_snapshot *s, uint32_t task)
{
    const size_t i = ASYM_LOWER_BOUND(s->samples, s->n_samples, task, (int32_t)task);
    return i < s->n_samples && s->samples[i].task == task ? &s->samples[i] : NULL;
}

/* A name is that of an application, or that of a thread. An application that is not active yet has no row. */
static void count_app(struct trial *t, const struct asym_snapshot *s, const struct asym_app *app)
{
    const bool by_name = t->names[0] != NULL;
    struct asym_trial_row *of_app = find_row(t, app->comm, !by_name && running_of(s, app) >= ACTIVE);
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
        const struct asym_task *task = &s->tasks[i];
        const double busy = task->running * (double)s->interval / ASYM_SEC;
        const double speed = task->cpu >= 0 ? s->machine->cpus[task->cpu].speed : 0;
        const struct asym_trial_sums did = asym_trial_thread(busy, speed, sample_of(s, i));
        struct asym_trial_row *row = by_name && !of_app ? find_row(t, task->comm, false) : of_app;
        if (row)
            asym_trial_row_add(row, &did);
        asym_trial_row_add(t->rows[MACHINE], &did);
    }
}

/* Pauses asymd, or lets it steer again, for the block that begins. */
static int steer_or_pause(struct trial *t)
{
    const uint64_t seconds = t->plan.block / ASYM_SEC + GRACE;
    return t->now.steered ? asym_client_change(t->client, &t->err, "Resume", NULL)
                          : asym_client_change(t->client, &t->err, "Pause", "t", seconds);
}

/* Returns 1: asymd is paused; 0: it is not; -errno. */
static int is_paused(struct trial *t)
{
    ASYM_AUTO_JSON json_t *state = NULL;
    const int r = asym_client_get_report(t->client, "status", 0, &state, &t->err);
    return r < 0 ? r : asym_json_get_flag(state, "paused");
}

/* Is asymd in the state that the block needs? */
static int check_state(struct trial *t)
{
    const int r = is_paused(t);
    t->changed = r == 0 && !t->now.steered;
    t->yields = r > 0 && t->now.steered;
    return t->yields
               ? asym_fail(&t->err, -EBUSY, "another user has paused asymd: the trial ends, and asymd stays paused")
               : ASYM_MIN(r, 0);
}

static int end_block(struct trial *t)
{
    char text[4 * ASYM_COMM_LEN];
    const int r = check_state(t);
    const double number = end_metric(&t->metric);
    const bool valid = r >= 0 && !t->changed;
    if (t->numbers)
        asym_crossover_add(t->numbers, &t->now, valid && t->in_block > 0 ? number : (double)NAN);
    for (size_t i = 0; i < t->n_rows; i++)
        asym_trial_row_end(t->rows[i], &t->now, valid ? (double)t->in_block / ASYM_SEC : 0);
    /* A name may be misspelt, or of a program that the user starts later. */
    for (size_t i = MACHINE + 1; t->now.block == 0 && t->names[0] && i < t->n_rows; i++)
        if (t->rows[i]->all.busy <= 0)
            fprintf(stderr, "asymctl: trial: no program or thread that has run so far has the name %s\n",
                    asym_text_show(t->rows[i]->name, text, sizeof text));
    t->in_block = 0;
    t->changed = false;
    return r;
}

static int begin_metric(struct trial *t)
{
    if (!t->args->metric || t->metric.pid > 0)
        return 0;
    const int r = start_metric(&t->metric, t->args->metric, t->plan.block - DROP - STARTS);
    return r < 0 ? asym_fail(&t->err, r, "--metric: cannot run sh: %s", strerror(-r)) : 0;
}

static void count(struct trial *t, const struct asym_snapshot *s)
{
    for (size_t i = 0; i < s->n_apps; i++)
        count_app(t, s, &s->apps[i]);
    t->in_block += s->interval;
    t->counted += s->interval;
    read_metric(&t->metric);
}

static int on_cycle(void *ctx, const struct asym_cycle *cycle)
{
    struct trial *t = ctx;
    const struct asym_snapshot *s = &cycle->snapshot;
    if (!t->begun)
        t->began = s->now;
    const struct asym_crossover_moment now = asym_crossover_at(&t->plan, s->now - t->began);
    /* The interval before this sample is the time that counts: it began after the dropped time of its block. */
    const struct asym_crossover_moment before = asym_crossover_at(
        &t->plan, s->now - t->began - ASYM_MIN(s->interval, s->now - t->began));
    int r = 0;
    if (t->begun && before.counts && before.block == t->now.block)
        count(t, s);
    if (t->begun && now.block != t->now.block)
        r = end_block(t);
    if (r >= 0 && (!t->begun || now.block != t->now.block)) {
        t->now = now;
        r = now.block < 2 * t->plan.pairs ? steer_or_pause(t) : 0;
    }
    t->begun = true;
    return r >= 0 && now.counts ? begin_metric(t) : r;
}

/* Rows to be told: those that the user named, or the active ones. A program that came late or went early is not compared. */
static bool is_told(const struct trial *t, const struct asym_trial_row *row)
{
    const struct asym_trial_row *machine = t->rows[MACHINE];
    const double seconds = (double)t->counted / ASYM_SEC;
    const bool active = seconds > 0 && row->all.busy >= ACTIVE * seconds;
    return row == machine || t->names[0] || (!t->numbers && active && 2 * row->by_work.n >= machine->by_work.n);
}

struct told {
    const char *name, *measure;
    struct asym_crossover_result result;
};

/* The programs, the command's number, and as the last one the machine. ret: ROWS_MAX + 1. Returns their number. */
static size_t tell(const struct trial *t, struct told *ret)
{
    size_t n = 0;
    for (size_t i = MACHINE + 1; i <= t->n_rows; i++) {
        const struct asym_trial_row *row = t->rows[i < t->n_rows ? i : MACHINE];
        if (row == t->rows[MACHINE] && t->numbers)
            ret[n++] = (struct told){"the command's number", "number", asym_crossover_result(t->numbers)};
        if (is_told(t, row))
            ret[n++] = (struct told){row->name,
                                     asym_trial_row_measure(row) == ASYM_TRIAL_WORK ? "work" : "instructions",
                                     asym_trial_row_result(row)};
    }
    return n;
}

/* One sentence. What the interval does not show is not said. */
static void print_sentence(const struct told *told)
{
    const struct asym_crossover_result *r = &told->result;
    const int verdict = asym_crossover_verdict(r);
    char buf[512], escaped[256];
    struct asym_text text = asym_text_in(buf, sizeof buf);
    asym_text_add(&text, "%s ", asym_text_show(told->name, escaped, sizeof escaped));
    if (r->pairs < 2) {
        printf("%swas measured in %zu pair%s of blocks: too few to say anything\n", buf, r->pairs,
               r->pairs == 1 ? "" : "s");
        return;
    }
    if (verdict != 0)
        asym_text_add(&text, "%s %.1f %% with asymd", verdict > 0 ? "gains" : "loses", fabs(100 * r->gain));
    else
        asym_text_add(&text, "shows no difference with asymd");
    asym_text_add(&text, " (%s: 95 %% interval %+.1f to %+.1f %%, %zu pairs", told->measure, 100 * r->low,
                  100 * r->high, r->pairs);
    if (r->for_one_percent > (double)r->pairs)
        asym_text_add(&text, "; +/- 1 %% would take about %.0f", r->for_one_percent);
    printf("%s)\n", buf);
}

static void print_text(const struct trial *t)
{
    struct told told[ROWS_MAX + 1];
    const size_t n = tell(t, told);
    for (size_t i = 0; i < n; i++)
        print_sentence(&told[i]);
    printf("\nWork: time on CPUs times their speed. It is computed, where no counters tell instructions.\n");
}

static json_t *told_json(const struct told *told)
{
    static const char *const verdicts[] = {"loses", "none", "gains"};
    const struct asym_crossover_result *r = &told->result;
    return json_pack("{s:o, s:s, s:I, s:o, s:o, s:o, s:o, s:s}", "name", asym_json_text(told->name), "measure",
                     told->measure, "pairs", (json_int_t)r->pairs, "gain_percent", asym_json_number(100 * r->gain, 2),
                     "low_percent", asym_json_number(100 * r->low, 2), "high_percent",
                     asym_json_number(100 * r->high, 2), "pairs_for_one_percent",
                     asym_json_number(r->for_one_percent, 0), "verdict", verdicts[asym_crossover_verdict(r) + 1]);
}

static int print_json(const struct trial *t)
{
    struct told told[ROWS_MAX + 1];
    const size_t n = tell(t, told);
    json_t *programs = json_array();
    for (size_t i = 0; i + 1 < n; i++)
        asym_json_append(&programs, told_json(&told[i]));
    return asym_json_print(json_pack("{s:s, s:I, s:I, s:o, s:o}", "schema", "asymctl.trial/1", "duration_us",
                                     (json_int_t)t->observation.took, "block_us", (json_int_t)t->plan.block, "programs",
                                     programs, "machine", told_json(&told[n - 1])),
                           stdout);
}

static int make_rows(struct trial *t)
{
    int r = (t->rows[t->n_rows++] = calloc(1, sizeof *t->rows[0])) ? 0 : -ENOMEM;
    if (r >= 0)
        snprintf(t->rows[MACHINE]->name, sizeof t->rows[MACHINE]->name, "the machine");
    for (char **name = t->names; r >= 0 && *name; name++)
        r = find_row(t, *name, true) ? 0 : -ENOMEM;
    if (r < 0 || !t->args->metric)
        return r;
    t->numbers = calloc(1, sizeof *t->numbers);
    return t->numbers ? 0 : -ENOMEM;
}

static int begin(struct trial *t)
{
    const struct asym_observation_arguments observed = {.time = 2 * t->plan.block * t->plan.pairs + ASYM_SEC,
                                                        .config = t->args->config};
    int r = make_rows(t);
    if (r < 0)
        return asym_fail(&t->err, r, "no memory");
    if (getrandom(&t->plan.seed, sizeof t->plan.seed, 0) < 0)
        return asym_fail(&t->err, -errno, "no random numbers: %s", strerror(errno));
    /* A trial of an asymd that is paused would end with one that steers. */
    r = is_paused(t);
    if (r > 0)
        return asym_fail(&t->err, -EBUSY, "asymd is paused: run asymctl resume first");
    if (r >= 0)
        r = asym_observation_open(&t->observation, &observed, &t->err);
    if (r >= 0)
        asym_sampler_count_all(t->observation.observer.sampler);
    if (r >= 0 && 4 * t->observation.run.settings->daemon.interval > t->plan.block)
        return asym_fail(&t->err, -EINVAL,
                         "--block is shorter than four samples: [asymd] interval is longer than for this");
    return r < 0 ? r : asym_observation_begin(&t->observation, &t->err);
}

/* Ends as it began: asymd steers. */
static int run_blocks(struct trial *t)
{
    struct asym_error err = {""};
    const int r = asym_observation_run(&t->observation, on_cycle, t, &err);
    if (r < 0 && !*t->err.text)
        t->err = err;
    struct asym_error unresumed = {""};
    const int resumed = t->yields ? 0 : asym_client_change(t->client, &unresumed, "Resume", NULL);
    if (resumed < 0 && r >= 0)
        t->err = unresumed;
    return r < 0 ? r : resumed;
}

static int try_asymd(const void *parsed, char **operands)
{
    ASYM_CLEANUP(trial_done) struct trial t = {.args = parsed, .names = operands, .metric = {.out = -1}};
    const size_t pairs = t.args->time / (2 * t.args->block);
    t.observation.run.root.fd = -1;
    t.plan = (struct asym_crossover){
        .block = t.args->block, .drop = DROP, .pairs = ASYM_MIN(pairs, ASYM_CROSSOVER_PAIRS_MAX)};
    if (pairs < 2)
        return asym_verb_wrong_usage(&asym_verb_trial, "--time is shorter than two pairs of blocks");
    for (char **name = t.names; *name; name++)
        if (strlen(*name) >= ASYM_COMM_LEN)
            return asym_verb_wrong_usage(&asym_verb_trial,
                                         "a name has at most 15 bytes, as the kernel's names of threads");
    const int status = asym_verb_connect(&t.client);
    if (status != ASYM_EXIT_DONE)
        return status;
    int r = begin(&t);
    if (r >= 0)
        r = run_blocks(&t);
    if (r < 0)
        return asym_verb_call_failed(r, &t.err);
    if (t.args->json)
        return asym_verb_reported(print_json(&t));
    print_text(&t);
    return ASYM_EXIT_DONE;
}

const struct asym_verb asym_verb_trial = {
    .name = "trial",
    .args = args,
    .operands = ASYM_OPERANDS_ANY,
    .usage = "[NAME...]",
    .summary = "measure what asymd gains here, by steering and pausing in turns",
    .help =
        "Lets the running asymd steer for a block of time and pauses it for another, in pairs of random order, and\n"
        "compares them: for each program NAME, or without names for all that are active, and for the machine's\n"
        "total. asymctl compares the instructions of a program, where it can count them. Elsewhere it computes the\n"
        "program's work: time on CPUs times their speed, which ignores caches and hyperthreads. --metric=COMMAND\n"
        "measures better: asymctl runs it with sh -c in each block, ends it with the block, and takes the last\n"
        "number that it printed, such as frames or requests a second, more being better. " ASYM_TRIAL_SECONDS
        " has the seconds that it has.\n"
        "\n"
        "The report has a 95 % interval. If 0 is inside, asymctl reports no difference. Ctrl-C ends the trial with\n"
        "the pairs so far. In the end asymd steers as before; if asymctl is killed, the pause ends by itself.\n",
    .file_option = "--config",
    .file = ASYM_PATH_CONFIG,
    .run = try_asymd,
};
