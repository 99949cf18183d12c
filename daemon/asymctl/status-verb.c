/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl status. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/command-line.h"
#include "app/machine-check.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "daemon/asymctl/service-verb.h"
#include "daemon/asymctl/status.h"
#include "daemon/asymctl/wording.h"
#include "report/json.h"
#include "report/columns.h"
#include "top/top.h"

/* The column where the texts begin, behind the names of the lines. */
#define INDENT 11

enum {
    MOST_PROGRAMS = 6,
    MOST_LACKS = 4,
    BAR_MIN = 8,
    BAR_MAX = 24,
};

#define BOLD   "1"
#define GREEN  "32"
#define YELLOW "33"

static void print_name(const struct asym_terminal *t, const char *name)
{
    asym_columns_cell(t->out, name, INDENT, t->colour && *name ? BOLD : NULL);
}

static void print_line(const struct asym_terminal *t, const char *name, const char *text)
{
    print_name(t, name);
    asym_columns_line(t, text, INDENT, INDENT);
}

static void print_head(const struct asym_status *s, const struct asym_terminal *t)
{
    const bool paused = asym_json_get_flag(s->of, "paused");
    const asym_usec start = (asym_usec)asym_json_get_int(s->of, "start_us"),
                    end = (asym_usec)asym_json_get_int(s->of, "paused_until_us");
    char version[64], since[ASYM_UNITS_SIZE], age[ASYM_UNITS_SIZE], until[ASYM_UNITS_SIZE] = "you run asymctl resume",
                                                                    text[256];
    const char *word = paused ? "paused" : "running";
    size_t at = (size_t)fprintf(t->out, "asymd %s %s ", asym_name_member(s->of, "version", version, sizeof version),
                                paused ? "is" : "has been");
    asym_columns_cell(t->out, word, strlen(word), !t->colour ? NULL : paused ? YELLOW : GREEN);
    at += strlen(word);
    if (paused && end > 0)
        asym_units_date(end, until);
    snprintf(text, sizeof text, " %s%s%ssince %s (%s)", paused ? "until " : "", paused ? until : "",
             paused ? "; it has been running " : "", asym_units_date(start, since),
             asym_units_duration(s->now > start ? s->now - start : 0, age));
    asym_columns_line(t, text, at, INDENT);
}

/* Writes a bar of that many columns. Eighths of a column are seen in Unicode only. */
static const char *bar(double share, size_t columns, bool unicode, char *buf, size_t size)
{
    static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    const double filled = fmin(fmax(share, 0), 1) * (double)columns;
    const size_t parts = unicode ? 8 : 1, n = (size_t)lround(filled * (double)parts);
    struct asym_text text = asym_text_in(buf, size);
    size_t at = 0;
    for (; at < n / parts; at++)
        asym_text_add(&text, "%s", unicode ? "\u2588" : "#");
    if (n % parts > 0) {
        asym_text_add(&text, "%s", eighths[n % parts]);
        at++;
    }
    for (; at < columns; at++)
        asym_text_add(&text, "%s", unicode ? "\u2591" : "-");
    return buf;
}

/* Facts of the machine that decide what its lines say. */
struct machine {
    bool has_slow, differs;  /* some CPUs are slow; their speeds differ */
    bool has_names, has_smt; /* a type has a name of its own; a core has several CPUs */
};

/* If the machine has no name for a type, asymd calls it fast, slow or all. The line leaves such a name out. */
static bool is_named(const struct asym_top_type *c)
{
    return *c->name && strcmp(c->name, "fast") != 0 && strcmp(c->name, "slow") != 0 && strcmp(c->name, "all") != 0;
}

static struct machine machine_of(const struct asym_status *s)
{
    struct machine m = {.has_slow = *asym_json_get_text(s->of, "slow_cpus") != '\0'};
    double slowest = INFINITY, fastest = 0;
    struct asym_top_type c;
    for (int64_t k = asym_top_type_from(s->of, 0); asym_top_type(s->of, k, &c); k = asym_top_type_from(s->of, k + 1)) {
        m.has_names |= is_named(&c);
        m.has_smt |= c.n_cores < c.n;
        slowest = fmin(slowest, c.speed);
        fastest = fmax(fastest, c.speed);
    }
    m.differs = fastest > slowest && slowest > 0;
    return m;
}

/* Writes "4 fast CPUs at 2.25x" or "1 CPU": how many CPUs, and how fast they are. */
static const char *count(const struct asym_top_type *c, const struct machine *m, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    asym_text_add(&text, "%u", c->n);
    if (m->has_slow)
        asym_text_add(&text, c->n_fast == c->n ? " fast" : c->n_fast == 0 ? " slow" : " partly fast");
    asym_text_add(&text, c->n == 1 ? " CPU" : " CPUs");
    if (!m->has_slow && !m->differs && c->n > 1)
        asym_text_add(&text, " alike");
    if (m->differs)
        asym_text_add(&text, " at %.2fx", c->speed);
    return buf;
}

