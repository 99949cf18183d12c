/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The facts about strangers' processes whose reading can block: what a process has mapped and its command line (the kernel
 * takes the lock of its memory, which a thread of it can hold for as long as a file system of its user hangs), and the build
 * id of its executable (which may be on such a file system).
 *
 * A port with two implementations. Without one (NULL) the facts are read at once, which is for captured machines and for
 * tests. With a helper (linux/helper.h) a fact is asked for, and the answer is taken later; asymd never waits for it.
 * What else asymd reads of a process takes no lock that the process can hold: stat, schedstat, status, cgroup, the link exe.
 */
#ifndef ASYM_LINUX_PROC_READER_H
#define ASYM_LINUX_PROC_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asym/types.h>

#include "linux/root.h"

/** What is asked for, as bits. */
enum {
    ASYM_READ_MAPS = 1 << 0,     /**< the bits of linux/maps.h */
    ASYM_READ_CMDLINE = 1 << 1,  /**< the arguments, parted by spaces */
    ASYM_READ_BUILD_ID = 1 << 2, /**< of the executable, in hexadecimal digits */
};

/** A longer command line is cut. With its NUL. */
#define ASYM_READ_CMDLINE_MAX 3800
/** With its NUL; as ASYM_BUILD_ID_MAX of profile/build-id.h. */
#define ASYM_READ_BUILD_ID_MAX 129
/** Bytes of /proc/PID/maps that are read at first, and at most. */
#define ASYM_READ_MAPS_FIRST (256U << 10)
#define ASYM_READ_MAPS_MOST  (4U << 20)

struct asym_read_request {
    int32_t pid;
    uint32_t what;      /**< ASYM_READ_* */
    uint64_t start;     /**< of the process: another one with this number is not read */
    uint32_t uid;       /**< whose it is */
    uint32_t tag;       /**< the caller's; the answer has it too */
    uint32_t maps_most; /**< bytes of its maps that are read */
    uint32_t spare;
};

struct asym_read_answer {
    int32_t pid;
    uint32_t what;
    uint64_t start;
    uint32_t tag;
    /**
     * 0; -ESRCH: it is gone; -ETIME: reading it made a helper hang; -EAGAIN: it was not read, ask again; -errno. A single fact
     * that may not be read is 0 or "" instead.
     */
    int32_t error;
    uint32_t cost; /**< us of CPU time, or a tenth of the time that it took, whichever is more */
    uint32_t maps;
    uint32_t maps_cut; /**< 1: it has more maps than were asked for */
    char build_id[ASYM_READ_BUILD_ID_MAX];
    char cmdline[ASYM_READ_CMDLINE_MAX];
};

struct asym_proc_reader {
    /**
     * 0: the answer will come; -EAGAIN: ask again at a later look; -EPERM: the processes of this user have made helpers hang,
     * and are not read for some minutes; -errno: there is no helper, and nothing is read.
     */
    int (*ask)(struct asym_proc_reader *r, const struct asym_read_request *request);
    /** 1: an answer; 0: there is none by now. In the order of asking. Never blocks. */
    int (*take)(struct asym_proc_reader *r, struct asym_read_answer *ret);
    void (*close)(struct asym_proc_reader *r);
};

/** Read at once, in this process. Blocks where the process wants it to. build_id: as asym_build_id_read; NULL: none. */
void asym_proc_read(const struct asym_root *root, const struct asym_read_request *request,
                    int (*build_id)(int fd, char *ret), struct asym_read_answer *ret);

/**
 * By a helper, which is started when it is first needed. program: its file, copied; NULL: there is none, and nothing is read.
 * now: the time, monotonic. 0; -ENOMEM.
 */
int asym_proc_reader_new(const char *program, asym_usec (*now)(void), struct asym_proc_reader **ret);

/** What all reading together may cost in the long run, in percent of one CPU (linux/proc-ration.h). At first 0.25. */
void asym_proc_reader_set(struct asym_proc_reader *r, double percent);

/** CPU time of all its helpers so far. */
asym_usec asym_proc_reader_spent(const struct asym_proc_reader *r);

/** Helpers that were killed since they hung, so far. */
size_t asym_proc_reader_hangs(const struct asym_proc_reader *r);

/** The work of a helper: asym_helper_role.run. build_id: as above. */
int asym_proc_reader_run(int orders, int reports, int (*build_id)(int fd, char *ret));

#endif
