/* SPDX-License-Identifier: MIT */
/**
 * Runtime extensions: a program reports thread states that the kernel cannot see (Saez 2010, 2.2).
 *
 * To the kernel, a thread that spins at a barrier is running. So a program, or its runtime library, keeps a page of memory in
 * which each thread has a slot. The page is a file that the program creates and maps, and that asymd reads. A thread changes its
 * state with one relaxed store: no system call, no lock, no clock. Only the start and the end of a serial phase wake asymd.
 *
 * A report is not a command: asymd decides. The program need not handle failures. If asymd does not run, or has stopped, the
 * stores go to memory that no process reads, and the library joins again later. No call changes errno.
 *
 * A thread does not write how long it has been waiting: reading a clock would cost more than the change of state. Instead asymd
 * reads the word twice. Each change increments a counter in the word, so an equal word means that the state has not changed.
 */
#ifndef ASYM_RTX_H
#define ASYM_RTX_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The page. All numbers are in the machine's byte order. ---- */

#define ASYM_RTX_MAGIC              UINT32_C(0x58545241) /* "ARTX" on a little-endian machine */
#define ASYM_RTX_VERSION            2                    /* of the layout: a reader rejects a higher one */
#define ASYM_RTX_LINE               64                   /* no two slots share a cache line of this size */

#define ASYM_RTX_NOTIFY_MIN_DEFAULT 1000
#define ASYM_RTX_NOTIFY_MIN_MAX     1000000

/**
 * The page begins with this header. The program writes it, magic last. asymd reads no page without magic, and stops reading a
 * page that has lost it. A later version may append fields to the header and to the slots. A reader uses header_size and
 * slot_size, so that old programs work with new daemons. Both are multiples of ASYM_RTX_LINE, and the page is at
 * least header_size + n_slots * slot_size bytes. Reserved fields are 0, and 0 is the default of a field that replaces them.
 */
struct asym_rtx_header {
    uint32_t magic;       /**< ASYM_RTX_MAGIC */
    uint32_t version;     /**< ASYM_RTX_VERSION */
    uint32_t header_size; /**< bytes before the first slot */
    uint32_t slot_size;   /**< bytes from one slot to the next */
    uint32_t n_slots;
    uint32_t n_used; /**< the slots from this index on have never been used. Atomic; never decreases */
    /**
     * Microseconds; 0: ASYM_RTX_NOTIFY_MIN_DEFAULT; larger values mean ASYM_RTX_NOTIFY_MIN_MAX. The program need not notify
     * asymd of changes within this time after it has woken asymd: asymd reads the page again when the time is over, subject to
     * its own rate limit. asymd reads this once, with the rest of the header. Older programs have a reserved field here, which
     * is 0.
     */
    uint32_t notify_min_usec;
    uint32_t rung; /**< wakeups of asymd so far; asymd does not read it */
    uint32_t reserved[8];
};

/** The slot of a thread. Only that thread writes its word. */
struct asym_rtx_slot {
    uint64_t word; /**< state, marks and count, as below; 0: the thread reports nothing. Atomic */
    int32_t tid;   /**< the value of gettid(2); 0: the slot is free. Atomic */
    uint32_t reserved[13];
};

/** The state of a thread, in the lowest bits of its word. */
enum asym_rtx_state {
    ASYM_RTX_SILENT = 0,   /**< the thread reports nothing: asymd uses the kernel's data */
    ASYM_RTX_WORKING = 1,  /**< does useful work, or would if it had a CPU */
    ASYM_RTX_SPINNING = 2, /**< waits for other threads of the program, perhaps without giving up its CPU */
    ASYM_RTX_SLEEPING = 3, /**< waits and has given up its CPU, or will do so at once */
};

#define ASYM_RTX_STATE  UINT64_C(0x3)  /**< mask of enum asym_rtx_state */
#define ASYM_RTX_MASTER UINT64_C(0x4)  /**< the thread that runs the serial phases */
#define ASYM_RTX_PHASES UINT64_C(0x8)  /**< the thread reports when serial phases begin and end ... */
#define ASYM_RTX_SERIAL UINT64_C(0x10) /**< ... and is in one: every thread that waits now is idle */
#define ASYM_RTX_MARKS  (ASYM_RTX_MASTER | ASYM_RTX_PHASES | ASYM_RTX_SERIAL)
#define ASYM_RTX_CHANGE UINT64_C(0x100000000) /**< added at each change: the upper half counts the changes, and wraps */

/* ---- The file. ---- */

/**
 * The directory of pages. Below it each user who has a process has a directory to which that user alone has access, and in which
 * the user's programs create their files. ASYM_RTX_USERS says which it is. Until asymd has lent a directory, its name is secret:
 * in a user namespace mount(2) holds the lock of any directory that it can look up, for seconds. So no program waits for
 * another user's.
 */
#define ASYM_RTX_DIR "/run/asymd/rtx"

/** This file in ASYM_RTX_DIR is a table of struct asym_rtx_user. The first row that is not in use ends it. */
#define ASYM_RTX_USERS     "2/users"
#define ASYM_RTX_MAX_USERS 1024

/** The directory of a user. asymd writes is_used last, and changes no row after that. */
struct asym_rtx_user {
    uint64_t pool, number;
    uint32_t uid, is_used;
};

/** Its path in ASYM_RTX_DIR, from pool and number. */
#define ASYM_RTX_HOME "2/%016" PRIx64 "/%016" PRIx64 "/p"

