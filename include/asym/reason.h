/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A reason says why a thread has its CPU, or why asymd does not steer it. A policy defines its reasons as static const objects
 * in its own file. The core defines the reasons for which it excludes threads. Two reasons are the same if their addresses are
 * equal.
 */
#ifndef ASYM_REASON_H
#define ASYM_REASON_H

#include <stdbool.h>
#include <stddef.h>

#include <asym/types.h>

enum asym_reason_kind {
    ASYM_REASON_PLACED,    /**< the policy has given the thread a CPU */
    ASYM_REASON_UNSTEERED, /**< the policy leaves the thread where it is, and reports show it there */
    ASYM_REASON_IDLE,      /**< the thread did not need a CPU: reports only count it */
    ASYM_REASON_EXCLUDED,  /**< asymd must not steer the thread: reports say why */
};

struct asym_reason {
    /** For users: a printf format for the two figures of the decision, in order, as %.Nf or %g; %% is a percent sign.
     * It may leave out the second, or both. */
    const char *text;
    /**
     * For users who ask why: what stands after the name of the thread in a whole sentence, without the full stop. It begins
     * with a verb, and takes the figures as text does. NULL: the text stands in its place, after a colon.
     */
    const char *sentence;
    const char *several; /**< the text for several threads, without figures; NULL: text is used */
    enum asym_reason_kind kind;
    bool rotates;    /**< the policy moves the thread as time passes, even if nothing else changes */
    bool holds_core; /**< the policy keeps all other threads off the thread's core (an exception to rule 3) */
};

/** The core's reasons not to steer a thread, in the order of the reports. */
enum asym_exclusion {
    ASYM_WHY_NONE, /**< asymd may steer it */
    ASYM_WHY_KERNEL,
    ASYM_WHY_SELF,
    ASYM_WHY_FOREIGN_NS,
    ASYM_WHY_OUTSIDE,
    ASYM_WHY_RULE_IGNORE,
    ASYM_WHY_UNLISTED, /**< no rule names its program, and asymd.default is ignore */
    ASYM_WHY_REALTIME,
    ASYM_WHY_NO_SETAFFINITY,
    ASYM_WHY_OWN_MASK,     /**< its affinity mask leaves out CPUs, and asymd did not set that mask */
    ASYM_WHY_FOREIGN,      /**< another program, or the thread itself, changed the mask that asymd had set */
    ASYM_WHY_FOREIGN_NICE, /**< the same with the nice value */
    ASYM_WHY_DENIED,       /**< the kernel refused; figure 0: errno */
    ASYM_WHY_PAUSED,       /**< the user has told asymd to steer nothing for now */
    ASYM_WHY_SETTLING,     /**< figure 0: enforce.settle, seconds */
    ASYM_WHY_FORKED,       /**< fork hold-off; figure 0: seconds left */
    ASYM_WHY_UNKNOWN,      /**< asymd does not know yet which files its process has mapped, or its command line */
    ASYM_WHY_COUNTS_LATE,  /**< its program will size its thread pool by the mask of this thread */
    ASYM_WHY_HARDLY_RAN,   /**< the thread is so new that it may still set its own mask first */
    ASYM_WHY_IDLE,         /**< neither it nor its application needed a CPU */
    ASYM_WHY_NEXT_SWAP,    /**< appeared after the last mapping: waits for the next swap period */
    ASYM_WHY_NOTHING_FREE, /**< its cpuset has no usable CPU */
    ASYM_N_EXCLUSIONS
};

/** The policy leaves the thread alone, and a rule gives it CPUs or a nice value. */
extern const struct asym_reason asym_reason_rule;

/** Returns the reason for an exclusion, or NULL for ASYM_WHY_NONE. */
const struct asym_reason *asym_why(enum asym_exclusion exclusion);

/** Returns the exclusion that follows from an action whose outcome is HANDS_OFF with this -errno (asym_outcome.error). */
enum asym_exclusion asym_why_hands_off(int error);

/** Write the text of the reason, at most size bytes with the NUL; an empty text for NULL. Returns buf. */
const char *asym_reason_text(const struct asym_reason *reason, const double figure[2], char *buf, size_t size);

/** Returns the text for several threads that share the reason but not the figures. A static string. */
const char *asym_reason_several(const struct asym_reason *reason);

/** Returns a duration as a figure: seconds, rounded to the hundredth, so that %g prints few digits. */
static inline double asym_reason_seconds(asym_usec time)
{
    const asym_usec hundredth = ASYM_SEC / 100;
    const asym_usec hundredths = (time + hundredth / 2) / hundredth;
    return (double)hundredths / 100;
}

#endif
