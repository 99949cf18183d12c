/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The frames of asymctl top, from the bus. */
#ifndef ASYM_DAEMON_ASYMCTL_TOP_SOURCE_H
#define ASYM_DAEMON_ASYMCTL_TOP_SOURCE_H

#include <stdint.h>

#include <asym/error.h>

#include "linux/sys/root.h"
#include "top/frame.h"
#include "top/view.h"

/** Keeps the connection between two frames. Start with zeros, and the root. */
struct asym_top_source {
    struct asym_client *client;   /**< NULL: not connected */
    struct asym_top_frame filled; /**< the frame that is being filled */
    struct asym_root root;        /**< whose proc has the command lines; owned */
};

/**
 * Read a frame from asymd. Connects if there is no connection. A program that asymd does not list any more stays for a time
 * (asym_top_frame_keep). Returns 0; the errors of client/client.h, and then *frame keeps the values of the frame before.
 */
int asym_top_source_read(struct asym_top_source *source, struct asym_top_frame *frame, struct asym_error *err);

/** Ask why asymd treats the process as it does. *ret_text: lines, each with a newline; the caller frees it. Returns as above. */
int asym_top_source_why(struct asym_top_source *source, uint32_t pid, char **ret_text, struct asym_error *err);

/** Pause asymd until it is resumed, or resume. Returns as above. */
int asym_top_source_pause(struct asym_top_source *source, bool pause, struct asym_error *err);

/** Switch the policy until asymd ends. Returns as above. */
int asym_top_source_policy(struct asym_top_source *source, const char *name, struct asym_error *err);

/** Carry out one of the actions on a process. Returns as above. */
int asym_top_source_order(struct asym_top_source *source, enum asym_top_action action, uint32_t pid,
                          struct asym_error *err);

/** Close the connection until the next of these calls. */
void asym_top_source_rest(struct asym_top_source *source);

void asym_top_source_done(struct asym_top_source *source);

#endif
