/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymd/bus-waits.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "daemon/asymd/service-internal.h"
#include "explain/waits-text.h"
#include "linux/observe/proc-owner.h"
#include "linux/observe/waits-kernel.h"
#include "linux/sys/thread.h"
#include "report/json.h"

/* A shorter measurement says nothing. */
#define MEASURED_LEAST (200 * ASYM_MSEC)

/* The threads of an application that have waited most for others, and the one that the user asks about. */
struct most {
    int32_t tid; /* 0: the user asks about the program */
    struct asym_waits_thread thread[ASYM_BUS_WAITS], asked;
    size_t n;
};

/* Those of them that the caller may see. */
struct waits {
    struct asym_service *s;
    const struct asym_bus_caller *caller;
    int32_t tid;
    struct asym_explain_wait list[ASYM_BUS_WAITS + 1];
    size_t n;
};

static uint64_t waited_ns(const struct asym_waits_thread *t)
{
    uint64_t sum = t->rest_ns;
    for (size_t i = 0; i < t->n; i++)
        sum += t->waits[i].ns;
    return sum;
}

_Static_assert((int)ASYM_WAITS_PAIRS <= (int)ASYM_EXPLAIN_WAITS_FOR, "a thread's wakers fit into its report");

static void note(void *ctx, const struct asym_waits_thread *t)
{
    struct most *m = ctx;
    size_t i = ASYM_MIN(m->n, (size_t)ASYM_BUS_WAITS - 1);
    if (t->tid == m->tid) {
        m->asked = *t;
        return;
    }
    if (m->n == ASYM_BUS_WAITS && waited_ns(&m->thread[i]) >= waited_ns(t))
        return;
    for (; i > 0 && waited_ns(&m->thread[i - 1]) < waited_ns(t); i--)
        m->thread[i] = m->thread[i - 1];
    m->thread[i] = *t;
    m->n = ASYM_MIN(m->n + 1, (size_t)ASYM_BUS_WAITS);
}

static bool is_own(const struct asym_service *s, const struct asym_bus_caller *caller, int32_t pid)
{
    uint32_t uid;
    return caller->is_root ||
           (pid > 0 && asym_proc_owner(&s->run->root, pid, &uid) >= 0 && uid == (uint32_t)caller->uid);
}

/* A thread that waits for others seldom runs, so the monitor need not know it. */
static void read_comm(const struct asym_service *s, int32_t pid, int32_t tid, char ret[ASYM_COMM_LEN])
{
    struct asym_stat stat;
    const struct asym_monitor_thread *t = asym_monitor_thread_of(s->control.monitor, tid);
    const char *comm = t ? t->comm : pid > 0 && asym_thread_get_stat(pid, tid, &stat) >= 0 ? stat.comm : "";
    memcpy(ret, comm, *comm ? ASYM_COMM_LEN : 1);
}

static void add_waited_for(const struct waits *w, const struct asym_waits_for *f, struct asym_explain_wait *wait)
{
    size_t i = wait->n++;
    for (; i > 0 && wait->waits[i - 1].time < f->ns / 1000; i--)
        wait->waits[i] = wait->waits[i - 1];
    wait->waits[i] = (struct asym_explain_waited_for){.tid = f->tid, .time = f->ns / 1000};
    read_comm(w->s, f->tgid, f->tid, wait->waits[i].comm);
}

static struct asym_explain_wait wait_of(const struct waits *w, const struct asym_waits_thread *t)
{
    struct asym_explain_wait wait = {
        .tid = t->tid,
        .pid = t->tgid,
        .slept = t->slept_ns / 1000,
        .kernel = t->kernel_ns / 1000,
        .outside = t->outside_ns / 1000,
        .rest = t->rest_ns / 1000,
        .asleep = t->asleep_ns / 1000,
    };
    read_comm(w->s, t->tgid, t->tid, wait.comm);
    for (size_t i = 0; i < t->n; i++)
        if (t->waits[i].tgid == t->tgid || is_own(w->s, w->caller, t->waits[i].tgid))
            add_waited_for(w, &t->waits[i], &wait);
        else
            wait.rest += t->waits[i].ns / 1000;
    return wait;
}

