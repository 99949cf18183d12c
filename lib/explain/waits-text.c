/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "explain/waits-text.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/macro.h"
#include "base/text.h"
#include "explain/explain-text.h"

/* The most sentences, and the most things in one that a thread has waited for. */
enum { SENTENCES = 6, PARTS = 4, KINDS = 4, SENTENCE = 768, SECONDS = 24 };

typedef int say_fn(void *ctx, const char *sentence);

struct part {
    asym_usec time;
    const char *text;
};

static const char *seconds(asym_usec time, char buf[SECONDS])
{
    const double s = (double)time / (double)ASYM_SEC;
    snprintf(buf, SECONDS, "%.*f", s < 1 ? 2 : 1, s);
    return buf;
}

/* Insert the part by its time, the longest first. Returns the new number of parts. */
static size_t insert(struct part *parts, size_t n, const struct part *part, asym_usec least)
{
    size_t i = n;
    if (part->time < least)
        return n;
    for (; i > 0 && parts[i - 1].time < part->time; i--)
        parts[i] = parts[i - 1];
    parts[i] = *part;
    return n + 1;
}

static asym_usec least_of(const struct asym_explain_waits *w)
{
    return (asym_usec)((double)w->measured * ASYM_EXPLAIN_WAITS_LEAST);
}

/* The things that a thread has waited for, the longest wait first. */
struct parts {
    struct part part[ASYM_EXPLAIN_WAITS_FOR + KINDS];
    size_t n;
    char names[ASYM_EXPLAIN_WAITS_FOR][ASYM_EXPLAIN_NAME];
};

static void find_parts(const struct asym_explain_wait *t, asym_usec least, struct parts *ret)
{
    const struct part kinds[KINDS] = {
        {t->kernel, "a timer, a device or the kernel"},
        {t->outside, "other programs"},
        {t->rest, "other threads of the program"},
        {t->asleep, "something that has not come yet"},
    };
    ret->n = 0;
    for (size_t i = 0; i < t->n; i++) {
        asym_explain_task(t->waits[i].comm, t->waits[i].tid, ret->names[i]);
        ret->n = insert(ret->part, ret->n, &(struct part){t->waits[i].time, ret->names[i]}, least);
    }
    for (size_t i = 0; i < KINDS; i++)
        ret->n = insert(ret->part, ret->n, &kinds[i], least);
}

/* "render (12) waited 4.5 of 8.0 s for gamelogic (13) and 1.1 s for other programs." */
static int say_wait(const struct asym_explain_waits *w, const struct asym_explain_wait *t, say_fn *say, void *ctx)
{
    struct parts parts;
    char name[ASYM_EXPLAIN_NAME], buf[SENTENCE], s[SECONDS], all[SECONDS];
    struct asym_text text = asym_text_in(buf, sizeof buf);
    find_parts(t, least_of(w), &parts);
    const size_t n = ASYM_MIN(parts.n, (size_t)PARTS);
    asym_explain_task(t->comm, t->tid, name);
    seconds(w->measured, all);
    if (n == 0)
        asym_text_add(&text, "%s slept for %s of %s s, and waited for no thread", name, seconds(t->slept, s), all);
    for (size_t i = 0; i < n; i++) {
        seconds(parts.part[i].time, s);
        if (i == 0)
            asym_text_add(&text, "%s waited %s of %s s for %s", name, s, all, parts.part[i].text);
        else
            asym_text_add(&text, "%s %s s for %s", i + 1 < n ? "," : " and", s, parts.part[i].text);
    }
    asym_text_add(&text, ".");
    return say(ctx, buf);
}

asym_usec asym_explain_waited(const struct asym_explain_wait *wait)
{
    asym_usec sum = wait->rest;
    for (size_t i = 0; i < wait->n; i++)
        sum += wait->waits[i].time;
    return sum;
}

/* Returns whether a sentence on the thread answers the question: its longest wait, or that for the thread of the question. */
static bool is_relevant(const struct asym_explain_waits *w, const struct asym_explain_wait *t)
{
    if (w->tid == 0)
        return asym_explain_waited(t) > 0 && asym_explain_waited(t) >= least_of(w);
    for (size_t i = 0; i < t->n; i++)
        if (t->waits[i].tid == w->tid && t->waits[i].time > 0 && t->waits[i].time >= least_of(w))
            return true;
    return false;
}

static int say_more(const struct asym_explain_waits *w, size_t n, say_fn *say, void *ctx)
{
    char buf[SENTENCE], all[SECONDS];
    if (n == 0)
        snprintf(buf, sizeof buf, "No %sthread of the program waited for %s for more than %.0f %% of %s s.",
                 w->tid ? "other " : "", w->tid ? "this one" : "another one", 100 * ASYM_EXPLAIN_WAITS_LEAST,
                 seconds(w->measured, all));
    else if (n > SENTENCES)
        snprintf(buf, sizeof buf, "%zu more threads waited for %s.", n - SENTENCES,
                 w->tid ? "this one" : "another one");
    else
        return 0;
    return say(ctx, buf);
}

int asym_explain_waits(const struct asym_explain_waits *w, say_fn *say, void *ctx)
{
    size_t n = 0;
    int r = 0;
    for (size_t i = 0; r >= 0 && w->tid && i < w->n; i++)
        if (w->list[i].tid == w->tid)
            r = say_wait(w, &w->list[i], say, ctx);
    for (size_t i = 0; r >= 0 && i < w->n; i++)
        if (w->list[i].tid != w->tid && is_relevant(w, &w->list[i]) && n++ < SENTENCES)
            r = say_wait(w, &w->list[i], say, ctx);
    if (r >= 0)
        r = say_more(w, n, say, ctx);
    return r < 0 ? r : 0;
}
