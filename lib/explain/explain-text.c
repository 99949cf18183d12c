/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns an explanation into sentences and evidence. */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"
#include "core/classify.h"
#include "explain/explain.h"

enum { SENTENCE = 768, NAME = 4 * ASYM_COMM_LEN + 48, SPAN = 32 };

typedef void say_fn(void *ctx, const char *sentence);
typedef void show_fn(void *ctx, const char *name, const char *value);

/* Writes the name of a process or thread, and its number; id 0: of a control group. */
static const char *name_task(const char comm[ASYM_COMM_LEN], int32_t id, char buf[NAME])
{
    char shown[4 * ASYM_COMM_LEN + 1];
    asym_text_escape(comm, strnlen(comm, ASYM_COMM_LEN), shown, sizeof shown);
    if (id > 0)
        snprintf(buf, NAME, "%s (%d)", *shown ? shown : "a program without a name", (int)id);
    else
        snprintf(buf, NAME, "the control group of %s", *shown ? shown : "a program without a name");
    return buf;
}

int32_t asym_explain_number(const struct asym_monitor_app *app)
{
    const bool is_alone = app->id.tid > 0 && app->n_procs == 1 && app->busiest.tgid > 0;
    return is_alone ? app->busiest.tgid : app->id.tid;
}

/* "make (1234)", of several processes "make (1234, 9 processes)". */
static const char *name_app(const struct asym_monitor_app *app, char buf[NAME])
{
    name_task(app->comm, asym_explain_number(app), buf);
    if (app->id.tid > 0 && app->n_procs > 1)
        snprintf(buf + strlen(buf) - 1, NAME - strlen(buf) + 1, ", %" PRIu32 " processes)", app->n_procs);
    return buf;
}

static const char *span_of(asym_usec from, asym_usec to, char buf[SPAN])
{
    const double s = to > from ? (double)(to - from) / (double)ASYM_SEC : 0;
    if (s < 1)
        snprintf(buf, SPAN, "less than a second");
    else if (s < 90)
        snprintf(buf, SPAN, "%.0f s", s);
    else if (s < 5400)
        snprintf(buf, SPAN, "%.0f min", s / 60);
    else if (s < 36 * 3600)
        snprintf(buf, SPAN, "%.0f h", s / 3600);
    else
        snprintf(buf, SPAN, "%.0f days", s / 86400);
    return buf;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
const char *asym_explain_reason(const struct asym_reason *reason, const double figure[2], const char *subject,
                                char *buf, size_t size)
{
    char text[512];
    snprintf(text, sizeof text, reason->sentence ? reason->sentence : reason->text, figure[0], figure[1]);
    snprintf(buf, size, "%s%s %s.", subject, reason->sentence ? "" : ":", text);
    return buf;
}
#pragma GCC diagnostic pop

/* By its nice values. A serial phase comes before: then one of its threads has a fast CPU. */
static bool is_background(const struct asym_monitor_app *app)
{
    return app->class_by == ASYM_CLASS_BY_NICE && app->class == ASYM_CLASS_HP && !app->has_sp;
}

const char *asym_explain_class_name(const struct asym_monitor_app *app)
{
    const struct asym_plan_app counted = {
        .phase = app->phase, .class = app->class, .class_by = app->class_by, .runnable = app->runnable};
    return asym_classify_word(&counted, app->has_sp);
}

/* The last snapshot with a thread that needed a CPU: of the program, or of the thread that the user asks about. */
static asym_usec seen_of(const struct asym_explanation *e)
{
    return e->thread ? e->thread->seen : e->app->seen;
}

/* No snapshot lists a program that sleeps: what the monitor remembers of its phase is not true any more. */
static bool is_idle(const struct asym_monitor_app *app, asym_usec now)
{
    return app->phase == ASYM_PHASE_IDLE || app->runnable < ASYM_IDLE_BELOW || app->seen != now;
}

static void say_idle(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE], name[NAME], span[SPAN];
    const asym_usec seen = e->of_program ? seen_of(e) : e->app->seen;
    if (e->now < seen + ASYM_SEC)
        snprintf(buf, sizeof buf, "%s is idle.", name_app(e->app, name));
    else
        snprintf(buf, sizeof buf, "%s is idle: it has not needed a CPU for %s.", name_app(e->app, name),
                 span_of(seen, e->now, span));
    say(ctx, buf);
}

