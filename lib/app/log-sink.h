/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Writes the lines of the log: to the journal with fields, or to stderr. The journal is a datagram socket that every user may
 * fill, and nothing says that the reader of a pipe reads. So writing to the journal never waits, and writing to stderr need not:
 * a line that cannot be written at once is lost, and counted, and a later line gives the number.
 */
#ifndef ASYM_APP_LOG_SINK_H
#define ASYM_APP_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

struct asym_log_sink;

/** The socket on which journald receives messages in its native protocol. */
#define ASYM_LOG_JOURNAL "/run/systemd/journal/socket"

/** The most fields of a message. */
enum { ASYM_LOG_SINK_FIELDS = 12 };

/** Write to the socket of journald at this path, which need not exist yet. Returns NULL without memory or descriptors. */
struct asym_log_sink *asym_log_sink_journal(const char *path);

/** Write to stderr, and wait for its reader. Returns NULL without memory. */
struct asym_log_sink *asym_log_sink_stderr(void);

/** From now on, wait for no reader of stderr either. Other processes that have the same file do not notice. NULL is accepted. */
void asym_log_sink_never_wait(struct asym_log_sink *sink);

/**
 * Write a message. fields: n fields of the form KEY=VALUE, at most ASYM_LOG_SINK_FIELDS; the first is the message. stderr gets only
 * that one. Returns whether it was written; else it is counted.
 */
bool asym_log_sink_put(struct asym_log_sink *sink, int priority, const struct iovec *fields, size_t n);

/** Write how many messages were lost so far, if some were. NULL is accepted. */
void asym_log_sink_report(struct asym_log_sink *sink);

/** NULL is accepted. */
void asym_log_sink_free(struct asym_log_sink *sink);

#endif
