/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Expendable processes: a helper does for asymd what could block on a stranger's process, file or socket.
 *
 * A helper holds no lock, no file of asymd's but its two channels, and no privilege but what its role names. asymd never
 * waits for it: every call here returns at once. A helper that does not answer in time is killed, and another one is
 * started. A process in uninterruptible sleep survives SIGKILL for as long as it sleeps; so the helpers that were killed and
 * are not gone yet are counted, and none is started when there are ASYM_HELPER_MAX_DYING of them.
 *
 * Two channels. Orders go to the helper through a socket of type SOCK_SEQPACKET, with descriptors of asymd's own if need be;
 * asymd never reads from it, and the helper cannot write to it. Reports come back through a pipe in packet mode, which
 * cannot carry a descriptor: whatever a helper was made to do, it cannot hand asymd a file.
 */
#ifndef ASYM_LINUX_HELPER_H
#define ASYM_LINUX_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <asym/error.h>

/** Helpers of one kind that were killed and sleep uninterruptibly: no more are started then. */
#define ASYM_HELPER_MAX_DYING 4
/** An order and a report are at most so long: what a pipe takes as one packet (PIPE_BUF). */
#define ASYM_HELPER_PACKET 4096
/** Descriptors with one order. */
#define ASYM_HELPER_MAX_FDS 4

/* ---- asymd's side. ---- */

struct asym_helper {
    const char *program; /**< the file, borrowed */
    const char *role;    /**< as in the program's table, borrowed */
    pid_t pid;           /**< 0: none runs */
    int orders, reports; /**< this side of the channels, never blocking; -1: none */
    pid_t dying[ASYM_HELPER_MAX_DYING];
    size_t n_dying;
};

#define ASYM_HELPER_INIT(program_, role_)                                                                              \
    {                                                                                                                  \
        .program = (program_), .role = (role_), .orders = -1, .reports = -1                                            \
    }

/**
 * Start one; there must be none. With the ordinary scheduling policy, all signals at their defaults, and no descriptor but
 * 0 to 2 (/dev/null) and the channels. To be called from a thread that stays: the helper dies with it.
 * 0; -EBUSY: ASYM_HELPER_MAX_DYING are not gone yet; -errno of what failed, with err.
 */
int asym_helper_start(struct asym_helper *h, struct asym_error *err);

/** Kill it, without waiting for its end. Nothing happens where none runs. */
void asym_helper_kill(struct asym_helper *h);

/** Collect those that were killed and are gone by now. Returns how many are not. */
size_t asym_helper_reap(struct asym_helper *h);

/**
 * Give an order. The descriptors stay the caller's.
 * 0; -EAGAIN: the helper does not read fast enough; -ENOTCONN: none runs, or it has ended; -EINVAL: too long.
 */
int asym_helper_order(const struct asym_helper *h, const void *order, size_t size, const int *fds, size_t n_fds);

/**
 * Take a report, whole. size: at least ASYM_HELPER_PACKET.
 * Its length; -EAGAIN: there is none; -ENOTCONN: none runs, or it has ended (kill it, to collect it).
 */
ssize_t asym_helper_report(const struct asym_helper *h, void *buf, size_t size);

/* ---- The helper's side: for the program's main. ---- */

/** What a role may do; each is taken away by asym_helper_main() before run(). */
enum {
    ASYM_HELPER_MAY_READ_FILES = 1 << 0, /**< open files for reading; nothing may be written in any case */
    /** keep CAP_SYS_PTRACE, to read /proc of others. Landlock forbids that, so that there is only RLIMIT_FSIZE 0 against writing */
    ASYM_HELPER_MAY_PTRACE = 1 << 1,
};

struct asym_helper_role {
    const char *name;
    unsigned may;
    /** The work. orders and reports: the helper's side of the channels, blocking. Returns the exit status. */
    int (*run)(int orders, int reports);
};

/**
 * Confine the process as the role named in argv[1] is to be, and run it. In order: dies with its parent; not dumpable; no
 * new privileges; the user and group "nobody" (65534) where it may become that; no capability but what the role keeps;
 * Landlock (where the kernel has it, and unless the role reads /proc of others) against writing to files, and against opening
 * any unless the role may.
 * Returns the exit status: that of run(); 2: not started by asym_helper_start(), or no such role; 1: it cannot be confined.
 */
int asym_helper_main(const struct asym_helper_role *roles, size_t n_roles, int argc, char *const argv[]);

/**
 * The next order, for a role's run(). Waits. ret_fds gets at most ASYM_HELPER_MAX_FDS; *ret_n how many.
 * Its length; 0: asymd has gone; -errno.
 */
ssize_t asym_helper_next_order(int orders, void *buf, size_t size, int *ret_fds, size_t *ret_n);

/** Report, whole. 0; -EAGAIN on a channel that is full and was made not to block; -errno: asymd has gone. */
int asym_helper_say(int reports, const void *report, size_t size);

#endif
