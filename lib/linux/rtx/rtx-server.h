/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * asymd's side of include/asym/rtx.h: it hands out pages to programs and provides their reports.
 *
 * asymd trusts no program. A helper process accepts and closes the connections (rtx-acceptor.h). asymd makes the memfd and the
 * eventfd, and receives only numbers: the credentials of a connection and the content of a page. No call waits for a client or
 * for the helper. The number of clients, the slots of one sample and the work of one call are bounded. asymd drops a client
 * that breaks the protocol. rtx-overlay.h bounds the effect of a page on the machine.
 *
 * asymd never maps the memory: a program may punch holes in it, and touching a hole when no memory is left raises SIGBUS.
 * asymd reads it with pread(2), which returns zeroes for a hole, into its own memory, so that checked values cannot change
 * afterwards. Nothing that a program can hold makes pread on a memfd sleep: pread takes no lock of the inode, and page locks
 * are held for no longer than a copy. Only the swap device can make it wait, for a part of the page that was swapped out, and a
 * program can cause that (MADV_PAGEOUT). A read of a word that a thread is writing may mix bytes of the old and the new word.
 * State and marks are in one byte. asymd takes a mixed count for a change or, if it equals that of the last sample, for none.
 * A slot that changes its owner may be read with the word of one thread and the tid of the other. Either error lasts for one
 * sample.
 *
 * asymd and the program share one open file for the eventfd. asymd never reads or writes it, so that only the program controls
 * its flags and its count. asymd adds it to its epoll instance before the program has it, and later changes only its events:
 * adding a file that is in other epoll instances takes locks that may be held for long. asymd never drops the last reference,
 * see rtx-acceptor.h.
 *
 * Places. There are ASYM_RTXD_MAX_CLIENTS; users other than root have at most ASYM_RTXD_MAX_OF_USERS of them together and
 * ASYM_RTXD_MAX_OF_USER each, and a process ASYM_RTXD_MAX_OF_PID. When no place is free, the user other than root with the most
 * places loses its latest one to a user that has at least two fewer, or to root. So a user without a place gets one unless
 * ASYM_RTXD_MAX_OF_USERS other users have one each, and root always gets one unless root holds all places.
 */
#ifndef ASYM_LINUX_RTX_SERVER_H
#define ASYM_LINUX_RTX_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <asym/error.h>
#include <asym/types.h>

#include "linux/rtx/rtx-overlay.h"
#include "linux/rtx/rtx-server-config.h"

/** Returns the reason in words, for the log. A static string. */
const char *asym_rtxd_refusal_text(enum asym_rtxd_refusal refusal);

/** Longest name of asym_rtxd_refused_name(), with the NUL. */
#define ASYM_RTXD_REFUSED_NAME 64

/** Name the refused program for the log; pid 0: asymd knows only the user. Returns ret. */
const char *asym_rtxd_refused_name(pid_t pid, uid_t uid, char ret[ASYM_RTXD_REFUSED_NAME]);

/** Open the socket. If the helper does not start, housekeeping tries again. 0; -errno with err. */
int asym_rtxd_server_open(const struct asym_rtxd_server_config *config, struct asym_rtxd_server **ret,
                          struct asym_error *err);

/** Remove the socket and end the helper. s may be NULL. */
void asym_rtxd_server_close(struct asym_rtxd_server *s);

/** Returns a borrowed descriptor that is readable when serve has work. */
int asym_rtxd_server_fd(const struct asym_rtxd_server *s);

/**
 * Take the reports of the helper: new and ended connections. serve does that, too. A caller that measures the cost of answers
 * calls this first: connections are bounded by number, and answers do not pay for them.
 */
void asym_rtxd_server_receive(struct asym_rtxd_server *s, asym_usec now);

/**
 * Serve new connections, headers and ended programs. It samples a page only if its program has woken asymd since the last call,
 * and once more when the page's notify_min has passed after that. Returns whether, in a program that asymd may answer now, a
 * serial phase has begun or ended since the last answer with ASYM_ASK_FINAL. The end of a program in a serial phase counts, see
 * ASYM_RTXD_MAX_ENDS. The CPU time for answers is divided evenly among the users whose programs report phases, and among the
 * processes of each user. asymd defers a program that has spent its part.
 */
bool asym_rtxd_server_serve(struct asym_rtxd_server *s, asym_usec now);

/**
 * Call this about once a second. It drops clients without a header, polls throttled clients again, pings the helper, and starts
 * another helper if that one is gone.
 */
void asym_rtxd_server_housekeeping(struct asym_rtxd_server *s, asym_usec now);

/** Change these two values, see struct asym_rtxd_server_config. */
void asym_rtxd_server_set(struct asym_rtxd_server *s, asym_usec spin_notify, double cpu_budget);

/** Returns the number of clients whose page has a valid header. */
size_t asym_rtxd_server_count(const struct asym_rtxd_server *s);

/** Returns the provider of the reports; borrowed. */
struct asym_rtxd_provider *asym_rtxd_server_provider(struct asym_rtxd_server *s);

#endif
