/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The third block of the dry run: the applications, their threads, and the threads that asymd leaves alone. */
#include "report/report.h"

#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "core/classify.h"

void asym_page_heading(const struct asym_page *p, const char *title)
{
    asym_columns_cell(p->out, title, 13, p->colour ? ASYM_STYLE_HEADING : NULL);
}

#define MOVERS_SHOWN   8 /* per application */
#define KINDS_SHOWN    4 /* kinds of threads that stay on their CPU, per application */
#define EXAMPLES_SHOWN 4 /* per reason why asymd leaves threads alone */
#define NAME_MAX_COLS  40
#define MASK_SIDE      14 /* columns of a mask beside an arrow */
#define APP_CELLS      39 /* columns of an application's line without its name */
#define WHY_LEAST      34 /* with fewer columns left, the reason gets a line of its own */

/* The columns of the widest cell shown, so that all cells align. */
struct widths {
    size_t app, name, cpu, mask, nice;
};

/* The threads of an application that the table shows. */
struct shown {
    uint32_t task[MOVERS_SHOWN + KINDS_SHOWN];
    uint32_t like[MOVERS_SHOWN + KINDS_SHOWN]; /* how many more threads have the same plan */
    size_t n;
    uint32_t more_movers, more_stay;
};

struct cells {
    char name[64], cpu[32], mask[64], nice[16], why[256];
    bool moves, mask_changes, nice_changes;
};

static struct asym_mask online(const struct asym_report *r, const struct asym_mask *mask)
{
    return asym_mask_and(mask, &r->snapshot->machine->online);
}

static bool mask_changes(const struct asym_report *r, size_t i)
{
    struct asym_mask old = online(r, r->snapshot->tasks[i].mask), new = online(r, r->plan->tasks[i].mask);
    return r->plan->tasks[i].target >= 0 && !asym_mask_equal(&old, &new);
}

static bool nice_changes(const struct asym_report *r, size_t i)
{
    return r->plan->tasks[i].target >= 0 && r->plan->tasks[i].nice != r->snapshot->tasks[i].nice;
}

bool asym_page_changes(const struct asym_report *r, size_t task)
{
    return mask_changes(r, task) || nice_changes(r, task);
}

static const char *name_of(const char comm[ASYM_COMM_LEN], size_t columns, char *buf, size_t size)
{
    char text[4 * ASYM_COMM_LEN];
    asym_text_escape(comm, strnlen(comm, ASYM_COMM_LEN), text, sizeof text);
    return asym_columns_cut(text, columns, buf, size);
}

static const char *app_name(const struct asym_app *app, size_t columns, char *buf, size_t size)
{
    char text[1024], count[32] = "";
    const size_t len = app->cgroup ? strlen(app->cgroup) : strnlen(app->comm, ASYM_COMM_LEN);
    asym_text_escape(app->cgroup ? app->cgroup : app->comm, len, text, sizeof text);
    if (!app->cgroup && app->n_procs > 1)
        snprintf(count, sizeof count, ", %" PRIu32 " processes", app->n_procs);
    char name[sizeof text + sizeof count];
    snprintf(name, sizeof name, "%s%s", text, count);
    return asym_columns_cut(name, columns, buf, size);
}

static bool alike(const struct asym_report *r, uint32_t a, uint32_t b)
{
    const struct asym_plan_task *p = &r->plan->tasks[a], *q = &r->plan->tasks[b];
    const struct asym_task *s = &r->snapshot->tasks[a], *t = &r->snapshot->tasks[b];
    return p->reason == q->reason && p->class == q->class && p->nice == q->nice && s->nice == t->nice &&
           asym_mask_equal(p->mask, q->mask) && (s->mask == t->mask || asym_mask_equal(s->mask, t->mask));
}

static void add_stayer(const struct asym_report *r, struct shown *s, size_t first, uint32_t task)
{
    for (size_t k = first; k < s->n; k++) {
        if (alike(r, s->task[k], task)) {
            s->like[k]++;
            return;
        }
    }
    if (s->n - first == KINDS_SHOWN) {
        s->more_stay++;
        return;
    }
    s->task[s->n] = task;
    s->like[s->n++] = 0;
}

/* Selects every thread that moves, up to a bound, and then one of each kind of those that stay. */
static void select_threads(const struct asym_report *r, const struct asym_app *app, struct shown *s)
{
    *s = (struct shown){.n = 0};
    uint32_t end = app->first_task + app->n_tasks;
    for (uint32_t i = app->first_task; i < end; i++) {
        if (!r->plan->tasks[i].moves || !asym_report_lists_thread(&r->plan->tasks[i]))
            continue;
        if (s->n < MOVERS_SHOWN)
            s->task[s->n++] = i;
        else
            s->more_movers++;
    }
    size_t first = s->n;
    for (uint32_t i = app->first_task; i < end; i++)
        if (!r->plan->tasks[i].moves && asym_report_lists_thread(&r->plan->tasks[i]))
            add_stayer(r, s, first, i);
}