/* Only here it costs system calls: the name of a thread, and the user of its process. */
static void add_wait(struct waits *w, const struct asym_waits_thread *t)
{
    if (t->tid > 0 && is_own(w->s, w->caller, t->tgid))
        w->list[w->n++] = wait_of(w, t);
}

static json_t *wait_json(const struct asym_explain_wait *wait)
{
    json_t *list = json_array();
    for (size_t i = 0; i < wait->n; i++)
        asym_json_append(&list,
                         json_pack("{s:i, s:o, s:I}", "tid", (int)wait->waits[i].tid, "comm",
                                   asym_json_text(wait->waits[i].comm), "time_us", (json_int_t)wait->waits[i].time));
    return json_pack("{s:i, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "tid", (int)wait->tid, "pid", (int)wait->pid,
                     "comm", asym_json_text(wait->comm), "slept_us", (json_int_t)wait->slept, "kernel_us",
                     (json_int_t)wait->kernel, "outside_us", (json_int_t)wait->outside, "other_us",
                     (json_int_t)wait->rest, "asleep_us", (json_int_t)wait->asleep, "waits_for", list);
}

static int add_sentence(void *ctx, const char *sentence)
{
    json_t **list = ctx;
    asym_json_append(list, asym_json_text(sentence));
    return 0;
}

static json_t *report(json_t *sentences, const struct waits *w, asym_usec measured, bool is_measuring)
{
    json_t *threads = json_array();
    for (size_t i = 0; w && i < w->n; i++)
        asym_json_append(&threads, wait_json(&w->list[i]));
    return json_pack("{s:s, s:b, s:I, s:o, s:o}", "schema", "asymd.waits/1", "measuring", (int)is_measuring,
                     "measured_us", (json_int_t)measured, "sentences", sentences, "threads", threads);
}

static json_t *unknown(const char *why)
{
    char buf[512];
    json_t *sentences = json_array();
    snprintf(buf, sizeof buf, "Who waits for whom is not known: %s.", why);
    add_sentence(&sentences, buf);
    return report(sentences, NULL, 0, false);
}

static json_t *measured(const struct waits *w, asym_usec time)
{
    const struct asym_explain_waits e = {.measured = time, .tid = w->tid, .list = w->list, .n = w->n};
    json_t *sentences = json_array();
    if (time < MEASURED_LEAST)
        add_sentence(&sentences, "asymd measures from now on who waits for whom: ask again in a few seconds.");
    else
        asym_explain_waits(&e, add_sentence, &sentences);
    return report(sentences, w, time, true);
}

static bool may_ask(const struct asym_service *s, const struct asym_bus_caller *caller,
                    const struct asym_explanation *e)
{
    return is_own(s, caller, e->thread ? e->thread->id.tgid : e->app->busiest.tgid);
}

json_t *asym_bus_waits(struct asym_service *s, const struct asym_bus_caller *caller, const struct asym_explanation *e,
                       int32_t id, asym_usec now)
{
    struct waits w = {.s = s, .caller = caller, .tid = e->of_program ? 0 : id};
    struct most most = {.tid = w.tid};
    struct asym_error err;
    if (!e->app || e->app->n_threads < 2)
        return report(json_array(), NULL, 0, false);
    if (!may_ask(s, caller, e))
        return unknown("only root and the user of a program can ask that");
    const int number = asym_service_waits_ask(s, &e->app->id, now, &err);
    if (number < 0)
        return unknown(err.text);
    asym_waits_each(s->waits.kernel, (uint32_t)number, note, &most);
    add_wait(&w, &most.asked);
    for (size_t i = 0; i < most.n; i++)
        add_wait(&w, &most.thread[i]);
    return measured(&w, now - s->waits.begun);
}
