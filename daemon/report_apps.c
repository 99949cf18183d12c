/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The third block of the dry run: applications, their threads of interest, and what is left alone. */
#include "daemon/report_page.h"

#include <inttypes.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"
#include "daemon/columns.h"

#define MOVERS_SHOWN   8 /* per application */
#define KINDS_SHOWN    4 /* kinds of threads that stay, per application */
#define EXAMPLES_SHOWN 4 /* per reason for being left alone */
#define NAME_MAX_COLS  40
#define MASK_SIDE      14 /* columns of a mask beside an arrow */
#define WHY_LEAST      34 /* columns below which the reason goes on a line of its own */

/* Columns that the widest of the cells shown takes, so that all stand under each other. */
struct widths {
    size_t app, name, cpu, mask, nice;
};

/* The threads of an application that are shown. */
struct shown {
    uint32_t task[MOVERS_SHOWN + KINDS_SHOWN];
    uint32_t like[MOVERS_SHOWN + KINDS_SHOWN]; /* how many more of the same plan */
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
    struct asym_mask old = online(r, r->snapshot->tasks[i].mask), new = online(r, &r->plan->tasks[i].mask);
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
    char text[1024];
    if (!app->cgroup)
        return name_of(app->comm, columns, buf, size);
    asym_text_escape(app->cgroup, strlen(app->cgroup), text, sizeof text);
    return asym_columns_cut(text, columns, buf, size);
}

