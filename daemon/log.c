/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/parse.h"

void asym_log_init(struct asym_log *log)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    unsigned long long device, inode;
    log->journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
                   st.st_dev == device && st.st_ino == inode;
    log->level = LOG_INFO;
}

void asym_log_say(const struct asym_log *log, int priority, const char *format, ...)
{
    va_list args;
    if (!log->journal && priority > log->level)
        return;
    va_start(args, format);
    if (log->journal) {
        sd_journal_printv(priority, format, args);
    } else {
        fputs("asymd: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
    }
    va_end(args);
}

void asym_log_thread(const struct asym_log *log, int priority, const struct asym_log_thread *t, const char *what)
{
    char comm[4 * ASYM_COMM_LEN], why[160];
    const struct asym_task *task = t->task;
    asym_text_escape(task->comm, strnlen(task->comm, sizeof task->comm), comm, sizeof comm);
    asym_reason_text(t->reason, t->figure, why, sizeof why);
    if (!log->journal) {
        asym_log_say(log, priority, "%s: thread %d of %d (%s): %s", what, task->id.tid, task->id.tgid, comm, why);
        return;
    }
    sd_journal_send("MESSAGE=%s: thread %d of %d (%s): %s", what, task->id.tid, task->id.tgid, comm, why, "PRIORITY=%d",
                    priority, "ASYM_PID=%d", task->id.tgid, "ASYM_TID=%d", task->id.tid, "ASYM_COMM=%s", comm,
                    "ASYM_POLICY=%s", t->policy, "ASYM_CLASS=%s", asym_class_name(t->class), "ASYM_REASON=%s", why,
                    NULL);
}
