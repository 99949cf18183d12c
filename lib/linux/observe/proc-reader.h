/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Reads those facts about other users' processes whose reading can block. For the maps and the command line, the kernel takes
 * the lock of the process's memory (mmap_lock); a thread of the process can hold that lock for as long as a file system of
 * its user hangs. The executable, which has the build id, may be on such a file system.
 *
 * With a helper (linux/sys/helper-process.h), asymd requests a fact and takes the answer later; it never waits. There is one budget
 * of CPU time for all users. When a process makes a helper hang, nothing of its user is read for a while. So a hostile user can
 * delay the readings of others, and asymd steers their processes without them (procfs-facts.c). Without a reader (NULL), asymd
 * reads the facts at once; this is meant for captured machines and for tests. The other files that asymd reads of a process need
 * no lock that the process can hold: stat, schedstat, status, cgroup, the link exe.
 */
#ifndef ASYM_LINUX_OBSERVE_PROC_READER_H
#define ASYM_LINUX_OBSERVE_PROC_READER_H

#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/sys/root.h"

/** The facts to read, as bits. */
enum {
    ASYM_READ_MAPS = 1 << 0,     /**< the bits of linux/sys/proc-parse.h */
    ASYM_READ_CMDLINE = 1 << 1,  /**< the arguments, separated by spaces */
    ASYM_READ_BUILD_ID = 1 << 2, /**< of the executable, in hexadecimal digits */
};

/** Size of a command line with its NUL. A longer one is cut. */
#define ASYM_READ_CMDLINE_MAX 3800
/** Bytes of /proc/PID/maps to read: at first, and at most. */
#define ASYM_READ_MAPS_FIRST (256U << 10)
#define ASYM_READ_MAPS_MOST  (4U << 20)
/** When a process has made a helper hang or end, nothing of its user is read for so long, and the process itself once more. */
#define ASYM_READ_WAIT (10 * ASYM_SEC)

struct asym_read_request {
    int32_t pid;
    uint32_t what;      /**< ASYM_READ_* */
    uint64_t start;     /**< clock ticks: the reader does not read a process with another start time */
    uint32_t uid;       /**< its user (linux/observe/proc-owner.h) */
    uint32_t tag;       /**< set by the caller; the answer has the same */
    uint32_t maps_most; /**< bytes of its maps to read */
};

struct asym_read_answer {
    int32_t pid;
    uint32_t what;
    uint64_t start;
    uint32_t tag;
    /**
     * 0; -ESRCH: the process has ended; -ETIME: the reading made a helper hang; -EPIPE: the helper ended during the reading,
     * because the kernel killed it for want of memory, or because it failed; -EAGAIN: the process was not read, ask again;
     * -errno. A single fact that the reader may not read is 0 or "".
     */
    int32_t error;
    uint32_t maps;
    uint32_t maps_cut; /**< 1: its maps have more than maps_most bytes */
    char build_id[ASYM_BUILD_ID_MAX];
    char cmdline[ASYM_READ_CMDLINE_MAX];
};

struct asym_proc_reader {
    /**
     * Request facts. 0: the answer will come; -EAGAIN: ask again at a later sample; -errno: no helper can run, and nothing is
     * read.
     */
    int (*ask)(struct asym_proc_reader *r, const struct asym_read_request *request);
    /** Take the next answer, in the order of the requests. 1; 0: none has come yet. Never blocks. */
    int (*take)(struct asym_proc_reader *r, struct asym_read_answer *ret);
    void (*close)(struct asym_proc_reader *r);
};

/**
 * Create a reader with a helper, which the first request starts. program: the helper's file, copied; NULL: no helper, and
 * nothing is read. now: returns the monotonic time, in us. 0; -ENOMEM.
 */
int asym_proc_reader_new(const char *program, asym_usec (*now)(void), struct asym_proc_reader **ret);

/** Limit the cost of all readings, in percent of one CPU in the long run. The default is 0.25. */
void asym_proc_reader_set(struct asym_proc_reader *r, double percent);

/** Returns the CPU time of all its helpers so far, in us. */
asym_usec asym_proc_reader_spent(const struct asym_proc_reader *r);

/** Returns how many helpers were killed so far because they hung. */
size_t asym_proc_reader_hangs(const struct asym_proc_reader *r);

/** Read at once, in this process. The process that is read can block the call. */
void asym_proc_read(const struct asym_root *root, const struct asym_read_request *request,
                    struct asym_read_answer *ret);

/** Run as a helper, for asym_helper_main. Returns the exit status. */
int asym_proc_reader_run(int orders, int reports);

#endif