/* Writes "0-15 on 8 cores", or "0-7" if each CPU is a core. */
static const char *place(const struct asym_top_type *c, char *buf, size_t size)
{
    char list[64];
    struct asym_text text = asym_text_in(buf, size);
    asym_text_add(&text, "%s", asym_columns_cpus(&c->cpus, 16, list, sizeof list));
    if (c->n_cores < c->n)
        asym_text_add(&text, " on %u core%s", c->n_cores, c->n_cores == 1 ? "" : "s");
    return buf;
}

static void add_type(struct asym_report_table *table, const struct asym_status *s, const struct asym_terminal *t,
                     const struct machine *m, const struct asym_top_type *c)
{
    const size_t share = t->columns / (m->has_smt && t->columns < 100 ? 10 : 5);
    const size_t bar_columns = ASYM_MIN(ASYM_MAX(share, (size_t)BAR_MIN), (size_t)BAR_MAX);
    char name[128], number[64], list[96], load[128], percent[32];
    snprintf(percent, sizeof percent, "%.0f %% busy", 100 * c->busy / c->n);
    const char *const cells[] = {is_named(c) ? asym_text_show(c->name, name, sizeof name) : "",
                                 count(c, m, number, sizeof number), place(c, list, sizeof list),
                                 bar(c->busy / c->n, bar_columns, s->unicode, load, sizeof load), percent};
    asym_report_table_row(table, cells + !m->has_names);
}

static int print_machine(const struct asym_status *s, const struct asym_terminal *t)
{
    static const struct asym_report_table_column columns[] = {{.heading = "", .cut = 12},
                                                              {.heading = ""},
                                                              {.heading = "", .drop = 1},
                                                              {.heading = "", .drop = 2},
                                                              {.heading = "", .right = true}};
    const struct machine m = machine_of(s);
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = columns + !m.has_names,
                                      .n_columns = ASYM_LENGTH(columns) - !m.has_names};
    struct asym_top_type c;
    for (int64_t k = asym_top_type_from(s->of, 0); asym_top_type(s->of, k, &c); k = asym_top_type_from(s->of, k + 1))
        add_type(&table, s, t, &m, &c);
    if (table.n_cells == 0)
        return table.error;
    print_name(t, "Machine");
    return asym_report_table_print(&table, t, INDENT, INDENT, false);
}

/* The threads that asymd steers. The parts of each sum are in its line or below it. */
struct sums {
    unsigned programs, threads; /* of these; the threads that run or wait for a CPU */
    unsigned asleep;            /* further threads that still have masks of asymd: no snapshot lists their programs */
};

static struct sums sum_up(const json_t *status)
{
    const unsigned all = (unsigned)asym_json_get_int(status, "threads_steered");
    struct sums sums = {.programs = 0};
    json_t *app;
    size_t i;
    json_array_foreach(json_object_get(status, "applications"), i, app)
    {
        sums.programs += asym_json_get_int(app, "steered") > 0;
        sums.threads += (unsigned)asym_json_get_int(app, "steered");
    }
    sums.asleep = all > sums.threads ? all - sums.threads : 0;
    return sums;
}

/* There are not more names (asym_explain_class_name). */
#define MOST_NAMES 8

/* Adds the number of programs of each name. */
static void add_names(const json_t *status, struct asym_text *text)
{
    const char *names[MOST_NAMES];
    unsigned counts[MOST_NAMES] = {0};
    json_t *app;
    size_t n = 0, i;
    json_array_foreach(json_object_get(status, "applications"), i, app)
    {
        const char *name = asym_json_get_text(app, "class_name");
        size_t k = 0;
        if (asym_json_get_int(app, "steered") == 0)
            continue;
        while (k < n && strcmp(names[k], name) != 0)
            k++;
        if (k == n && n == MOST_NAMES)
            continue;
        if (k == n)
            names[n++] = name;
        counts[k]++;
    }
    for (size_t k = 0; k < n; k++) {
        char name[64];
        asym_text_add(text, "%s%u %s", k == 0 ? "" : ", ", counts[k], asym_text_show(names[k], name, sizeof name));
    }
}