static bool alike(const struct asym_report *r, uint32_t a, uint32_t b)
{
    const struct asym_plan_task *p = &r->plan->tasks[a], *q = &r->plan->tasks[b];
    const struct asym_task *s = &r->snapshot->tasks[a], *t = &r->snapshot->tasks[b];
    return p->reason == q->reason && p->class == q->class && p->nice == q->nice && s->nice == t->nice &&
           asym_mask_equal(&p->mask, &q->mask) && (s->mask == t->mask || asym_mask_equal(s->mask, t->mask));
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

/* Every mover up to a bound, then one of each kind of those that stay. */
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
    struct asym_mask old = online(r, task->mask), new = online(r, &plan->mask);
    char from[32], to[32];
    *c = (struct cells){.moves = plan->moves, .mask_changes = mask_changes(r, i), .nice_changes = nice_changes(r, i)};
    /* Most threads are named as their process: only another name tells anything. */
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

static size_t wider(size_t width, const char *text)
{
    size_t columns = asym_columns_of(text);
    return ASYM_MAX(width, columns);
}

static void measure(const struct asym_report *r, struct widths *w)
{
    *w = (struct widths){
        .app = strlen("APPLICATION"), .cpu = strlen("CPU"), .mask = strlen("MASK"), .nice = strlen("NICE")};
    for (size_t a = 0; a < r->snapshot->n_apps; a++) {
        const struct asym_app *app = &r->snapshot->apps[a];
        char name[256];
        struct shown shown;
        struct cells cells;
        if (!asym_report_lists_app(&r->plan->apps[a]))
            continue;
        w->app = wider(w->app, app_name(app, NAME_MAX_COLS, name, sizeof name));
        select_threads(r, app, &shown);
        for (size_t k = 0; k < shown.n; k++) {
            fill_cells(r, app, shown.task[k], &cells);
            w->name = wider(w->name, cells.name);
            w->cpu = wider(w->cpu, cells.cpu);
            w->mask = wider(w->mask, cells.mask);
            w->nice = wider(w->nice, cells.nice);
        }
    }
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
    asym_columns_cell(p->out, c.nice, w->nice + 2, c.nice_changes ? change : NULL);
    size_t at = 14 + (w->name ? w->name + 2 : 0) + w->cpu + 2 + w->mask + 2 + w->nice + 2;
    if (at + WHY_LEAST > ASYM_COLUMNS) {
        at = 14;
        fprintf(p->out, "\n%*s", (int)at, "");
    }
    asym_columns_wrap(p->out, c.why, at, at);
    fputc('\n', p->out);
}

static const struct {
    const char *text;
} speeches[] = {
    [ASYM_SPEECH_NONE] = {NULL},
    [ASYM_SPEECH_SPEAKS] = {"Says what its threads do (RTX); asymd as the service heeds it, this plan does not."},
    [ASYM_SPEECH_SUSPECT] =
        {"Its threads may be spinning at barriers: it uses OpenMP, and some never pause. asymctl run "
         "makes it say so."},
};

static void print_app(const struct asym_page *p, const struct widths *w, size_t a)
{
    const struct asym_report *r = p->report;
    const struct asym_app *app = &r->snapshot->apps[a];
    const struct asym_plan_app *plan = &r->plan->apps[a];
    char name[256], pid[16] = "-";
    struct shown shown;
    fputs("  ", p->out);
    app_name(app, NAME_MAX_COLS, name, sizeof name);
    asym_columns_cell(p->out, name, w->app + 2, p->colour ? ASYM_STYLE_HEADING : NULL);
    if (!app->cgroup)
        snprintf(pid, sizeof pid, "%" PRId32, app->id.tgid);
    fprintf(p->out, "%8s  %8.2f  %-8s  %s\n", pid, plan->runnable, asym_phase_name(plan->phase),
            asym_class_name(plan->class));
    if (r->speech && speeches[r->speech[a]].text)
        asym_page_say(p, 4, 4, "%s", speeches[r->speech[a]].text);
    select_threads(r, app, &shown);
    size_t movers = 0;
    for (size_t k = 0; k < shown.n; k++) {
        bool moves = r->plan->tasks[shown.task[k]].moves;
        movers += moves;
        if (!moves && movers > 0 && shown.more_movers > 0) {
            asym_page_say(p, 14, 14, "%" PRIu32 " more move", shown.more_movers);
            shown.more_movers = 0;
        }
        print_thread(p, w, app, shown.task[k]);
        if (shown.like[k] > 0)
            asym_page_say(p, 14, 14, "and %" PRIu32 " more like it", shown.like[k]);
    }
    if (shown.more_movers > 0)
        asym_page_say(p, 14, 14, "%" PRIu32 " more move", shown.more_movers);
    if (shown.more_stay > 0)
        asym_page_say(p, 14, 14, "%" PRIu32 " more stay where they are", shown.more_stay);
}

/* What is left alone for one reason. */
struct group {
    size_t n;
    enum asym_reason reason;
    const double *figure;
    struct {
        const char *comm; /* or cgroup */
        int32_t id;       /* 0: a cgroup */
    } examples[EXAMPLES_SHOWN];
};

static void add_example(struct group *g, enum asym_reason reason, const double *figure, const char *comm, int32_t id)
{
    g->reason = reason;
    g->figure = figure;
    if (g->n < EXAMPLES_SHOWN) {
        g->examples[g->n].comm = comm;
        g->examples[g->n].id = id;
    }
    g->n++;
}

static void group_excluded(const struct asym_report *r, struct group groups[ASYM_WHY_LAST_EXCLUSION + 1])
{
    for (size_t a = 0; a < r->snapshot->n_apps; a++) {
        const struct asym_app *app = &r->snapshot->apps[a];
        const struct asym_plan_app *plan = &r->plan->apps[a];
        if (asym_report_excludes(plan->excluded))
            add_example(&groups[plan->excluded], plan->excluded, plan->figure, app->cgroup ? app->cgroup : app->comm,
                        app->cgroup ? 0 : app->id.tgid);
        if (!asym_report_lists_app(plan))
            continue;
        for (uint32_t i = app->first_task; i < app->first_task + app->n_tasks; i++) {
            const struct asym_plan_task *t = &r->plan->tasks[i];
            if (!asym_report_lists_thread(t) && asym_report_excludes(t->reason))
                add_example(&groups[t->reason], t->reason, t->figure, r->snapshot->tasks[i].comm,
                            r->snapshot->tasks[i].id.tid);
        }
    }
}

/* The reason of several: without the figures, which are the first one's. */
static const char *common_reason(const struct group *g, char *buf, size_t size)
{
    static const struct {
        enum asym_reason reason;
        const char *text;
    } rows[] = {
        {ASYM_WHY_DENIED, "the kernel refused"},
        {ASYM_WHY_SETTLING, "started only just now"},
        {ASYM_WHY_FORKED, "created a process a moment ago"},
    };
    for (size_t i = 0; g->n > 1 && i < ASYM_LENGTH(rows); i++)
        if (rows[i].reason == g->reason)
            return rows[i].text;
    return asym_reason_text(g->reason, g->figure, buf, size);
}

static void print_group(const struct asym_page *p, const struct group *g)
{
    char text[1024], why[256], name[256];
    size_t used = (size_t)snprintf(text, sizeof text, "%s:", common_reason(g, why, sizeof why));
    for (size_t i = 0; i < ASYM_MIN(g->n, (size_t)EXAMPLES_SHOWN); i++) {
        const struct asym_app app = {.cgroup = g->examples[i].id ? NULL : g->examples[i].comm};
        if (g->examples[i].id)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s (%" PRId32 ")", i ? "," : "",
                                     name_of(g->examples[i].comm, ASYM_COMM_LEN, name, sizeof name), g->examples[i].id);
        else
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %s", i ? "," : "",
                                     app_name(&app, NAME_MAX_COLS, name, sizeof name));
    }
    if (g->n > EXAMPLES_SHOWN)
        snprintf(text + used, sizeof text - used, ", %zu more", g->n - EXAMPLES_SHOWN);
    fprintf(p->out, "%12zu  ", g->n);
    asym_columns_wrap(p->out, text, 14, 14);
    fputc('\n', p->out);
}

