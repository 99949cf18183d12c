/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * asymd's side of include/asym/rtx.h: it finds the pages of programs, reads them, and provides their reports.
 *
 * asymd trusts no program, and receives nothing from one. No call waits for a client. The number of clients, the slots of one
 * sample and the work of one call are bounded. asymd drops a client that breaks the protocol. rtx-overlay.h bounds the effect of a
 * page on the machine.
 *
 * A user can hold the lock of any file and directory that the user can look up: by a write(2) from memory whose page fault the user
 * delays (FUSE), or by mount(2) in a user namespace. So
 * - each user has a directory, and no other user can look up a name in it: in a common one a user could make every program wait
 *   that creates its file;
 * - asymd takes the lock of a directory only as long as its name is secret (rtx-directory.c). It lists nothing, and removes and
 *   changes no file. It learns names by inotify(7), and opens them by openat2(2) with RESOLVE_CACHED, which fails instead of
 *   waiting. attack.rtx holds these locks.
 *
 * The last close of a file frees its memory. So asymd keeps no file open, and opens none with more memory than a page.
 *
 * A page counts only as long as its owner is the user of its process: asymd looks at each reading. A user may name another process
 * of the same user, and gains nothing.
 *
 * asymd never maps a page: the program may cut the file, and touching a hole when no memory is left raises SIGBUS. asymd reads it
 * with pread(2), which returns zeroes for a hole, into its own memory, so that checked values cannot change afterwards. On a tmpfs
 * pread takes no lock of the inode, and page locks are held for no longer than a copy. Before Linux 6.4 the swap device can make it
 * wait, for a part of the page that was swapped out, and a program can cause that (MADV_PAGEOUT). A read of a word that a thread is
 * writing may mix bytes of the old and the new word. State and marks are in one byte. asymd takes a mixed count for a change or, if
 * it equals that of the last sample, for none. A slot that changes its owner may be read with the word of one thread and the tid of
 * the other. Either error lasts for one sample.
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

/**
 * Open the directory "rtx" in config->dir. If it is a file system of its own, all users may report, otherwise asymd's own user
 * alone. 0; -errno with err.
 */
int asym_rtxd_server_open(const struct asym_rtxd_server_config *config, struct asym_rtxd_server **ret,
                          struct asym_error *err);

/** Remove the directory of asymd's own user. s may be NULL. */
void asym_rtxd_server_close(struct asym_rtxd_server *s);

/** Returns whether the programs of all users may report. */
bool asym_rtxd_server_is_for_all(const struct asym_rtxd_server *s);

/** Returns a borrowed descriptor that is readable when serve has work. */
int asym_rtxd_server_fd(const struct asym_rtxd_server *s);

/**
 * Take the events of the files: new and ended programs, and wakeups. What comes is bounded by number, and no program pays for it:
 * the answers to a user's programs must not wait for the announcements of another user. So a caller that charges for answers
 * measures from the end of this call on.
 */
void asym_rtxd_server_receive(struct asym_rtxd_server *s, asym_usec now);

/**
 * Serve the programs, after a call of asym_rtxd_server_receive. It samples a page only if its program has woken asymd since the
 * last call, and once more when the page's notify_min has passed after that. Returns whether, in a program that asymd may answer
 * now, a serial phase has begun or ended since the last answer with ASYM_ASK_FINAL. The end of a program in a serial phase counts,
 * see ASYM_RTXD_MAX_ENDS. The CPU time for answers is divided evenly among the users whose programs report phases, and among the
 * processes of each user. asymd defers a program that has spent its part.
 */
bool asym_rtxd_server_serve(struct asym_rtxd_server *s, asym_usec now);

/** Call this about once a second. It drops clients whose process has ended, and hears throttled clients and users again. */
void asym_rtxd_server_housekeeping(struct asym_rtxd_server *s, asym_usec now);

/** Change these two values, see struct asym_rtxd_server_config. */
void asym_rtxd_server_set(struct asym_rtxd_server *s, asym_usec spin_notify, double cpu_budget);

/** Returns the number of clients whose page has a valid header. */
size_t asym_rtxd_server_count(const struct asym_rtxd_server *s);

/** Returns the provider of the reports; borrowed. */
struct asym_rtxd_provider *asym_rtxd_server_provider(struct asym_rtxd_server *s);

#endif