/* "9 threads of 2 programs: 1 serial, 1 background", or "12 threads: 9 of 2 programs (1 serial, 1 background), 3 asleep". */
static void add_sums(const struct asym_status *s, const struct sums *sums, struct asym_text *text)
{
    const unsigned n = sums->threads + sums->asleep;
    asym_text_add(text, "%u thread%s", n, n == 1 ? "" : "s");
    if (sums->asleep > 0)
        asym_text_add(text, ": %u", sums->threads);
    asym_text_add(text, " of %u program%s%s", sums->programs, sums->programs == 1 ? "" : "s",
                  sums->asleep > 0 ? " (" : ": ");
    add_names(s->of, text);
    if (sums->asleep > 0)
        asym_text_add(text, "), %u asleep", sums->asleep);
}

static void print_steered(const struct asym_status *s, const struct asym_terminal *t)
{
    char buf[512];
    struct asym_text text = asym_text_in(buf, sizeof buf);
    const struct sums sums = sum_up(s->of);
    if (asym_json_get_flag(s->of, "paused"))
        asym_text_add(&text, "nothing while asymd is paused");
    else if (sums.threads > 0)
        add_sums(s, &sums, &text);
    else if (sums.asleep > 0)
        asym_text_add(&text, "%u thread%s, asleep", sums.asleep, sums.asleep == 1 ? "" : "s");
    else
        asym_text_add(&text, "no thread now");
    print_line(t, "Steering", buf);
}

/* The most steered threads first, then the busiest, then by PID. */
static int by_threads(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const int64_t steered = asym_json_get_int(y, "steered") - asym_json_get_int(x, "steered");
    const double runnable = asym_json_get_number(y, "runnable") - asym_json_get_number(x, "runnable");
    const int64_t pid = asym_json_get_int(x, "pid") - asym_json_get_int(y, "pid");
    if (steered != 0)
        return steered > 0 ? 1 : -1;
    if (runnable > 0 || runnable < 0)
        return runnable > 0 ? 1 : -1;
    return (pid > 0) - (pid < 0);
}

static void add_program(struct asym_report_table *table, const json_t *app)
{
    const int64_t process = asym_json_get_int(app, "pid"), steered = asym_json_get_int(app, "steered");
    char text[256], name[256], class[64], pid[24], threads[32], share[48];
    asym_name_app(app, text, sizeof text);
    snprintf(pid, sizeof pid, "%" PRId64, process);
    snprintf(threads, sizeof threads, "%" PRId64 " thread%s", steered, steered == 1 ? "" : "s");
    snprintf(share, sizeof share, "%.0f %% on fast", 100 * asym_json_get_number(app, "fast_share"));
    const char *const cells[] = {asym_text_show(text, name, sizeof name), process > 0 ? pid : "cgroup",
                                 asym_name_member(app, "class_name", class, sizeof class), threads, share};
    asym_report_table_row(table, cells);
}

static int print_programs(const struct asym_status *s, const struct asym_terminal *t)
{
    static const struct asym_report_table_column columns[] = {{.heading = "", .cut = 12},
                                                              {.heading = "", .right = true},
                                                              {.heading = "", .drop = 1},
                                                              {.heading = "", .right = true, .drop = 2},
                                                              {.heading = "", .right = true, .drop = 3}};
    ASYM_CLEANUP(asym_report_table_done)
    struct asym_report_table table = {.columns = columns, .n_columns = ASYM_LENGTH(columns)};
    json_t *apps = json_object_get(s->of, "applications"), *app;
    ASYM_AUTO_FREE json_t **order = calloc(json_array_size(apps) + 1, sizeof *order);
    unsigned threads = 0;
    size_t n = 0, k;
    if (!order)
        return -ENOMEM;
    json_array_foreach(apps, k, app) if (asym_json_get_int(app, "steered") > 0) order[n++] = app;
    qsort(order, n, sizeof *order, by_threads);
    for (size_t i = 0; i < ASYM_MIN(n, (size_t)MOST_PROGRAMS); i++)
        add_program(&table, order[i]);
    const int r = asym_report_table_print(&table, t, 0, INDENT, false);
    for (size_t i = MOST_PROGRAMS; i < n; i++)
        threads += (unsigned)asym_json_get_int(order[i], "steered");
    if (r >= 0 && n > MOST_PROGRAMS)
        fprintf(t->out, "%*sand %zu more with %u thread%s: asymctl top\n", INDENT, "", n - MOST_PROGRAMS, threads,
                threads == 1 ? "" : "s");
    return r;
}

