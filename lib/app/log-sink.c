/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/log-sink.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/macro.h"

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
void asym_log_sink_never_wait(struct asym_log_sink *sink)
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

static void add(struct parts *p, const void *bytes, size_t size)
{
    p->io[p->n++] = (struct iovec){(void *)(uintptr_t)bytes, size};
}

/* "KEY=VALUE\n"; or, if the value has line breaks, "KEY\n", its length as 64 bits, little-endian, and "VALUE\n". */
static void add_field(struct parts *p, const struct iovec *field)
{
    const char *text = field->iov_base, *equals = memchr(text, '=', field->iov_len);
    if (!equals || !memchr(text, '\n', field->iov_len)) {
        add(p, text, field->iov_len);
    } else {
        const size_t key = (size_t)(equals - text);
        uint64_t *size = &p->sizes[p->n_sizes++];
        *size = htole64(field->iov_len - key - 1);
        add(p, text, key);
        add(p, "\n", 1);
        add(p, size, sizeof *size);
        add(p, equals + 1, field->iov_len - key - 1);
    }
    add(p, "\n", 1);
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

static bool put(const struct asym_log_sink *sink, int priority, const struct iovec *fields, size_t n)
{
    return sink->is_journal ? send_to_journal(sink, priority, fields, n) : write_line(sink, &fields[0]);
}

void asym_log_sink_report(struct asym_log_sink *sink)
{
    char text[128];
    if (!sink || sink->n_lost == 0)
        return;
    const int n = snprintf(text, sizeof text, "MESSAGE=%lu messages were lost: the reader of the log did not take them",
                           sink->n_lost);
    if (put(sink, LOG_WARNING, &(struct iovec){text, (size_t)n}, 1))
        sink->n_lost = 0;
}

bool asym_log_sink_put(struct asym_log_sink *sink, int priority, const struct iovec *fields, size_t n)
{
    asym_log_sink_report(sink);
    const bool done = put(sink, priority, fields, n);
    sink->n_lost += !done;
    return done;
}

void asym_log_sink_free(struct asym_log_sink *sink)
{
    if (!sink)
        return;
    asym_log_sink_report(sink);
    if (sink->fd != STDERR_FILENO)
        close(sink->fd);
    free(sink);
}
