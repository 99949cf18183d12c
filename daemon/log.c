/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/parse.h"

static asym_usec now_is(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (asym_usec)t.tv_sec * ASYM_SEC + (asym_usec)t.tv_nsec / 1000;
}

void asym_log_init(struct asym_log *log)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    unsigned long long device, inode;
    log->journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
                   st.st_dev == device && st.st_ino == inode;
    log->level = LOG_INFO;
    log->limit = calloc(1, sizeof *log->limit);
}

static bool is_dropped(const struct asym_log *log, int priority)
{
    return !log->journal && priority > log->level;
}

/* NULL: write it. Else it is one too many, and its text is kept there in short. */
static struct asym_log_kind *limit(const struct asym_log *log, int priority, const void *kind)
{
    bool write = true;
    struct asym_log_kind *k = log->limit ? asym_log_limit_count(log->limit, kind, priority, now_is(), &write) : NULL;
    return write ? NULL : k;
}

__attribute__((format(printf, 3, 0))) static void put(const struct asym_log *log, int priority, const char *format,
                                                      va_list args)
{
    if (log->journal) {
        sd_journal_printv(priority, format, args);
        return;
    }
    fputs("asymd: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
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
    /* That is no kind: what is said so is said at the start and at the end. */
    struct asym_log_kind *over = strcmp(format, "%s") == 0 ? NULL : limit(log, priority, format);
    va_start(args, format);
    if (over)
        vsnprintf(over->last, sizeof over->last, format, args);
    else
        put(log, priority, format, args);
    va_end(args);
}

static void tend(const struct asym_log *log, asym_usec now, bool last)
{
    unsigned n;
    const struct asym_log_kind *k;
    while (log->limit && (k = asym_log_limit_due(log->limit, now, last, &n)))
        put_text(log, k->priority, "%u more messages like this were left out in the last minute: %s", n, k->last);
}

void asym_log_tend(const struct asym_log *log, asym_usec now)
{
    tend(log, now, false);
}

void asym_log_done(struct asym_log *log)
{
    tend(log, now_is(), true);
    free(log->limit);
    log->limit = NULL;
}

void asym_log_thread(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *what)
{
    char comm[4 * ASYM_COMM_LEN], why[160];
    const struct asym_task *task = t->task;
    if (is_dropped(log, priority))
        return;
    struct asym_log_kind *over = limit(log, priority, what);
    asym_text_escape(task->comm, strnlen(task->comm, sizeof task->comm), comm, sizeof comm);
    asym_reason_text(t->reason, t->figure, why, sizeof why);
    if (over)
        snprintf(over->last, sizeof over->last, "%s: thread %d of %d (%s)", what, task->id.tid, task->id.tgid, comm);
    if (over)
        return;
    if (!log->journal) {
        put_text(log, priority, "%s: thread %d of %d (%s): %s", what, task->id.tid, task->id.tgid, comm, why);
        return;
    }
    sd_journal_send("MESSAGE=%s: thread %d of %d (%s): %s", what, task->id.tid, task->id.tgid, comm, why, "PRIORITY=%d",
                    priority, "ASYM_PID=%d", task->id.tgid, "ASYM_TID=%d", task->id.tid, "ASYM_COMM=%s", comm,
                    "ASYM_POLICY=%s", t->policy, "ASYM_CLASS=%s", asym_class_name(t->class), "ASYM_REASON=%s", why,
                    NULL);
}
