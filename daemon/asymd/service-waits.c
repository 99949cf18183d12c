/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report on who waits for whom. The BPF program of waits-kernel.h measures it while users ask. It stays loaded after the first
 * question, because a load takes much longer than to attach it.
 */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <string.h>

#include "base/macro.h"
#include "base/text.h"
#include "linux/observe/bpf.h"
#include "linux/observe/waits-kernel.h"
#include "linux/sys/thread.h"
#include "report/json.h"

/* A client asks twice: asymctl lets 2 s pass in between. */
#define UNASKED_MOST (5 * ASYM_SEC)

/* A longer measurement would say what was long ago, and a shorter one nothing. */
#define WINDOW_MOST  (10 * ASYM_SEC)
#define WINDOW_LEAST (200 * ASYM_MSEC)

/* A wait that is a shorter part of the measured time has no sentence. */
#define WAIT_LEAST 0.02

/* The most threads of a report, each of which costs system calls; sentences; and things in one that a thread has waited for. */
enum { THREADS = 16, SENTENCES = 6, PARTS = 4, KINDS = 4, NAME = 128, SECONDS = 24 };

/* Returns the number of the application for asym_waits_each; -errno with err. */
static int ask(struct asym_service *s, const struct asym_taskid *app, asym_usec now, struct asym_error *err)
{
    struct asym_service_waits *w = &s->waits;
    const uint32_t number = s->phases.bpf ? asym_bpf_number(s->phases.bpf, app) : 0;
    if (!s->phases.bpf)
        return asym_fail(err, -EOPNOTSUPP, "asymd observes without BPF programs (asymd --check says why)");
    if (number == 0)
        return asym_fail(err, -ESRCH,
                         "the BPF programs of asymd do not follow this program now, because it has not run for a "
                         "while, changes its state too often, is not steered, or found no place");
    if (w->refused < 0)
        return asym_fail(err, w->refused, "the kernel does not load the BPF program for that (%s)",
                         strerror(-w->refused));
    int r = w->kernel ? 0 : asym_waits_open(asym_bpf_kernel(s->phases.bpf), &w->kernel, err);
    if (r >= 0 && (w->begun == 0 || now - w->begun > WINDOW_MOST)) {
        r = asym_waits_start(w->kernel, err);
        w->begun = now;
    }
    if (r < 0) {
        asym_service_waits_close(s);
        w->refused = r == -ENOMEM || r == -EMFILE ? 0 : r;
        return r;
    }
    w->asked = now;
    return (int)number;
}

void asym_service_waits_housekeeping(struct asym_service *s, asym_usec now)
{
    if (s->waits.begun == 0 || now - s->waits.asked <= UNASKED_MOST)
        return;
    asym_waits_stop(s->waits.kernel);
    s->waits.begun = 0;
}

void asym_service_waits_close(struct asym_service *s)
{
    if (s->waits.kernel)
        asym_waits_close(s->waits.kernel);
    s->waits = (struct asym_service_waits){.kernel = NULL};
}

/* The thread that the user asks about, and the others that have waited most for threads of the program. */
struct most {
    int32_t tid; /* 0: the user asks about the program */
    struct asym_waits_thread thread[1 + THREADS];
    size_t n; /* with the first place, which may be empty */
};

static uint64_t waited_ns(const struct asym_waits_thread *t)
{
    uint64_t sum = t->rest_ns;
    for (size_t i = 0; i < t->n; i++)
        sum += t->waits[i].ns;
    return sum;
}

static void note(void *ctx, const struct asym_waits_thread *t)
{
    struct most *m = ctx;
    size_t i = ASYM_MIN(m->n, (size_t)THREADS);
    if (t->tid == m->tid) {
        m->thread[0] = *t;
        return;
    }
    if (m->n > THREADS && waited_ns(&m->thread[i]) >= waited_ns(t))
        return;
    for (; i > 1 && waited_ns(&m->thread[i - 1]) < waited_ns(t); i--)
        m->thread[i] = m->thread[i - 1];
    m->thread[i] = *t;
    m->n = ASYM_MIN(m->n + 1, (size_t)THREADS + 1);
}

static bool is_own(const struct asym_service *s, const struct asym_bus_caller *caller, int32_t pid)
{
    uint32_t uid;
    return caller->is_root ||
           (pid > 0 && asym_proc_owner(&s->run->root, pid, &uid) >= 0 && uid == (uint32_t)caller->uid);
}

