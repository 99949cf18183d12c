/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The choices of the user of asymctl top: order, filter, cursor. Keys change them. */
#ifndef ASYM_TOP_VIEW_H
#define ASYM_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "top/frame.h"

/** The columns of the table, in their order. */
enum asym_top_column {
    ASYM_TOP_PID,
    ASYM_TOP_USER,
    ASYM_TOP_CPU, /**< the CPU time that it used */
    ASYM_TOP_COMMAND,
    ASYM_TOP_CLASS,
    ASYM_TOP_RUNNABLE,
    ASYM_TOP_THREADS,
    ASYM_TOP_STEERED,
    ASYM_TOP_SHARE, /**< on fast CPUs */
    ASYM_TOP_MOVES,
    ASYM_TOP_REASON,
    ASYM_TOP_N_COLUMNS,
};

enum asym_top_mode {
    ASYM_TOP_TABLE,
    ASYM_TOP_FILTER,  /**< keys change the filter */
    ASYM_TOP_POLICY,  /**< keys change the name of a policy */
    ASYM_TOP_CONFIRM, /**< view->question */
    ASYM_TOP_WHY,     /**< the text of view->why */
    ASYM_TOP_HELP,
};

/** The action of the caller after a key. */
enum asym_top_action {
    ASYM_TOP_DRAW,
    ASYM_TOP_QUIT,
    ASYM_TOP_ASK_WHY, /**< set view->why for view->pid, which is not 0, and the mode ASYM_TOP_WHY */
    /* After a question. Those on a process are about view->asked_pid, which is not 0. */
    ASYM_TOP_PAUSE,      /**< pause asymd, or resume if it is paused */
    ASYM_TOP_SET_POLICY, /**< to view->policy */
    ASYM_TOP_SET_FAST,
    ASYM_TOP_SET_SLOW,
    ASYM_TOP_SET_IGNORE,
    ASYM_TOP_SET_AUTO,
};

struct asym_top_view {
    unsigned columns; /**< of the screen */
    unsigned rows;    /**< of the screen; 0: as many as the frame needs, and neither cursor nor keys (--once) */
    enum asym_top_column sort;
    bool reverse; /**< false: numbers fall, texts rise */
    enum asym_top_mode mode;
    char filter[64];             /**< part of a command, a user, a cgroup or a PID; upper and lower case are alike */
    char policy[48];             /**< the user types it */
    const char *const *policies; /**< the names that there are, ending in NULL; borrowed; NULL: not known */
    /* The question is about the process that had the cursor when the user pressed the key. */
    enum asym_top_action asked;
    uint32_t asked_pid;
    char question[160];
    /* The cursor stays on its application while the order changes. If the application is gone, it stays on the line. */
    uint32_t pid;
    char cgroup[128];
    size_t line;
    size_t first;      /**< the first line of the table, or of a text, on the screen */
    size_t page_lines; /**< the lines of the table, or of the text, on the screen */
    char alert[160];   /**< "asymd does not answer"; "": none */
    char message[160]; /**< the result of an action, until the next key; "": none */
    asym_usec every;   /**< the time between two frames, if top has made it longer than the user said; else 0 */
    const char *why;   /**< lines, each with a newline; borrowed */
};

/** The applications that pass the filter, in order: indexes into frame->apps. An order of zeros is empty. */
struct asym_top_order {
    uint32_t *index, *scratch;
    size_t n, allocated;
};

/** Keys that are no characters. Characters are their Unicode number. */
enum asym_top_special_key {
    ASYM_TOP_KEY_UP = 0x110000,
    ASYM_TOP_KEY_DOWN,
    ASYM_TOP_KEY_PAGE_UP,
    ASYM_TOP_KEY_PAGE_DOWN,
    ASYM_TOP_KEY_HOME,
    ASYM_TOP_KEY_END,
    ASYM_TOP_KEY_ENTER,
    ASYM_TOP_KEY_ESCAPE,
    ASYM_TOP_KEY_BACKSPACE,
    ASYM_TOP_KEY_NONE,
};

/** Filter and sort the applications of the frame. Returns 0; -ENOMEM, and then the order is empty. */
int asym_top_order_make(struct asym_top_order *order, const struct asym_top_frame *frame,
                        const struct asym_top_view *view);

void asym_top_order_done(struct asym_top_order *order);

/** Write the value of a column. Returns buf. */
const char *asym_top_value(const struct asym_top_app *app, enum asym_top_column column, char *buf, size_t size);

/** Put the cursor on the line of its application, or, if it is gone, on the application of its line. */
void asym_top_follow(struct asym_top_view *view, const struct asym_top_frame *frame,
                     const struct asym_top_order *order);

/** Act on a key. A change of the filter or of the order counts from the next asym_top_order_make on. */
enum asym_top_action asym_top_key(struct asym_top_view *view, const struct asym_top_frame *frame,
                                  const struct asym_top_order *order, uint32_t key);

#endif
