/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "app/log-sink.h"
#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

/* Bytes of a message about a thread, and of any other. */
#define ASYM_LOG_MESSAGE 512
#define ASYM_LOG_LINE    2048

void asym_log_init(struct asym_log *log)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    unsigned long long device, inode;
    const bool is_journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                            fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
    log->sink = is_journal ? asym_log_sink_journal(ASYM_LOG_JOURNAL) : asym_log_sink_stderr();
    log->level = LOG_INFO;
    log->limit = calloc(1, sizeof *log->limit);
}

static bool is_dropped(const struct asym_log *log, int priority)
{
    return priority > log->level;
}

void asym_log_set_level(struct asym_log *log, int level)
{
    log->level = LOG_ERR + level;
}

/*
 * Returns NULL if the log may write the message; else the kind that keeps a short form of its text. A user who wants to see each
 * decision (debug) gets each.
 */
static struct asym_log_kind *limit(const struct asym_log *log, int priority, const void *kind)
{
    bool write = true;
    const bool limited = log->limit && priority != LOG_DEBUG;
    struct asym_log_kind *k = limited ? asym_log_limit_count(log->limit, kind, priority, asym_clock_now(), &write)
                                      : NULL;
    return write ? NULL : k;
}

void asym_log_never_wait(struct asym_log *log)
{
    asym_log_sink_never_wait(log->sink);
}

__attribute__((format(printf, 3, 0))) static void put(const struct asym_log *log, int priority, const char *format,
                                                      va_list args)
{
    char text[ASYM_LOG_LINE] = "MESSAGE=";
    const size_t key = strlen(text);
    vsnprintf(text + key, sizeof text - key, format, args);
    if (log->sink)
        asym_log_sink_put(log->sink, priority, &(struct iovec){text, strlen(text)}, 1);
    else
        fprintf(stderr, "asymd: %s\n", text + key);
}

__attribute__((format(printf, 3, 4))) static void put_text(const struct asym_log *log, int priority, const char *format,
                                                           ...)
{
    va_list args;
    va_start(args, format);
    put(log, priority, format, args);
    va_end(args);
}

void asym_log_say(const struct asym_log *log, int priority, const char *format, ...)
{
    va_list args;
    if (is_dropped(log, priority))
        return;
    /* The format "%s" is no kind: asymd uses it only at its start and its end. */
    struct asym_log_kind *over = strcmp(format, "%s") == 0 ? NULL : limit(log, priority, format);
    va_start(args, format);
    if (over)
        vsnprintf(over->last, sizeof over->last, format, args);
    else
        put(log, priority, format, args);
    va_end(args);
}

static void housekeeping(const struct asym_log *log, asym_usec now, bool final)
{
    unsigned n;
    const struct asym_log_kind *k;
    while (log->limit && (k = asym_log_limit_due(log->limit, now, final, &n)))
        put_text(log, k->priority, "%u more messages like this were left out in the last minute: %s", n, k->last);
}

void asym_log_housekeeping(const struct asym_log *log, asym_usec now)
{
    housekeeping(log, now, false);
    asym_log_sink_report(log->sink);
}

void asym_log_done(struct asym_log *log)
{
    housekeeping(log, asym_clock_now(), true);
    free(ASYM_TAKE(log->limit));
    asym_log_sink_free(ASYM_TAKE(log->sink));
}

size_t asym_log_fields(const struct asym_log_thread *t, char ret[ASYM_LOG_FIELDS][ASYM_LOG_FIELD_SIZE])
{
    char text[ASYM_LOG_FIELD_SIZE - sizeof "ASYM_REASON="];
    const struct asym_task *task = t->task;
    size_t n = 0;
    snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_PID=%d", task->id.tgid);
    snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_TID=%d", task->id.tid);
    asym_text_escape(task->comm, strnlen(task->comm, sizeof task->comm), text, sizeof text);
    snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_COMM=%s", text);
    snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_CLASS=%s", asym_class_name(t->class));
    if (t->policy)
        snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_POLICY=%s", t->policy);
    if (t->reason)
        snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_REASON=%s",
                 asym_reason_text(t->reason, t->figure, text, sizeof text));
    if (t->cpu >= 0)
        snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_CPU=%d", t->cpu);
    if (t->mask)
        snprintf(ret[n++], ASYM_LOG_FIELD_SIZE, "ASYM_MASK=%s", asym_mask_format_list(t->mask, text, sizeof text));
    return n;
}

static void send(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *message)
{
    char fields[ASYM_LOG_FIELDS][ASYM_LOG_FIELD_SIZE], text[ASYM_LOG_MESSAGE + 16];
    struct iovec parts[ASYM_LOG_FIELDS + 1];
    const size_t n = asym_log_fields(t, fields);
    snprintf(text, sizeof text, "MESSAGE=%s", message);
    parts[0] = (struct iovec){text, strlen(text)};
    for (size_t i = 0; i < n; i++)
        parts[i + 1] = (struct iovec){fields[i], strlen(fields[i])};
    asym_log_sink_put(log->sink, priority, parts, n + 1);
}

static void put_event(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *message)
{
    if (log->sink)
        send(log, priority, t, message);
    else
        put_text(log, priority, "%s", message);
}

void asym_log_event(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *format, ...)
{
    char message[ASYM_LOG_MESSAGE];
    va_list args;
    if (is_dropped(log, priority))
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    put_event(log, priority, t, message);
}

void asym_log_thread(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *what)
{
    char comm[4 * ASYM_COMM_LEN], why[160], message[ASYM_LOG_MESSAGE];
    const struct asym_task *task = t->task;
    if (is_dropped(log, priority))
        return;
    asym_text_escape(task->comm, strnlen(task->comm, sizeof task->comm), comm, sizeof comm);
    asym_reason_text(t->reason, t->figure, why, sizeof why);
    snprintf(message, sizeof message, "%s: thread %d of %d (%s)%s%s", what, task->id.tid, task->id.tgid, comm,
             *why ? ": " : "", why);
    struct asym_log_kind *over = limit(log, priority, what);
    if (over)
        snprintf(over->last, sizeof over->last, "%.*s", (int)sizeof over->last - 1, message);
    else
        put_event(log, priority, t, message);
}
