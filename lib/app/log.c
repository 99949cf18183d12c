/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/log.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

/*
 * Limits how often messages of one kind are written: other users can provoke some messages as often as they like. Pure: the
 * caller passes the time.
 */

static bool is_over(const struct asym_log_kind *k, asym_usec now)
{
    return now >= k->since + ASYM_LOG_LIMIT_PERIOD;
}

static struct asym_log_kind *find_kind(struct asym_log_limit *l, const void *kind)
{
    for (size_t i = 0; i < ASYM_LENGTH(l->kinds); i++)
        if (l->kinds[i].kind == kind || !l->kinds[i].kind)
            return &l->kinds[i];
    return &l->kinds[ASYM_LENGTH(l->kinds) - 1];
}

/* A period with messages left out lasts until the log reports their number. */
struct asym_log_kind *asym_log_limit_count(struct asym_log_limit *l, const void *kind, int priority, asym_usec now,
                                           bool *ret_write)
{
    struct asym_log_kind *k = find_kind(l, kind);
    if (!k->kind || (is_over(k, now) && k->n <= ASYM_LOG_LIMIT_MESSAGES))
        *k = (struct asym_log_kind){.kind = kind, .since = now};
    k->n++;
    k->priority = priority;
    *ret_write = k->n <= ASYM_LOG_LIMIT_MESSAGES;
    return k;
}

const struct asym_log_kind *asym_log_limit_due(struct asym_log_limit *l, asym_usec now, bool final, unsigned *ret_n)
{
    for (size_t i = 0; i < ASYM_LENGTH(l->kinds); i++) {
        struct asym_log_kind *k = &l->kinds[i];
        if (!k->kind || k->n <= ASYM_LOG_LIMIT_MESSAGES || (!final && !is_over(k, now)))
            continue;
        *ret_n = k->n - ASYM_LOG_LIMIT_MESSAGES;
        k->n = 0;
        k->since = now;
        return k;
    }
    return NULL;
}

/*
 * Writes the lines of the log: to the journal with fields, or to stderr. The journal is a datagram socket that every user may
 * fill, and nothing says that the reader of a pipe reads. So writing to the journal never waits, and writing to stderr need not:
 * a line that cannot be written at once is lost, and counted, and a later line gives the number.
 */

/* The socket on which journald receives messages in its native protocol. */
#define ASYM_LOG_JOURNAL "/run/systemd/journal/socket"

/* The most fields of a message. */
enum { ASYM_LOG_SINK_FIELDS = 12 };

struct asym_log_sink {
    struct sockaddr_un journal;
    int fd; /* a socket for the journal; else stderr, or the same file opened once more */
    bool is_journal, waits;
    unsigned long n_lost;
};

/* A field takes two parts, or five if its value has a line break. */
struct parts {
    struct iovec io[5 * (ASYM_LOG_SINK_FIELDS + 2)];
    uint64_t sizes[ASYM_LOG_SINK_FIELDS + 2];
    size_t n, n_sizes;
};

struct asym_log_sink *asym_log_sink_journal(const char *path)
{
    struct asym_log_sink *sink = calloc(1, sizeof *sink);
    if (!sink)
        return NULL;
    sink->journal.sun_family = AF_UNIX;
    snprintf(sink->journal.sun_path, sizeof sink->journal.sun_path, "%s", path);
    sink->is_journal = true;
    sink->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sink->fd >= 0)
        return sink;
    free(sink);
    return NULL;
}

struct asym_log_sink *asym_log_sink_stderr(void)
{
    struct asym_log_sink *sink = calloc(1, sizeof *sink);
    if (sink)
        *sink = (struct asym_log_sink){.fd = STDERR_FILENO, .waits = true};
    return sink;
}

/*
 * O_NONBLOCK on stderr itself would hold for each process that has inherited the same open file, such as a shell. So a pipe or a
 * terminal is opened once more. Without the permission for that, poll() has to do: it says that a line fits.
 */
void asym_log_sink_nonblocking(struct asym_log_sink *sink)
{
    struct stat st;
    if (!sink || sink->is_journal || !sink->waits)
        return;
    sink->waits = false;
    /* A pipe whose reader has ended costs a line, not the process. Helper processes get the default action back. */
    signal(SIGPIPE, SIG_IGN);
    if (fstat(STDERR_FILENO, &st) < 0 || (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)))
        return;
    const int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        sink->fd = fd;
}

static void add_part(struct parts *p, const void *bytes, size_t size)
{
    p->io[p->n++] = (struct iovec){(void *)(uintptr_t)bytes, size};
}

/* "KEY=VALUE\n"; or, if the value has line breaks, "KEY\n", its length as 64 bits, little-endian, and "VALUE\n". */
static void add_field(struct parts *p, const struct iovec *field)
{
    const char *text = field->iov_base, *equals = memchr(text, '=', field->iov_len);
    if (!equals || !memchr(text, '\n', field->iov_len)) {
        add_part(p, text, field->iov_len);
    } else {
        const size_t key = (size_t)(equals - text);
        uint64_t *size = &p->sizes[p->n_sizes++];
        *size = htole64(field->iov_len - key - 1);
        add_part(p, text, key);
        add_part(p, "\n", 1);
        add_part(p, size, sizeof *size);
        add_part(p, equals + 1, field->iov_len - key - 1);
    }
    add_part(p, "\n", 1);
}

