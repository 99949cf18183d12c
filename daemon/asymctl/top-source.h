/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The frames of asymctl top, from the bus. */
#ifndef ASYM_DAEMON_ASYMCTL_TOP_SOURCE_H
#define ASYM_DAEMON_ASYMCTL_TOP_SOURCE_H

#include <stdint.h>

#include <asym/error.h>

#include "linux/sys/root.h"
#include "top/frame.h"

/** Keeps the connection between two frames. Start with zeros, and the root. */
struct asym_top_source {
    struct asym_client *client;   /**< NULL: not connected */
    struct asym_top_frame filled; /**< the frame that is being filled */
    struct asym_root root;        /**< whose proc has the command lines; owned */
};

/** Connect if there is no connection. Returns 0; the errors of client/client.h. */
int asym_top_source_connect(struct asym_top_source *source, struct asym_error *err);

/**
 * Read a frame from asymd. Connects if there is no connection. A program that asymd does not list any more stays for a time
 * (asym_top_frame_keep). Returns 0; the errors of client/client.h, and then *frame keeps the values of the frame before.
 */
int asym_top_source_read(struct asym_top_source *source, struct asym_top_frame *frame, struct asym_error *err);

/** Ask why asymd treats the process as it does. *ret_text: lines, each with a newline; the caller frees it. Returns as above. */
int asym_top_source_why(struct asym_top_source *source, uint32_t pid, char **ret_text, struct asym_error *err);

/** Close the connection until the next of these calls. */
void asym_top_source_rest(struct asym_top_source *source);

void asym_top_source_done(struct asym_top_source *source);

#endif
