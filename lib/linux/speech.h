/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Which programs say what their threads do, and which might be spinning without saying so: seen from outside, whoever asks.
 */
#ifndef ASYM_LINUX_SPEECH_H
#define ASYM_LINUX_SPEECH_H

#include <stdbool.h>

#include <asym/snapshot.h>

enum asym_speech {
    ASYM_SPEECH_NONE,
    ASYM_SPEECH_SPEAKS,  /**< has a page of include/asym/rtx.h */
    ASYM_SPEECH_SUSPECT, /**< has an OpenMP runtime, and threads that never pause: they may be spinning at barriers */
};

/** At least two threads that were runnable for the whole interval. */
bool asym_speech_never_pauses(const struct asym_snapshot *s, const struct asym_app *app);

/** Does it take its maps to tell of this application? Not where it has spoken, or is no process. */
bool asym_speech_needs_maps(const struct asym_app *app);

/** Of an application of the snapshot, by the bits of linux/maps.h of its process; 0 where they are not known. */
enum asym_speech asym_speech_of(unsigned maps, const struct asym_snapshot *s, const struct asym_app *app);

#endif