/* In whole threads, but near the limit a whole number could seem to be on its other side. */
static void add_count(const struct asym_explanation *e, struct asym_text *t)
{
    const struct asym_engine_config *config = e->context.config;
    const double runnable = e->app->runnable;
    const unsigned limit = asym_hp_threshold(&config->classify, e->context.machine);
    const long n = lround(runnable);
    const bool is_above = e->app->class == ASYM_CLASS_HP && e->app->class_by == ASYM_CLASS_BY_COUNT &&
                          runnable > (double)limit;
    if (is_above)
        asym_text_add(t, ": it has %.*f runnable threads, more than the limit of %u.",
                      fabs(runnable - (double)n) < 0.05 ? 0 : 1, runnable, limit);
    else if (n == 0)
        asym_text_add(t, ": it needs %.0f %% of a CPU.", 100 * runnable);
    else
        asym_text_add(t, ": it has %ld runnable thread%s.", n, n == 1 ? "" : "s");
}

static void say_class(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE], name[NAME];
    if (is_idle(e->app, e->now)) {
        say_idle(e, say, ctx);
        return;
    }
    struct asym_text t = asym_text_in(buf, sizeof buf);
    const struct asym_monitor_app *app = e->app;
    asym_text_add(&t, "%s is ", name_app(app, name));
    if (is_background(app)) {
        asym_text_add(&t, "in the background: all its runnable threads have nice value %u or more.",
                      e->context.config->classify.background_nice);
    } else if (app->has_sp) {
        asym_text_add(&t, "in a serial phase: one of its threads runs alone.");
    } else {
        asym_text_add(&t, "%s", asym_explain_class_name(app));
        add_count(e, &t);
    }
    say(ctx, buf);
}

static void add_holder(struct asym_text *t, const struct asym_monitor_app *app)
{
    char name[NAME];
    const long n = lround(app->runnable);
    asym_text_add(t, "%s", name_app(app, name));
    if (n > 1)
        asym_text_add(t, ", which has %ld runnable threads", n);
}

/* A thread that may use slow CPUs only would gain nothing if another program stopped. */
static bool is_without_fast_cpu(const struct asym_explanation *e)
{
    return e->standing == ASYM_STANDING_STEERED_SLOW && e->n_holders > 0 && asym_explain_may_be_fast(e);
}

/* For example after taskset, and asymctl adopt. */
static void say_own_affinity(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    const struct asym_mask *own = e->context.own_mask;
    char buf[SENTENCE];
    if (e->standing != ASYM_STANDING_STEERED_SLOW || !own || asym_mask_meets(own, &e->context.machine->fast))
        return;
    snprintf(buf, sizeof buf, "The %s's own affinity leaves out all fast CPUs.", e->of_program ? "program" : "thread");
    say(ctx, buf);
}

static void say_own_fast_cpus(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE];
    if (!is_without_fast_cpu(e) || e->n_own_fast == 0)
        return;
    snprintf(buf, sizeof buf, "Threads of this program have %u of the %u fast CPUs.", e->n_own_fast, e->n_fast_cpus);
    say(ctx, buf);
}

/* Returns whether threads of this program and of another one have the same fast CPU as their target. */
static bool shares_fast_cpus(const struct asym_explanation *e)
{
    return e->n_own_fast + e->n_held_fast > e->n_fast_cpus - e->n_free_fast;
}

/* The other programs that have fast CPUs. */
static void say_holders(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE];
    struct asym_text t = asym_text_in(buf, sizeof buf);
    const size_t n = ASYM_MIN(e->n_holders, (size_t)ASYM_EXPLAIN_HOLDERS);
    static const struct {
        const char *one, *many, *next;
    } words[] = {{"belongs to", "belong to", " to "}, {"has threads of", "have threads of", " of "}}, *w;
    w = &words[shares_fast_cpus(e)];
    if (!is_without_fast_cpu(e))
        return;
    if (e->n_held_fast < e->n_fast_cpus)
        asym_text_add(&t, "%u of the %u fast CPUs %s ", e->n_held_fast, e->n_fast_cpus,
                      e->n_held_fast == 1 ? w->one : w->many);
    else if (e->n_fast_cpus == 1)
        asym_text_add(&t, "The only fast CPU %s ", w->one);
    else
        asym_text_add(&t, "The %u fast CPUs %s ", e->n_fast_cpus, w->many);
    for (size_t i = 0; i < n; i++) {
        /* A clause on the runnable threads ends in a comma. */
        if (i > 0)
            asym_text_add(&t, "%s%s",
                          i + 1 < e->n_holders                      ? ","
                          : lround(e->holders[i - 1]->runnable) > 1 ? ", and"
                                                                    : " and",
                          w->next);
        add_holder(&t, e->holders[i]);
    }
    if (e->n_holders > n)
        asym_text_add(&t, ", and%s%zu more program%s", w->next, e->n_holders - n, e->n_holders - n == 1 ? "" : "s");
    /* hidepid: the caller may not see the other ones. */
    asym_text_add(&t, e->hides_holders ? " and%sothers." : ".", w->next);
    say(ctx, buf);
}