/* A thread that waits for others seldom runs, so the monitor need not know it. */
static json_t *comm_json(const struct asym_service *s, int32_t pid, int32_t tid)
{
    struct asym_stat stat = {.comm = ""};
    const struct asym_monitor_thread *t = asym_monitor_thread_of(s->control.monitor, tid);
    if (!t && pid > 0)
        asym_thread_get_stat(pid, tid, &stat);
    return asym_json_text(t ? t->comm : stat.comm);
}

static json_int_t us(uint64_t ns)
{
    return (json_int_t)(ns / 1000);
}

/* Puts the longest wait first. What the caller may not see is among the rest. Returns their list. */
static json_t *sort_waits(const struct asym_service *s, const struct asym_bus_caller *caller,
                          struct asym_waits_thread *t)
{
    json_t *list = json_array();
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct asym_waits_for f = t->waits[i];
        size_t at = n;
        if (f.tgid != t->tgid && !is_own(s, caller, f.tgid)) {
            t->rest_ns += f.ns;
            continue;
        }
        for (; at > 0 && t->waits[at - 1].ns < f.ns; at--)
            t->waits[at] = t->waits[at - 1];
        t->waits[at] = f;
        n++;
    }
    for (size_t i = 0; i < n; i++)
        asym_json_append(&list,
                         json_pack("{s:i, s:o, s:I}", "tid", (int)t->waits[i].tid, "comm",
                                   comm_json(s, t->waits[i].tgid, t->waits[i].tid), "time_us", us(t->waits[i].ns)));
    return list;
}

/* Only here a thread costs system calls: its name, and the user of its process. */
static void add_thread(json_t **list, const struct asym_service *s, const struct asym_bus_caller *caller,
                       struct asym_waits_thread *t)
{
    if (t->tid == 0 || !is_own(s, caller, t->tgid))
        return;
    json_t *waits = sort_waits(s, caller, t);
    asym_json_append(list, json_pack("{s:i, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "tid", (int)t->tid, "pid",
                                     (int)t->tgid, "comm", comm_json(s, t->tgid, t->tid), "slept_us", us(t->slept_ns),
                                     "kernel_us", us(t->kernel_ns), "outside_us", us(t->outside_ns), "other_us",
                                     us(t->rest_ns), "asleep_us", us(t->asleep_ns), "waits_for", waits));
}

static const char *seconds(double time, char buf[SECONDS])
{
    const double s = time / ASYM_SEC;
    snprintf(buf, SECONDS, "%.*f", s < 1 ? 2 : 1, s);
    return buf;
}

static const char *name_of(const json_t *thread, char buf[NAME])
{
    const char *comm = asym_json_get_text(thread, "comm");
    char shown[4 * ASYM_COMM_LEN + 1];
    snprintf(buf, NAME, "%s (%d)", *comm ? asym_text_show(comm, shown, sizeof shown) : "a program without a name",
             (int)asym_json_get_int(thread, "tid"));
    return buf;
}

/* A thing that a thread has waited for. */
struct part {
    double time;
    char text[NAME];
};

/* Inserts a part by its time, the longest first. Returns the new number of parts, PARTS at most. */
static size_t insert(struct part *parts, size_t n, const json_t *of, const char *key, const char *text, double least)
{
    struct part part = {.time = asym_json_get_number(of, key)};
    if (part.time < least || (n == PARTS && parts[n - 1].time >= part.time))
        return n;
    size_t i = ASYM_MIN(n, (size_t)PARTS - 1);
    snprintf(part.text, sizeof part.text, "%s", text);
    for (; i > 0 && parts[i - 1].time < part.time; i--)
        parts[i] = parts[i - 1];
    parts[i] = part;
    return ASYM_MIN(n + 1, (size_t)PARTS);
}

static size_t find_parts(const json_t *thread, double least, struct part ret[PARTS])
{
    static const struct {
        const char *key, *text;
    } kinds[KINDS] = {{"kernel_us", "a timer, a device or the kernel"},
                      {"outside_us", "other programs"},
                      {"other_us", "other threads of the program"},
                      {"asleep_us", "something that has not come yet"}};
    char name[NAME];
    json_t *other;
    size_t n = 0, i;
    json_array_foreach(json_object_get(thread, "waits_for"), i, other)
        n = insert(ret, n, other, "time_us", name_of(other, name), least);
    for (i = 0; i < KINDS; i++)
        n = insert(ret, n, thread, kinds[i].key, kinds[i].text, least);
    return n;
}