static void fill_cells(const struct asym_report *r, const struct asym_app *app, uint32_t i, struct cells *c)
{
    const struct asym_task *task = &r->snapshot->tasks[i];
    const struct asym_plan_task *plan = &r->plan->tasks[i];
    struct asym_mask old = online(r, task->mask), new = online(r, plan->mask);
    char from[32], to[32];
    *c = (struct cells){.moves = plan->moves, .mask_changes = mask_changes(r, i), .nice_changes = nice_changes(r, i)};
    /* Most threads have the name of their process; the table shows only a different name. */
    if (memcmp(task->comm, app->comm, strnlen(app->comm, ASYM_COMM_LEN - 1) + 1) != 0)
        name_of(task->comm, ASYM_COMM_LEN, c->name, sizeof c->name);
    if (plan->moves)
        snprintf(c->cpu, sizeof c->cpu, "%" PRId32 " -> %" PRId32, task->cpu, plan->target);
    else
        snprintf(c->cpu, sizeof c->cpu, "%" PRId32, task->cpu);
    if (c->mask_changes)
        snprintf(c->mask, sizeof c->mask, "%s -> %s", asym_columns_cpus(&old, MASK_SIDE, from, sizeof from),
                 asym_columns_cpus(&new, MASK_SIDE, to, sizeof to));
    else
        asym_columns_cpus(&old, 2 * MASK_SIDE, c->mask, sizeof c->mask);
    if (c->nice_changes)
        snprintf(c->nice, sizeof c->nice, "%d -> %d", task->nice, plan->nice);
    else
        snprintf(c->nice, sizeof c->nice, "%d", task->nice);
    asym_reason_text(plan->reason, plan->figure, c->why, sizeof c->why);
}

/* Returns the column after the cells of a thread, where its reason begins. */
static size_t cells_end(const struct widths *w)
{
    return 14 + (w->name ? w->name + 2 : 0) + w->cpu + 2 + w->mask + 2 + (w->nice ? w->nice + 2 : 0);
}

/* Returns the most columns of an application's name. */
static size_t name_columns(const struct asym_page *p)
{
    return ASYM_MIN(p->terminal->columns - APP_CELLS, (size_t)NAME_MAX_COLS);
}

/* Drops columns: the nice values if none changes and the reasons need the room; the names of threads if the cells do. */
static void fit(const struct asym_page *p, bool nice_changes, struct widths *w)
{
    if (cells_end(w) + WHY_LEAST > p->terminal->columns && !nice_changes)
        w->nice = 0;
    if (cells_end(w) > p->terminal->columns)
        w->name = 0;
}

static void measure(const struct asym_page *p, struct widths *w)
{
    const struct asym_report *r = p->report;
    bool nice_changes = false;
    *w = (struct widths){
        .app = strlen("APPLICATION"), .cpu = strlen("CPU"), .mask = strlen("MASK"), .nice = strlen("NICE")};
    for (size_t a = 0; a < r->snapshot->n_apps; a++) {
        const struct asym_app *app = &r->snapshot->apps[a];
        char name[256];
        struct shown shown;
        struct cells cells;
        if (!asym_report_lists_app(&r->plan->apps[a]))
            continue;
        w->app = asym_columns_wider(w->app, app_name(app, name_columns(p), name, sizeof name));
        select_threads(r, app, &shown);
        for (size_t k = 0; k < shown.n; k++) {
            fill_cells(r, app, shown.task[k], &cells);
            w->name = asym_columns_wider(w->name, cells.name);
            w->cpu = asym_columns_wider(w->cpu, cells.cpu);
            w->mask = asym_columns_wider(w->mask, cells.mask);
            w->nice = asym_columns_wider(w->nice, cells.nice);
            nice_changes = nice_changes || cells.nice_changes;
        }
    }
    fit(p, nice_changes, w);
}

/* Begins the line of the reason if the cells leave it no room. Returns the column. */
static size_t begin_reason(const struct asym_page *p, const struct widths *w)
{
    const size_t at = cells_end(w);
    if (at + WHY_LEAST <= p->terminal->columns)
        return at;
    fprintf(p->out, "\n%*s", 14, "");
    return 14;
}