/* Both programs have their names here: "it" could be either, or a CPU. */
static void say_if_holder_stopped(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE], holder[NAME], name[NAME];
    const long without = lround(e->app->runnable) - (long)e->n_own_fast;
    const long n = ASYM_MIN(without, (long)e->n_held_fast);
    if (!is_without_fast_cpu(e) || e->n_holders != 1 || e->hides_holders || e->n_free_fast > 0 || shares_fast_cpus(e) ||
        n < 1)
        return;
    snprintf(buf, sizeof buf, "If %s stopped, %ld%s thread%s of %s could use %s.", name_app(e->holders[0], holder), n,
             e->n_own_fast > 0 ? " more" : "", n == 1 ? "" : "s", name_app(e->app, name),
             n == 1 ? "a fast CPU" : "fast CPUs");
    say(ctx, buf);
}

static void say_program(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    if (!e->app)
        return;
    say_class(e, say, ctx);
    say_own_affinity(e, say, ctx);
    say_own_fast_cpus(e, say, ctx);
    say_holders(e, say, ctx);
    say_if_holder_stopped(e, say, ctx);
    char buf[SENTENCE];
    if (asym_explain_rule(e, buf, sizeof buf))
        say(ctx, buf);
}

/* Returns whether the reason says how many threads run, as the sentence on the class does. */
static bool is_reason_of_class(const struct asym_explanation *e)
{
    static const char many[] = "highly parallel:";
    return e->app && e->app->class == ASYM_CLASS_HP && e->app->class_by == ASYM_CLASS_BY_COUNT && !e->app->has_sp &&
           !is_idle(e->app, e->now) && strncmp(e->reason->text, many, strlen(many)) == 0;
}

/* Returns whether an earlier sentence has given the reason: that on the class, on the rule, or on the pause. */
static bool has_said_reason(const struct asym_explanation *e)
{
    if (is_reason_of_class(e))
        return true;
    return (e->reason == asym_why(ASYM_WHY_RULE_IGNORE) && asym_explain_user_ignores(e)) ||
           (e->reason == asym_why(ASYM_WHY_PAUSED) && e->context.paused);
}

/* The reason for the CPU of a thread that sleeps does not count any more. */
static void say_sleep(const struct asym_explanation *e, const char *subject, say_fn *say, void *ctx)
{
    char buf[SENTENCE], span[SPAN];
    /* The sentence on the program has said it. */
    if (e->app && is_idle(e->app, e->now) && (e->of_program || seen_of(e) == e->app->seen))
        return;
    if (seen_of(e) == e->now)
        asym_explain_reason(asym_why(ASYM_WHY_IDLE), (double[2]){0}, subject, buf, sizeof buf);
    else
        snprintf(buf, sizeof buf, "%s has not needed a CPU for %s.", subject, span_of(seen_of(e), e->now, span));
    say(ctx, buf);
}

static void say_reason(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE], name[NAME];
    if (!e->reason || has_said_reason(e))
        return;
    const char *subject = e->thread ? name_task(e->thread->comm, e->thread->id.tid, name) : name_app(e->app, name);
    if (e->standing == ASYM_STANDING_IDLE)
        say_sleep(e, subject, say, ctx);
    else
        say(ctx, asym_explain_reason(e->reason, e->figure, subject, buf, sizeof buf));
}

static void say_place(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    static const char *const kinds[] = {
        [ASYM_STANDING_STEERED_FAST] = "a fast CPU",
        [ASYM_STANDING_STEERED_SLOW] = "a slow CPU",
        [ASYM_STANDING_STEERED] = "a CPU like all others",
    };
    char buf[SENTENCE], name[NAME];
    if (e->standing > ASYM_STANDING_STEERED)
        return;
    struct asym_text t = asym_text_in(buf, sizeof buf);
    /* The thread that ran most stands for an application of many. */
    const bool is_one = e->app && e->app->n_threads > 1;
    asym_text_add(&t, "asymd has given the thread %s%sCPU %d, %s",
                  is_one ? name_task(e->thread->comm, e->thread->id.tid, name) : "", is_one ? " " : "",
                  (int)e->thread->target, kinds[e->standing]);
    if (e->thread->cpu != e->thread->target)
        asym_text_add(&t, "; it ran last on CPU %d", (int)e->thread->cpu);
    asym_text_add(&t, ".");
    say(ctx, buf);
}