/* "render (12) waited 4.5 of 8.0 s for gamelogic (13) and 1.1 s for other programs." */
static void say_wait(json_t **sentences, const json_t *thread, double measured)
{
    struct part parts[PARTS];
    char name[NAME], buf[1024], s[SECONDS], all[SECONDS];
    struct asym_text text = asym_text_in(buf, sizeof buf);
    const size_t n = find_parts(thread, measured * WAIT_LEAST, parts);
    name_of(thread, name);
    seconds(measured, all);
    if (n == 0)
        asym_text_add(&text, "%s slept for %s of %s s, and waited for no thread", name,
                      seconds(asym_json_get_number(thread, "slept_us"), s), all);
    for (size_t i = 0; i < n; i++) {
        seconds(parts[i].time, s);
        if (i == 0)
            asym_text_add(&text, "%s waited %s of %s s for %s", name, s, all, parts[i].text);
        else
            asym_text_add(&text, "%s %s s for %s", i + 1 < n ? "," : " and", s, parts[i].text);
    }
    asym_text_add(&text, ".");
    asym_json_append(sentences, json_string(buf));
}

/* Returns the time for which a thread has waited for that one; 0: for any of its program. */
static double waited_for(const json_t *thread, int32_t tid)
{
    double sum = tid ? 0 : asym_json_get_number(thread, "other_us");
    json_t *other;
    size_t i;
    json_array_foreach(json_object_get(thread, "waits_for"), i,
                       other) if (!tid || asym_json_get_int(other, "tid") == tid)
        sum += asym_json_get_number(other, "time_us");
    return sum;
}

json_t *asym_service_waits_sentences(const json_t *threads, double measured, int32_t tid)
{
    json_t *sentences = json_array(), *thread;
    char buf[256], all[SECONDS];
    size_t n = 0, i;
    json_array_foreach(threads, i, thread) if (tid && asym_json_get_int(thread, "tid") == tid)
        say_wait(&sentences, thread, measured);
    json_array_foreach(threads, i, thread)
    {
        const double waited = waited_for(thread, tid);
        if (asym_json_get_int(thread, "tid") != tid && waited > 0 && waited >= measured * WAIT_LEAST && n++ < SENTENCES)
            say_wait(&sentences, thread, measured);
    }
    *buf = '\0';
    if (n == 0)
        snprintf(buf, sizeof buf, "No %sthread of the program waited for %s for more than %.0f %% of %s s.",
                 tid ? "other " : "", tid ? "this one" : "another one", 100 * WAIT_LEAST, seconds(measured, all));
    else if (n > SENTENCES)
        snprintf(buf, sizeof buf, "%zu more threads waited for %s.", n - SENTENCES, tid ? "this one" : "another one");
    if (*buf)
        asym_json_append(&sentences, json_string(buf));
    return sentences;
}

static json_t *report(json_t *threads, json_t *sentences, asym_usec measured, bool is_measuring)
{
    return json_pack("{s:s, s:b, s:I, s:o, s:o}", "schema", "asymd.waits/1", "measuring", (int)is_measuring,
                     "measured_us", (json_int_t)measured, "sentences", sentences, "threads", threads);
}

static json_t *unknown(const char *why)
{
    return report(json_array(), json_pack("[o]", json_sprintf("Who waits for whom is not known: %s.", why)), 0, false);
}

json_t *asym_service_waits(struct asym_service *s, const struct asym_bus_caller *caller,
                           const struct asym_explanation *e, int32_t id, asym_usec now)
{
    struct most most = {.tid = e->of_program ? 0 : id, .n = 1};
    struct asym_error err;
    if (!e->app || e->app->n_threads < 2)
        return report(json_array(), json_array(), 0, false);
    if (!is_own(s, caller, e->thread ? e->thread->id.tgid : e->app->busiest.tgid))
        return unknown("only root and the user of a program can ask that");
    const int number = ask(s, &e->app->id, now, &err);
    if (number < 0)
        return unknown(err.text);
    const asym_usec measured = now - s->waits.begun;
    json_t *threads = json_array();
    asym_waits_each(s->waits.kernel, (uint32_t)number, note, &most);
    for (size_t i = 0; i < most.n; i++)
        add_thread(&threads, s, caller, &most.thread[i]);
    return report(threads,
                  measured >= WINDOW_LEAST
                      ? asym_service_waits_sentences(threads, (double)measured, most.tid)
                      : json_pack("[s]", "asymd measures from now on who waits for whom: ask again in a few seconds."),
                  measured, true);
}