static void print_excluded(const struct asym_page *p)
{
    struct group groups[ASYM_WHY_LAST_EXCLUSION + 1] = {{.n = 0}};
    bool any = false;
    group_excluded(p->report, groups);
    for (size_t i = 0; i < ASYM_LENGTH(groups); i++) {
        if (groups[i].n == 0)
            continue;
        if (!any)
            fputs("  Left alone:\n", p->out);
        any = true;
        print_group(p, &groups[i]);
    }
}

static void print_headers(const struct asym_page *p, const struct widths *w)
{
    fputs("  ", p->out);
    asym_columns_cell(p->out, "APPLICATION", w->app + 2, NULL);
    fputs("     PID  RUNNABLE  PHASE     CLASS\n", p->out);
    asym_columns_cell(p->out, "", 4, NULL);
    asym_columns_cell(p->out, "     TID", 10, NULL);
    if (w->name > 0)
        asym_columns_cell(p->out, "NAME", w->name + 2, NULL);
    asym_columns_cell(p->out, "CPU", w->cpu + 2, NULL);
    asym_columns_cell(p->out, "MASK", w->mask + 2, NULL);
    asym_columns_cell(p->out, "NICE", w->nice + 2, NULL);
    fputs("WHY\n", p->out);
}

static void print_nothing(const struct asym_page *p)
{
    if (p->report->snapshot->interval == 0)
        asym_page_say(p, 2, 2,
                      "One look alone cannot tell what was busy: two of a live machine can. A captured machine shows "
                      "its CPUs, and what would be left alone.");
    else
        asym_page_say(p, 2, 2,
                      "Nothing that may be steered was busy in the %.0f ms observed. Try a longer look "
                      "(--duration=5s), or start something and name it (--pid=PID).",
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
    measure(r, &w);
    if (listed > 0)
        print_headers(p, &w);
    else
        print_nothing(p);
    for (size_t a = 0; a < r->snapshot->n_apps; a++)
        if (asym_report_lists_app(&r->plan->apps[a]))
            print_app(p, &w, a);
    print_excluded(p);
    fputc('\n', p->out);
}