static void print_thread(const struct asym_page *p, const struct widths *w, const struct asym_app *app, uint32_t task)
{
    struct cells c;
    char tid[16];
    const char *change = p->colour ? ASYM_STYLE_CHANGE : NULL;
    fill_cells(p->report, app, task, &c);
    snprintf(tid, sizeof tid, "%8" PRId32, p->report->snapshot->tasks[task].id.tid);
    fprintf(p->out, "  ");
    asym_columns_cell(p->out, c.moves ? "*" : c.mask_changes || c.nice_changes ? "+" : "", 2, c.moves ? change : NULL);
    asym_columns_cell(p->out, tid, 10, NULL);
    if (w->name > 0)
        asym_columns_cell(p->out, c.name, w->name + 2, NULL);
    asym_columns_cell(p->out, c.cpu, w->cpu + 2, c.moves ? change : NULL);
    asym_columns_cell(p->out, c.mask, w->mask + 2, c.mask_changes ? change : NULL);
    if (w->nice > 0)
        asym_columns_cell(p->out, c.nice, w->nice + 2, c.nice_changes ? change : NULL);
    const size_t at = begin_reason(p, w);
    asym_columns_line(p->terminal, c.why, at, at);
}

static const char *const rtx_texts[] = {
    [ASYM_RTXD_DETECTION_NONE] = NULL,
    [ASYM_RTXD_DETECTION_REPORTS] =
        "This program reports what its threads do (RTX). The service uses the reports; this plan does not.",
    [ASYM_RTXD_DETECTION_SUSPECT] =
        "Its threads may be spinning at barriers: it uses OpenMP, and some threads never pause. Start it with "
        "asymctl run, and it reports when they spin.",
};

static const char *class_word(const struct asym_report *r, size_t a)
{
    const struct asym_app *app = &r->snapshot->apps[a];
    bool has_sp = false;
    for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++)
        has_sp |= r->plan->tasks[i].class == ASYM_CLASS_SP;
    return asym_classify_word(&r->plan->apps[a], has_sp);
}

static void print_app(const struct asym_page *p, const struct widths *w, size_t a)
{
    const struct asym_report *r = p->report;
    const struct asym_app *app = &r->snapshot->apps[a];
    char name[256], pid[16] = "-";
    struct shown shown;
    fputs("  ", p->out);
    app_name(app, name_columns(p), name, sizeof name);
    asym_columns_cell(p->out, name, w->app + 2, p->colour ? ASYM_STYLE_HEADING : NULL);
    if (!app->cgroup)
        snprintf(pid, sizeof pid, "%" PRId32, app->id.tgid);
    fprintf(p->out, "%8s  %8.2f  %s\n", pid, r->plan->apps[a].runnable, class_word(r, a));
    if (r->detection && rtx_texts[r->detection[a]])
        asym_columns_say(p->terminal, 4, 4, "%s", rtx_texts[r->detection[a]]);
    select_threads(r, app, &shown);
    size_t movers = 0;
    for (size_t k = 0; k < shown.n; k++) {
        bool moves = r->plan->tasks[shown.task[k]].moves;
        movers += moves;
        if (!moves && movers > 0 && shown.more_movers > 0) {
            asym_columns_say(p->terminal, 14, 14, "%" PRIu32 " more would move", shown.more_movers);
            shown.more_movers = 0;
        }
        print_thread(p, w, app, shown.task[k]);
        if (shown.like[k] > 0)
            asym_columns_say(p->terminal, 14, 14, "and %" PRIu32 " more like it", shown.like[k]);
    }
    if (shown.more_movers > 0)
        asym_columns_say(p->terminal, 14, 14, "%" PRIu32 " more would move", shown.more_movers);
    if (shown.more_stay > 0)
        asym_columns_say(p->terminal, 14, 14, "%" PRIu32 " more stay where they are", shown.more_stay);
}

/* The threads that asymd leaves alone for one reason. */
struct group {
    size_t n;
    const double *figure;
    struct {
        const char *comm; /* or cgroup */
        int32_t id;       /* 0: a cgroup */
    } examples[EXAMPLES_SHOWN];
};

static void add_example(struct group *g, const double *figure, const char *comm, int32_t id)
{
    g->figure = figure;
    if (g->n < EXAMPLES_SHOWN) {
        g->examples[g->n].comm = comm;
        g->examples[g->n].id = id;
    }
    g->n++;
}

/* Collects the applications and threads that asymd leaves alone for this reason. */
static void group_excluded(const struct asym_report *r, const struct asym_reason *reason, struct group *g)
{
    for (size_t a = 0; a < r->snapshot->n_apps; a++) {
        const struct asym_app *app = &r->snapshot->apps[a];
        const struct asym_plan_app *plan = &r->plan->apps[a];
        if (plan->excluded == reason)
            add_example(g, plan->figure, app->cgroup ? app->cgroup : app->comm, app->cgroup ? 0 : app->id.tgid);
        if (!asym_report_lists_app(plan))
            continue;
        for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
            const struct asym_plan_task *t = &r->plan->tasks[i];
            if (!asym_report_lists_thread(t) && t->reason == reason)
                add_example(g, t->figure, r->snapshot->tasks[i].comm, r->snapshot->tasks[i].id.tid);
        }
    }
}

