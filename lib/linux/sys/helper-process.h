/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A helper is a process that asymd can kill at any time. It does the work that could block on another user's process, file or
 * socket.
 *
 * A helper has no lock, no descriptor of asymd's but its two channels, and no privilege but that of reading /proc of other
 * processes. asymd never waits for a helper: every call of asymd's side returns at once. asymd kills a helper that does not answer
 * in time, and starts another one. A process in uninterruptible sleep outlives SIGKILL until the sleep ends. asymd therefore counts
 * the helpers that were killed and have not ended; while there are ASYM_HELPER_MAX_DYING of them, it starts none. Each helper leads
 * a process group. If the calling process is a subreaper (PR_SET_CHILD_SUBREAPER), a helper has not ended before its child
 * processes have.
 *
 * A helper has two channels. Orders go to the helper through a socket that asymd never reads and the helper cannot write to.
 * Reports come back through a pipe in packet mode, which cannot carry descriptors: a helper that was taken over cannot pass a file
 * to asymd.
 */
#ifndef ASYM_LINUX_SYS_HELPER_PROCESS_H
#define ASYM_LINUX_SYS_HELPER_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include <asym/types.h>

/** With so many killed helpers of one kind that have not ended, asymd starts no more. */
#define ASYM_HELPER_MAX_DYING 4
/** The most bytes of an order or a report: one packet of a pipe (PIPE_BUF). */
#define ASYM_HELPER_PACKET 4096

struct asym_helper {
    const char *program;  /**< path of the program, borrowed */
    const char *argument; /**< of the program, borrowed; NULL: none */
    pid_t pid;            /**< 0: no helper runs */
    int orders, reports;  /**< asymd's ends of the channels, non-blocking; -1: none */
    pid_t dying[ASYM_HELPER_MAX_DYING];
    size_t n_dying;
    struct asym_mask
        affinity; /**< of each helper: that of asymd when it started the first one; empty: none was started */
};

#define ASYM_HELPER_INIT(program_, argument_)                                                                          \
    {                                                                                                                  \
        .program = (program_), .argument = (argument_), .orders = -1, .reports = -1                                    \
    }

/**
 * Start a helper; h must have none. The helper has the ordinary scheduling policy, all signals at their defaults, and no
 * descriptor but 0 to 2 (/dev/null) and the channels. Its affinity is that of the first helper: asymd narrows its own later.
 * The kernel kills the helper when the calling thread ends.
 * 0; -EBUSY: ASYM_HELPER_MAX_DYING, or their child processes, have not ended yet; -errno of the call that failed.
 */
int asym_helper_start(struct asym_helper *h);

/** Kill the helper without waiting for its end. Does nothing when none runs. */
void asym_helper_kill(struct asym_helper *h);

/** Reap the killed helpers that have ended. Returns the number of those that have not. */
size_t asym_helper_reap(struct asym_helper *h);

/**
 * Send an order.
 * 0; -EAGAIN: the helper does not read fast enough, or the kernel has no memory now; -ENOTCONN: no helper runs, or it has ended;
 * -EINVAL: size is 0 or above ASYM_HELPER_PACKET; -errno of send(2).
 */
int asym_helper_order(const struct asym_helper *h, const void *order, size_t size);

/**
 * Receive one whole report. size: at least ASYM_HELPER_PACKET.
 * Returns its length; -EAGAIN: there is no report; -ENOTCONN: no helper runs, or it has ended (call asym_helper_kill to reap
 * it).
 */
ssize_t asym_helper_report(const struct asym_helper *h, void *buf, size_t size);

/* The side of the helper: for the main function of its program. */

/**
 * Confine the process, and run its work with the helper's ends of the channels, which block. The steps, in this order:
 * - The process dies with its parent, is not dumpable, and gets no new privileges.
 * - With the right to change them, its user and group are "nobody" (65534).
 * - It drops every capability but CAP_SYS_PTRACE, which lets it read /proc of other processes.
 * - It gets RLIMIT_FSIZE 0: it extends no file.
 *
 * Returns the exit status: that of run(); 2: asym_helper_start() did not start this process; 1: the process cannot be confined.
 */
int asym_helper_main(int (*run)(int orders, int reports));

/** Wait for the next order; for run(). Returns the length of the order; 0: asymd has ended; -errno. */
ssize_t asym_helper_next_order(int orders, void *buf, size_t size);

/** Send one whole report. 0; -EAGAIN: the channel is full, and run() has made it non-blocking; -errno: asymd has ended. */
int asym_helper_say(int reports, const void *report, size_t size);

#endif