static void print_costs(const json_t *status, const struct asym_terminal *t)
{
    char text[256], memory[ASYM_UNITS_SIZE], interval[ASYM_UNITS_SIZE];
    snprintf(text, sizeof text, "%" PRId64 " to threads in the last minute, %" PRId64 " since the start",
             asym_json_get_int(status, "changes_last_minute"), asym_json_get_int(status, "changes"));
    print_line(t, "Changes", text);
    snprintf(text, sizeof text, "%.2f %% of one CPU, %s of memory, a sample every %s",
             100 * asym_json_get_number(status, "cpu_usage"),
             asym_units_bytes((uint64_t)asym_json_get_int(status, "memory_bytes"), memory),
             asym_units_duration((asym_usec)asym_json_get_int(status, "interval_us"), interval));
    print_line(t, "Costs", text);
}

static void print_inputs(const json_t *status, const struct asym_terminal *t)
{
    static const char *const rows[][2] = {{"Reads", "observer"}, {"Profiles", "profile"}};
    char text[512];
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        if (*asym_name_member(status, rows[i][1], text, sizeof text))
            print_line(t, rows[i][0], text);
}

static void print_lacks(const json_t *status, const struct asym_terminal *t)
{
    const json_t *lacks = json_object_get(status, "lacks");
    const size_t n = json_array_size(lacks);
    char text[768];
    for (size_t i = 0; i < ASYM_MIN(n, (size_t)MOST_LACKS); i++) {
        const char *lack = json_string_value(json_array_get(lacks, i));
        print_line(t, i == 0 ? "Limits" : "", asym_text_show(lack ? lack : "", text, sizeof text));
    }
    if (n > MOST_LACKS)
        fprintf(t->out, "%*sand %zu more: asymctl check\n", INDENT, "", n - MOST_LACKS);
}

int asym_status_text(const struct asym_status *status, const struct asym_terminal *terminal)
{
    char policy[ASYM_POLICY_NAMED];
    print_head(status, terminal);
    fputc('\n', terminal->out);
    print_line(terminal, "Policy", asym_name_policy(status->of, policy));
    int r = print_machine(status, terminal);
    if (r < 0)
        return r;
    print_steered(status, terminal);
    r = print_programs(status, terminal);
    if (r < 0)
        return r;
    print_costs(status->of, terminal);
    print_inputs(status->of, terminal);
    print_lacks(status->of, terminal);
    return ferror(terminal->out) ? -EIO : 0;
}

/* By the variables that setlocale(3) reads. The terminal shows the characters of a locale that is not installed, too. */
static bool is_unicode(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < ASYM_LENGTH(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
    }
    return false;
}

/* One message: no asymd runs, how to start it, and what it could do for this machine, if that can be read. */
static int fail_without_service(const struct asym_error *no_service)
{
    const struct asym_invocation cli = {.config = NULL};
    ASYM_CLEANUP(asym_run_done) struct asym_run run;
    struct asym_error err = {""};
    char verdict[400] = "", message[1500];
    if (asym_machine_run_begin(&run, &cli, ASYM_MACHINE_INSTALLED, &err) >= 0 && asym_run_policy(&run, &err) >= 0)
        asym_assess(&run, verdict, sizeof verdict);
    snprintf(message, sizeof message, "%s%s%s", no_service->text, *verdict ? ". " : "", verdict);
    return asym_verb_no_service(message);
}

static int report(struct asym_client *client, bool json)
{
    ASYM_AUTO_JSON json_t *state = NULL;
    struct asym_error err = {""};
    const int r = asym_client_get_report(client, "status", 0, &state, &err);
    if (r < 0)
        return asym_verb_call_failed(r, &err);
    const struct asym_terminal terminal = asym_terminal_of(stdout);
    const struct asym_status s = {.of = state, .unicode = is_unicode(), .now = asym_clock_read(CLOCK_REALTIME)};
    return asym_verb_reported(json ? asym_json_print(asym_json_escape(state), stdout)
                                   : asym_status_text(&s, &terminal));
}

static int status(const void *parsed, char **operands)
{
    ASYM_CLEANUP(asym_client_close_p) struct asym_client *client = NULL;
    const struct asym_verb_json *a = parsed;
    struct asym_error err = {""};
    const int r = asym_client_open(&client, &err);
    if (r == -ENOTCONN && !a->json)
        return fail_without_service(&err);
    return r < 0 ? asym_verb_call_failed(r, &err) : report(client, a->json);
}

const struct asym_verb asym_verb_status = {
    .name = "status",
    .args = asym_verb_json_args,
    .summary = "print on one screen what the running asymd does",
    .help = "Prints since when asymd runs, its policy and why it is that one, which CPUs are fast, the speed of\n"
            "each core type relative to the slowest CPU, its load, the programs whose threads asymd steers now,\n"
            "how many threads it changed, what it costs, and what it cannot do here. If no asymd runs, prints\n"
            "what it could do for this machine, and ends with status 5.\n",
    .run = status,
};