/* Tells the user how to end an exclusion. The texts take the PID, and the PID only. */
static const struct {
    enum asym_exclusion why;
    const char *advice;
} advices[] = {
    {ASYM_WHY_FOREIGN, "The thread itself or another program changed the affinity: asymd cannot know which. "
                       "To have the thread steered again: asymctl adopt %d."},
    {ASYM_WHY_FOREIGN_NICE, "The thread itself or another program changed the nice value: asymd cannot know which. "
                            "To have the thread steered again: asymctl adopt %d."},
    {ASYM_WHY_DENIED, "To have asymd try again: asymctl adopt %d."},
    {ASYM_WHY_OWN_MASK, "The thread itself or the program that started the thread set this affinity. "
                        "To have the thread steered within this affinity: asymctl adopt %d."},
    {ASYM_WHY_RULE_IGNORE, "To have the program steered until the program ends: asymctl set %d steer."},
    {ASYM_WHY_OUTSIDE, "asymd was started with --pid, for other processes only."},
};

static void say_left_alone(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE], span[SPAN];
    const int32_t pid = e->thread ? e->thread->id.tgid : e->app->id.tid;
    if (e->standing != ASYM_STANDING_LEFT_ALONE || has_said_reason(e))
        return;
    if (e->reason_since > 0) {
        snprintf(buf, sizeof buf, "asymd has left the thread alone for %s.", span_of(e->reason_since, e->now, span));
        say(ctx, buf);
    }
    for (size_t i = 0; i < ASYM_LENGTH(advices); i++) {
        if (e->reason != asym_why(advices[i].why))
            continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(buf, sizeof buf, advices[i].advice, (int)pid);
#pragma GCC diagnostic pop
        say(ctx, buf);
    }
}

/* The question was about the program, and the answer so far is about the thread that ran most. */
static void say_others_left_alone(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE], why[160];
    const bool also = e->standing == ASYM_STANDING_LEFT_ALONE;
    const struct asym_monitor_thread *t = e->left_alone;
    if (e->n_left_alone == 0)
        return;
    /* The question about its number is the one about the program. */
    if (t->id.tid == t->id.tgid)
        snprintf(buf, sizeof buf,
                 "asymd leaves the main thread of this program alone%s (%s). To have that thread steered again: "
                 "asymctl adopt %d.",
                 also ? ", too" : "", asym_reason_text(t->reason, t->figure, why, sizeof why), (int)t->id.tgid);
    else
        snprintf(buf, sizeof buf, "asymd leaves %u %sthread%s of this program alone%s: asymctl why %d says why.",
                 e->n_left_alone, also ? "more " : "", e->n_left_alone == 1 ? "" : "s", also ? ", too" : "",
                 (int)t->id.tid);
    say(ctx, buf);
}

static void say_rest(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    char buf[SENTENCE];
    if (!e->app || e->standing > ASYM_STANDING_STEERED_SLOW)
        return;
    struct asym_text t = asym_text_in(buf, sizeof buf);
    asym_text_add(&t, "In the last minute the program spent %.0f %% of its running time on fast CPUs, and asymd ",
                  100 * e->app->fast_share);
    if (e->app->moves == 0)
        asym_text_add(&t, "moved none of its threads.");
    else
        asym_text_add(&t, "gave its threads another CPU %u time%s.", e->app->moves, e->app->moves == 1 ? "" : "s");
    say(ctx, buf);
}

void asym_explain_sentences(const struct asym_explanation *e, say_fn *say, void *ctx)
{
    say_program(e, say, ctx);
    if (e->context.paused)
        say(ctx, "asymd is paused: it has restored all masks and nice values, and steers nothing. To end the pause: "
                 "asymctl resume.");
    say_reason(e, say, ctx);
    say_place(e, say, ctx);
    say_left_alone(e, say, ctx);
    say_others_left_alone(e, say, ctx);
    say_rest(e, say, ctx);
}

static void append_sentence(void *ctx, const char *sentence)
{
    struct asym_text *text = ctx;
    asym_text_add(text, "%s%s", text->used > 0 ? " " : "", sentence);
}

