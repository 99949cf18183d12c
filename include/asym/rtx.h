/* SPDX-License-Identifier: MIT */
/**
 * Runtime extensions: a program says of its threads what the kernel cannot see (Saez 2010, 2.2).
 *
 * A thread that spins at a barrier is running for the kernel. So a program, or the runtime that it is built on, keeps a
 * page of memory in which each thread has a slot. asymd makes that memory and hands it to the program once. From then on a
 * change of state is one relaxed store: no system call, no lock, no clock. Only the start and the end of a serial phase wake
 * asymd.
 *
 * Nothing here is an order: asymd decides. Nothing here can fail in a way that the program would have to mind: where
 * there is no asymd, or no longer, the stores go to memory that nobody reads, and the library joins again later. No call
 * changes errno.
 *
 * How long a thread has been waiting is not written by the thread: reading a clock would cost more than the change of
 * state itself. asymd looks twice, and a word that is the same in both looks has not changed in between, as each change
 * counts up.
 */
#ifndef ASYM_RTX_H
#define ASYM_RTX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The page: all numbers in the machine's byte order. ---- */

#define ASYM_RTX_MAGIC              UINT32_C(0x58545241) /* "ARTX" on a little-endian machine */
#define ASYM_RTX_VERSION            2                    /* of the layout: a reader refuses a higher one */
#define ASYM_RTX_LINE               64                   /* no two slots share a cache line of this size */

#define ASYM_RTX_NOTIFY_MIN_DEFAULT 1000
#define ASYM_RTX_NOTIFY_MIN_MAX     1000000

/**
 * The page begins with this. The program writes it, magic last, into memory that asymd has made: before magic is there,
 * asymd reads nothing else. A later version may append fields to it and to the slots: a reader goes by header_size and
 * slot_size, so that old programs and new daemons live together. Both are multiples of ASYM_RTX_LINE, and the page is at
 * least header_size + n_slots * slot_size bytes. What is reserved is 0, and 0 is the default of what takes its place.
 */
struct asym_rtx_header {
    uint32_t magic;       /**< ASYM_RTX_MAGIC */
    uint32_t version;     /**< ASYM_RTX_VERSION */
    uint32_t header_size; /**< bytes before the first slot */
    uint32_t slot_size;   /**< bytes from one slot to the next */
    uint32_t n_slots;
    uint32_t n_used; /**< slots behind these have never been used. Atomic; only rises */
    /**
     * Microseconds; 0: ASYM_RTX_NOTIFY_MIN_DEFAULT; more than ASYM_RTX_NOTIFY_MIN_MAX is taken for that. What changes within
     * this time after the program has woken asymd need not be told: asymd looks again when it is over, but no sooner than it
     * answers anybody. Read once, with the rest of the header. First of what was reserved in older programs.
     */
    uint32_t notify_min_usec;
    uint32_t reserved[9];
};

/** A thread's slot. Only that thread writes its word. */
struct asym_rtx_slot {
    uint64_t word; /**< state, marks and count, as below; 0: says nothing. Atomic */
    int32_t tid;   /**< as gettid(2) has it; 0: the slot is free. Atomic */
    uint32_t reserved[13];
};

/** What a thread does, in the lowest bits of its word. */
enum asym_rtx_state {
    ASYM_RTX_SILENT = 0,   /**< says nothing: the kernel's word is taken */
    ASYM_RTX_WORKING = 1,  /**< does something useful, or would if it had a CPU */
    ASYM_RTX_SPINNING = 2, /**< waits for other threads of the program, perhaps without giving up its CPU */
    ASYM_RTX_SLEEPING = 3, /**< waits and has given up its CPU, or is about to */
};

#define ASYM_RTX_STATE  UINT64_C(0x3)  /**< mask of enum asym_rtx_state */
#define ASYM_RTX_MASTER UINT64_C(0x4)  /**< the thread that runs the serial phases */
#define ASYM_RTX_PHASES UINT64_C(0x8)  /**< it tells when they begin and end ... */
#define ASYM_RTX_SERIAL UINT64_C(0x10) /**< ... and is in one: every thread that waits now is idle */
#define ASYM_RTX_MARKS  (ASYM_RTX_MASTER | ASYM_RTX_PHASES | ASYM_RTX_SERIAL)
#define ASYM_RTX_CHANGE UINT64_C(0x100000000) /**< added at each change: the upper half counts changes, and wraps */

/* ---- The socket. ---- */

/** Of type SOCK_SEQPACKET, in the daemon's directory. */
#define ASYM_RTX_SOCKET "/run/asymd/rtx"

