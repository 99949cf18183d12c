/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The duty of a thread: the share of the time in which it would run if it never had to wait, as a mean over about the last
 * second. It is the time that it ran, by the time that it did not wait. So a thread that computes all the time has a duty of 1 also
 * where it shares its CPU, and one that sleeps has the same duty alone and beside others.
 */
#ifndef ASYM_CORE_DUTY_H
#define ASYM_CORE_DUTY_H

#include <stdbool.h>

#include <asym/types.h>

/** A thread that holds its CPU becomes light below this share of the limit. */
#define ASYM_DUTY_STAYS 0.8

/** All zero: nothing is known of the thread. */
struct asym_duty {
    asym_usec at;     /**< the end of the last interval */
    float ran, ready; /**< means: shares of the time in which it ran, and in which it did not wait */
    bool light;       /**< its duty is below the limit, with hysteresis */
};

/** Returns the share of the means that is left after an interval. A step computes it once for all threads. */
double asym_duty_decay(asym_usec time);

/**
 * Add the interval that ends now; decay is asym_duty_decay(interval). In a gap since the last interval the thread slept. A thread
 * becomes light when its duty falls below four fifths of from, and is light no more when its duty reaches from; a new one is light
 * below from. An interval that it has already does not count again.
 */
void asym_duty_add(struct asym_duty *d, asym_usec now, asym_usec interval, double decay, double running,
                   double runnable, double from);

/** Returns what is left of the duty of a thread that has slept since its last interval. It fades over about 0.3 s. */
double asym_duty_asleep(const struct asym_duty *d, asym_usec now);

/** Returns the duty, 0..1; 1 as long as the thread has only waited, or nothing is known of it. */
double asym_duty_share(const struct asym_duty *d);

/** The hysteresis: returns whether a duty is below from, or, unless it was light, below ASYM_DUTY_STAYS times from. */
bool asym_duty_is_light(double duty, bool was, double from);

#endif