const char *asym_explain_summary(const struct asym_explanation *e, char *buf, size_t size)
{
    struct asym_text text = asym_text_in(buf, size);
    if (e->app)
        say_class(e, append_sentence, &text);
    say_reason(e, append_sentence, &text);
    return buf;
}

/* Evidence */

struct table {
    show_fn *show;
    void *ctx;
};

static void row(struct table *t, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void row(struct table *t, const char *name, const char *format, ...)
{
    char value[512];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    t->show(t->ctx, name, value);
}

static void show_app(struct table *t, const struct asym_explanation *e)
{
    const struct asym_monitor_app *a = e->app;
    char name[NAME], span[SPAN];
    row(t, "program", "%s", name_app(a, name));
    if (a->seen != e->now)
        row(t, "age of the figures", "%s: the program has been idle since", span_of(a->seen, e->now, span));
    if (a->n_procs > 1)
        row(t, "runnable threads", "%.2f of %u in %u processes", a->runnable, a->n_threads, a->n_procs);
    else
        row(t, "runnable threads", "%.2f of %u", a->runnable, a->n_threads);
    row(t, "class", "%s, for %s", asym_explain_class_name(a), span_of(a->class_since, e->now, span));
    row(t, "threads steered", "%u, %u of them to fast CPUs", a->n_steered, a->n_fast);
    row(t, "CPUs used", "%.2f", a->running);
    row(t, "time on fast CPUs", "%.0f %% in the last minute", 100 * a->fast_share);
    if (a->n_threads > 1)
        row(t, "sequential part", "about %.0f %% of its active time in the last minute", 100 * a->sequential_share);
    row(t, "moves", "%u in the last minute", a->moves);
    row(t, "reports its threads", "%s", a->uses_rtx ? "yes (RTX)" : "no");
}

static void show_thread(struct table *t, const struct asym_explanation *e)
{
    const struct asym_monitor_thread *thread = e->thread;
    char name[NAME], span[SPAN], list[ASYM_MASK_LIST_MAX], text[256];
    row(t, "thread", "%s", name_task(thread->comm, thread->id.tid, name));
    if (thread->class == ASYM_CLASS_SP)
        row(t, "serial phase", "for %s", span_of(thread->class_since, e->now, span));
    row(t, "runnable, running", "%.2f, %.2f of the last interval", thread->runnable, thread->running);
    if (thread->target >= 0)
        row(t, "given CPU", "%d%s", (int)thread->target, thread->exclusive ? ", to itself" : "");
    row(t, "ran last on CPU", "%d", (int)thread->cpu);
    asym_reason_text(e->reason, e->figure, text, sizeof text);
    if (e->reason_since > 0)
        row(t, "reason", "%s (for %s)", text, span_of(e->reason_since, e->now, span));
    else
        row(t, "reason", "%s", text);
    if (e->context.mask)
        row(t, "nice value", "%d; without asymd %d", e->context.nice, e->context.own_nice);
    if (e->context.mask)
        row(t, "affinity", "%s", asym_mask_format_list(e->context.mask, list, sizeof list));
    if (e->context.own_mask)
        row(t, "affinity of its own", "%s", asym_mask_format_list(e->context.own_mask, list, sizeof list));
    if (e->context.proc && e->context.proc->adopted)
        row(t, "adopted", "yes");
}

void asym_explain_evidence(const struct asym_explanation *e, show_fn *show, void *ctx)
{
    const struct asym_engine_config *config = e->context.config;
    struct table t = {show, ctx};
    char list[ASYM_MASK_LIST_MAX], rule[256];
    if (e->app)
        show_app(&t, e);
    if (e->thread)
        show_thread(&t, e);
    row(&t, "rule", "%s", asym_explain_rule_evidence(e, rule, sizeof rule));
    row(&t, "policy", "%s", config->policy->name);
    row(&t, "serial", "up to %u runnable", config->classify.serial_max_threads);
    row(&t, "highly parallel", "more than %u runnable", asym_hp_threshold(&config->classify, e->context.machine));
    if (config->classify.background_nice > 0)
        row(&t, "background", "from nice value %u", config->classify.background_nice);
    row(&t, "threads are counted", "%s",
        config->classify.estimator == ASYM_ESTIMATOR_MEAN ? "as the mean over the interval" : "at the sample");
    row(&t, "fast CPUs", "%s; without a thread: %u of %u",
        asym_mask_format_list(&e->context.machine->fast, list, sizeof list), e->n_free_fast, e->n_fast_cpus);
}