/** Overrides the path; not heeded in a program that was given privileges by being executed. */
#define ASYM_RTX_SOCKET_ENV "ASYM_RTX_SOCKET"
/** Microseconds, 1 to 1000000: notify_min_usec of programs that do not set it. Not heeded in privileged ones. */
#define ASYM_RTX_NOTIFY_MIN_ENV "ASYM_RTX_NOTIFY_MIN"

/**
 * The one message of the protocol: asymd sends it to a program that has connected and that it has a place for, with two
 * descriptors in an SCM_RIGHTS control message, in this order: a memfd of page_size bytes, all zero, sealed against
 * shrinking and growing; and an eventfd that does not block. The program maps as much of the memfd as it needs, writes the
 * header, and then writes to the eventfd once; a page with no header after a few seconds is refused. The memory is charged
 * to the program as it touches it: fallocate(2) tells whether there is enough, where a first store could be a SIGBUS.
 *
 * The program sends nothing: asymd closes a connection on which anything arrives. A connection that asymd has no place for
 * is closed without a message; trying again more often than once a second is refused sooner. The connection stays open as
 * long as the page is to be read. asymd goes by the SO_PEERCRED of the socket: slots of threads of other processes than the
 * one that connected are ignored.
 */
struct asym_rtx_handshake {
    uint32_t magic;   /**< ASYM_RTX_MAGIC */
    uint32_t version; /**< ASYM_RTX_VERSION: of the message, and the highest of a page that asymd reads */
    uint32_t size;    /**< of this message */
    uint32_t
        page_size; /**< bytes of the memfd, a multiple of the machine's page size: 4096 slots of 64 bytes and more */
};

/* ---- The library: libasym-rtx. ---- */

/** What may be chosen. Zero or NULL takes the default. */
struct asym_rtx_options {
    size_t size;        /**< sizeof(struct asym_rtx_options): what lies behind it takes the default, too */
    const char *socket; /**< path; default: ASYM_RTX_SOCKET_ENV, else ASYM_RTX_SOCKET. Copied */
    uint32_t n_slots;   /**< threads at a time: 512; 1 to 4096 */
    /** asymd is woken at most this often: ASYM_RTX_NOTIFY_MIN_ENV, else 1000. More than 1000000 is taken for that. */
    uint32_t notify_min_usec;
};

/**
 * Set up the page, connect to asymd and wait at most 10 ms for its answer. The page and the options are those of the first
 * call; further calls look whether asymd is still there, and connect again if not, at most once a second; only a call that
 * has just connected waits. asym_rtx_serial_begin() does the same without waiting: while an answer is due it looks for it at
 * most once a millisecond. A program that tells of no phases calls this now and then, or is not heard again once asymd was
 * restarted: a few system calls, so once a second or so. options may be NULL.
 * Returns 0: asymd reads the page or will when it is there; -ENOMEM: there is no page, and every call does nothing.
 */
int asym_rtx_join(const struct asym_rtx_options *options);

/** Say goodbye: asymd goes by the kernel's word alone from now on, and asym_rtx_join() joins again. */
void asym_rtx_leave(void);

/** 1 when asymd has handed out a page on this connection, else 0. For people; nothing depends on it. */
int asym_rtx_is_joined(void);

/**
 * The calling thread's slot, ASYM_RTX_WORKING when it is new; freed when the thread ends. NULL where there is no page or
 * no slot left: then nothing can be said of this thread, and the functions below do nothing. Valid in this thread
 * alone, until it ends or calls asym_rtx_thread_leave().
 */
struct asym_rtx_slot *asym_rtx_thread(void);

/** Free the calling thread's slot. */
void asym_rtx_thread_leave(void);

/** Say what the calling thread does. slot: its own, or NULL. One relaxed store. */
static inline void asym_rtx_set(struct asym_rtx_slot *slot, enum asym_rtx_state state)
{
    if (!slot)
        return;
    /* Nobody else writes the word: reading it back is a plain load. */
    const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->word, ((word & ~ASYM_RTX_STATE) | (uint64_t)state) + ASYM_RTX_CHANGE, __ATOMIC_RELAXED);
}

/**
 * Mark the calling thread as the one that runs the serial phases, or take the mark back. As long as it tells of no
 * phases, it counts as in a serial phase whenever it works.
 */
void asym_rtx_master(int is_master);

/**
 * The calling thread begins, or ends, a serial phase: every other thread waits for it. Wakes asymd, at most once per
 * notify_min; and where the last eight serial phases were all shorter than that, not at the next one's start: it is over
 * before anybody could act. What comes within notify_min after a wake asymd sees when that is over, and what else was not
 * notified at its next look. Never blocks; where there is no connection it connects again, at most once a second.
 */
void asym_rtx_serial_begin(void);
void asym_rtx_serial_end(void);

#ifdef __cplusplus
}
#endif

#endif