static bool send_to_journal(const struct asym_log_sink *sink, int priority, const struct iovec *fields, size_t n)
{
    char level[32], name[96];
    struct parts p = {.n = 0};
    const struct iovec own[] = {
        {level, (size_t)snprintf(level, sizeof level, "PRIORITY=%d", priority)},
        {name, (size_t)snprintf(name, sizeof name, "SYSLOG_IDENTIFIER=%.64s", program_invocation_short_name)},
    };
    for (size_t i = 0; i < n && i < ASYM_LOG_SINK_FIELDS; i++)
        add_field(&p, &fields[i]);
    for (size_t i = 0; i < ASYM_LENGTH(own); i++)
        add_field(&p, &own[i]);
    const struct msghdr m = {.msg_name = (void *)(uintptr_t)&sink->journal,
                             .msg_namelen = sizeof sink->journal,
                             .msg_iov = p.io,
                             .msg_iovlen = p.n};
    return sendmsg(sink->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* A pipe takes PIPE_BUF bytes at once or nothing. */
static bool write_line(const struct asym_log_sink *sink, const struct iovec *message)
{
    char line[PIPE_BUF];
    const char *text = message->iov_base, *equals = memchr(text, '=', message->iov_len);
    const char *value = equals ? equals + 1 : text;
    const int size = snprintf(line, sizeof line - 1, "asymd: %.*s", (int)(message->iov_len - (size_t)(value - text)),
                              value);
    size_t n = size < 0 ? 0 : ASYM_MIN((size_t)size, sizeof line - 2);
    line[n++] = '\n';
    struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
    if (!sink->waits && (poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLOUT)))
        return false;
    const ssize_t sent = sink->waits ? -1 : send(sink->fd, line, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent >= 0 || ((sink->waits || errno == ENOTSOCK) && write(sink->fd, line, n) >= 0);
}

static bool write_or_count(const struct asym_log_sink *sink, int priority, const struct iovec *fields, size_t n)
{
    return sink->is_journal ? send_to_journal(sink, priority, fields, n) : write_line(sink, &fields[0]);
}

/* Write how many messages were lost so far, if some were. NULL is accepted. */
static void report_lost(struct asym_log_sink *sink)
{
    char text[128];
    if (!sink || sink->n_lost == 0)
        return;
    const int n = snprintf(text, sizeof text, "MESSAGE=%lu messages were lost: the reader of the log did not take them",
                           sink->n_lost);
    if (write_or_count(sink, LOG_WARNING, &(struct iovec){text, (size_t)n}, 1))
        sink->n_lost = 0;
}

bool asym_log_sink_put(struct asym_log_sink *sink, int priority, const struct iovec *fields, size_t n)
{
    report_lost(sink);
    const bool done = write_or_count(sink, priority, fields, n);
    sink->n_lost += !done;
    return done;
}

void asym_log_sink_free(struct asym_log_sink *sink)
{
    if (!sink)
        return;
    report_lost(sink);
    if (sink->fd != STDERR_FILENO)
        close(sink->fd);
    free(sink);
}

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

/* Writes a message, with the fields of a thread if there is one. */
static void put(const struct asym_log *log, int priority, const char *message, const struct asym_log_thread *t)
{
    char text[ASYM_LOG_LINE + 16], fields[ASYM_LOG_FIELDS][ASYM_LOG_FIELD_SIZE];
    struct iovec parts[ASYM_LOG_FIELDS + 1] = {{text, (size_t)snprintf(text, sizeof text, "MESSAGE=%s", message)}};
    if (!log->sink) {
        fprintf(stderr, "asymd: %s\n", message);
        return;
    }
    const size_t n = t ? asym_log_fields(t, fields) : 0;
    for (size_t i = 0; i < n; i++)
        parts[i + 1] = (struct iovec){fields[i], strlen(fields[i])};
    asym_log_sink_put(log->sink, priority, parts, n + 1);
}

/*
 * Writes a message of this kind (NULL: none), or keeps a short form of it where there were many. A user who wants to see each
 * decision (debug) gets each.
 */
static void put_limited(const struct asym_log *log, int priority, const void *kind, const char *message,
                        const struct asym_log_thread *t)
{
    bool write = true;
    struct asym_log_kind *k = NULL;
    if (kind && log->limit && priority != LOG_DEBUG)
        k = asym_log_limit_count(log->limit, kind, priority, asym_clock_now(), &write);
    if (write)
        put(log, priority, message, t);
    else
        snprintf(k->last, sizeof k->last, "%.*s", (int)sizeof k->last - 1, message);
}

void asym_log_say(const struct asym_log *log, int priority, const char *format, ...)
{
    char message[ASYM_LOG_LINE];
    va_list args;
    if (is_dropped(log, priority))
        return;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    /* The format "%s" is no kind: asymd uses it only at its start and its end. */
    put_limited(log, priority, strcmp(format, "%s") == 0 ? NULL : format, message, NULL);
}

static void housekeeping(const struct asym_log *log, asym_usec now, bool final)
{
    unsigned n;
    const struct asym_log_kind *k;
    while (log->limit && (k = asym_log_limit_due(log->limit, now, final, &n))) {
        char message[256];
        snprintf(message, sizeof message, "%u more messages like this were left out in the last minute: %s", n,
                 k->last);
        put(log, k->priority, message, NULL);
    }
}

void asym_log_housekeeping(const struct asym_log *log, asym_usec now)
{
    housekeeping(log, now, false);
    report_lost(log->sink);
}

void asym_log_done(struct asym_log *log)
{
    housekeeping(log, asym_clock_now(), true);
    free(ASYM_TAKE(log->limit));
    asym_log_sink_free(ASYM_TAKE(log->sink));
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
    put(log, priority, message, t);
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
    put_limited(log, priority, what, message, t);
}