/** This variable overrides the path. The library ignores it in a program that gained privileges by execve(2). */
#define ASYM_RTX_DIR_ENV "ASYM_RTX_DIR"
/** Microseconds, 1 to 1000000: notify_min_usec of programs that do not set it. Ignored in such privileged programs, too. */
#define ASYM_RTX_NOTIFY_MIN_ENV "ASYM_RTX_NOTIFY_MIN"

/**
 * A program reports in these steps. PID is its process number, N any number that is new; both have no sign and no leading zeroes.
 * 1. It creates the file asym-rtx.PID.N in its user's directory with O_EXCL and mode 0644. It must have one user: the real,
 *    effective and saved user IDs are equal, and it is dumpable (prctl(2)), as after execve(2) of a program that it may read.
 *    Without a directory asymd does not run, or has not seen a process of this user yet: the program tries again later.
 * 2. It allocates the page by fallocate(2), which fails if memory is short, maps it (MAP_SHARED), and fills it. A page has at most
 *    ASYM_RTX_PAGE_MAX bytes.
 * 3. It announces the file by fchmod(2) with mode 0644. asymd gets the name by inotify(7), and reads the page from then on if the
 *    file is a regular one with one link, and belongs to the user to whom the process PID belongs. The program repeats this about
 *    once a second: asymd may have had no place for it.
 * 4. It wakes asymd by writing any byte of the page with pwrite(2). The library writes the field rung.
 * 5. At the end it clears magic, wakes asymd, and removes the file. asymd also stops reading when the file is closed, has another
 *    name or mode, or more names, when the process ends, or when it has another user, as after execve(2) of a set-user-ID program.
 *    It removes no file: the library removes those of processes that have ended.
 * When asymd starts, the directory is another file system, or asymd has removed all files in it: a program whose file was in the
 * earlier one creates another.
 * A program opens both directories and the table by openat2(2) with RESOLVE_CACHED, and then waits for no other user.
 */
#define ASYM_RTX_PAGE_MAX (4096 * 64 + 65536)
#define ASYM_RTX_FILE     "asym-rtx." /**< the beginning of the name */

/* ---- The library: libasym-rtx. ---- */

/** Options of asym_rtx_join(). Zero or NULL selects the default. */
struct asym_rtx_options {
    size_t size;      /**< sizeof(struct asym_rtx_options): fields beyond this size take their defaults */
    const char *dir;  /**< path; default: ASYM_RTX_DIR_ENV, else ASYM_RTX_DIR. Copied */
    uint32_t n_slots; /**< most threads at a time, 1 to 4096; default: 512 */
    /**
     * Least microseconds between two wakeups of asymd; default: ASYM_RTX_NOTIFY_MIN_ENV, else 1000. Larger values mean 1000000.
     */
    uint32_t notify_min_usec;
};

/**
 * Set up the page and announce it to asymd. The first call decides the page and the options. A later call checks whether asymd
 * still has the page, and creates another file if not, at most once a second; asym_rtx_serial_begin() does the same. A program
 * that reports no phases should call this about once a second. Otherwise it is not heard after a restart of asymd. A call costs
 * a few system calls. options may be NULL.
 * Returns 0 if asymd reads the page, or will do so once it runs; -ENOMEM if there is no page: then every call does nothing.
 */
int asym_rtx_join(const struct asym_rtx_options *options);

/** Remove the file. From now on asymd uses the kernel's data alone. asym_rtx_join() joins again. */
void asym_rtx_leave(void);

/** Returns 1 if the page is a file in the directory of asymd, else 0. For diagnostics; a program need not call it. */
int asym_rtx_is_joined(void);

/**
 * Returns the slot of the calling thread. A new slot is ASYM_RTX_WORKING. The library frees the slot when the thread ends.
 * Returns NULL if there is no page or no free slot: then the functions below do nothing for this thread. The slot is valid in
 * this thread alone, until it ends or calls asym_rtx_thread_leave().
 */
struct asym_rtx_slot *asym_rtx_thread(void);

/** Free the calling thread's slot. */
void asym_rtx_thread_leave(void);

/** Set the state of the calling thread. slot is its own slot or NULL. This is one relaxed store. */
static inline void asym_rtx_set(struct asym_rtx_slot *slot, enum asym_rtx_state state)
{
    if (!slot)
        return;
    /* Only this thread writes the word, so no atomic read-modify-write is needed. */
    const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->word, ((word & ~ASYM_RTX_STATE) | (uint64_t)state) + ASYM_RTX_CHANGE, __ATOMIC_RELAXED);
}

/**
 * Mark the calling thread as the one that runs the serial phases, or remove the mark. As long as the thread reports no
 * phases, asymd assumes a serial phase whenever the thread works.
 */
void asym_rtx_master(int is_master);

/**
 * Report that the calling thread begins, or ends, a serial phase: every other thread waits for it. The call wakes asymd, at
 * most once per notify_min. If the last eight serial phases were all shorter than notify_min, the start of the next one does
 * not wake asymd, because the phase ends before asymd can act. asymd reads changes within notify_min after a wakeup when that
 * time is over, and other changes without a wakeup in its next cycle. The call waits for no other user's process. Without a file
 * it creates one, at most once a second.
 */
void asym_rtx_serial_begin(void);
void asym_rtx_serial_end(void);

#ifdef __cplusplus
}
#endif

#endif