static void print_group(const struct asym_page *p, const struct asym_reason *reason, const struct group *g)
{
    char text[1024], why[256], name[256];
    struct asym_text line = asym_text_in(text, sizeof text);
    asym_text_add(&line,
                  "%s:", g->n > 1 ? asym_reason_several(reason) : asym_reason_text(reason, g->figure, why, sizeof why));
    for (size_t i = 0; i < ASYM_MIN(g->n, (size_t)EXAMPLES_SHOWN); i++) {
        const struct asym_app app = {.cgroup = g->examples[i].comm};
        if (g->examples[i].id)
            asym_text_add(&line, "%s %s (%" PRId32 ")", i ? "," : "",
                          name_of(g->examples[i].comm, ASYM_COMM_LEN, name, sizeof name), g->examples[i].id);
        else
            asym_text_add(&line, "%s %s", i ? "," : "", app_name(&app, NAME_MAX_COLS, name, sizeof name));
    }
    if (g->n > EXAMPLES_SHOWN)
        asym_text_add(&line, ", %zu more", g->n - EXAMPLES_SHOWN);
    fprintf(p->out, "%12zu  ", g->n);
    asym_columns_line(p->terminal, text, 14, 14);
}

static void print_excluded(const struct asym_page *p)
{
    bool any = false;
    for (int k = ASYM_WHY_NONE + 1; k < ASYM_N_EXCLUSIONS; k++) {
        const struct asym_reason *reason = asym_why((enum asym_exclusion)k);
        struct group g = {.n = 0};
        if (asym_report_excludes(reason))
            group_excluded(p->report, reason, &g);
        if (g.n == 0)
            continue;
        if (!any)
            fputs("  Left alone:\n", p->out);
        any = true;
        print_group(p, reason, &g);
    }
}

static void print_headers(const struct asym_page *p, const struct widths *w)
{
    fputs("  ", p->out);
    asym_columns_cell(p->out, "APPLICATION", w->app + 2, NULL);
    fputs("     PID  RUNNABLE  CLASS\n", p->out);
    asym_columns_cell(p->out, "", 4, NULL);
    asym_columns_cell(p->out, "     TID", 10, NULL);
    if (w->name > 0)
        asym_columns_cell(p->out, "NAME", w->name + 2, NULL);
    asym_columns_cell(p->out, "CPU", w->cpu + 2, NULL);
    asym_columns_cell(p->out, "MASK", w->mask + 2, NULL);
    if (w->nice > 0)
        asym_columns_cell(p->out, "NICE", w->nice + 2, NULL);
    begin_reason(p, w);
    fputs("WHY\n", p->out);
}

static void print_nothing(const struct asym_page *p)
{
    if (p->report->snapshot->interval == 0)
        asym_columns_say(
            p->terminal, 2, 2,
            "One sample cannot show which threads were busy; two samples of a live machine can. For a captured "
            "machine asymd shows the CPUs, and the threads that it would leave alone.");
    else
        asym_columns_say(p->terminal, 2, 2,
                         "No thread that asymd may steer was busy in the %.0f ms observed. Observe for longer "
                         "(--duration=5s), or start a program and name it (--pid=PID).",
                         p->report->observed_ms);
}

void asym_page_apps(const struct asym_page *p)
{
    const struct asym_report *r = p->report;
    struct widths w;
    size_t listed = 0, idle = 0;
    for (size_t a = 0; a < r->snapshot->n_apps; a++) {
        listed += asym_report_lists_app(&r->plan->apps[a]);
        idle += !asym_report_lists_app(&r->plan->apps[a]) && !asym_report_excludes(r->plan->apps[a].excluded);
    }
    asym_page_heading(p, "Applications");
    fprintf(p->out, " %zu active, %zu nearly idle and not shown\n", listed, idle);
    measure(p, &w);
    if (listed > 0)
        print_headers(p, &w);
    else
        print_nothing(p);
    for (size_t a = 0; a < r->snapshot->n_apps; a++)
        if (asym_report_lists_app(&r->plan->apps[a]))
            print_app(p, &w, a);
    print_excluded(p);
    if (listed > 0)
        asym_columns_say(
            p->terminal, 2, 2,
            "RUNNABLE: threads that ran or waited for a CPU, on average. MASK: the CPUs that a thread may run "
            "on. Before an arrow: now; behind it: planned.");
    fputc('\n', p->out);
}
