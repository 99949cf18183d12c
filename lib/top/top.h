/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The screen of asymctl top, without a terminal: what it shows, what the user chose, and the text. */
#ifndef ASYM_TOP_TOP_H
#define ASYM_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <asym/types.h>

/*
 * A frame is the report of asymd on its status (org.asymd.Manager(5)) with these members more: paused_for_us, the time that is left
 * of a pause, 0: until the user resumes; and of each application command, the command line without the directory of the program,
 * user, the name of its user, and seen_us, when asymd listed it last. A member that is missing counts as 0 or "". Texts may have
 * any bytes: the layout makes them printable.
 */

/** Returns the applications of a frame: an array. */
static inline json_t *asym_top_apps(const json_t *frame)
{
    return json_object_get(frame, "applications");
}

/** An idle program keeps its row for this long: else rows would come and go with each pause of a program. */
#define ASYM_TOP_KEEP (10 * ASYM_SEC)

/**
 * Add the applications of the frame before that asymd does not list now, as idle ones, if asymd listed them in the last
 * ASYM_TOP_KEEP, and they have not ended. Returns 0; -ENOMEM.
 */
int asym_top_frame_keep(json_t *frame, const json_t *before, asym_usec now, bool (*has_ended)(uint32_t pid));

/**
 * Returns the application of that frame with this PID, cgroup and comm; NULL: there is none. hint: where it may stand.
 */
json_t *asym_top_frame_find(const json_t *frame, const json_t *app, size_t hint);

/** Returns the name of an application: that of its program, or the last part of a cgroup's path. Owned by app. */
const char *asym_top_name(const json_t *app);

/** The CPUs of a type of core. */
struct asym_top_type {
    const char *name;                     /**< owned by the report; "": none */
    double speed;                         /**< beside the other types */
    bool fast;                            /**< the first of them is, by the policy */
    unsigned n, n_fast, n_cores, threads; /**< CPUs, fast ones, cores; threads that are steered there */
    double busy;                          /**< the sum of their loads, 0 to n */
    struct asym_mask cpus;
};

/** Collect the CPUs of a type out of a report on the status. Returns false if it has none. */
bool asym_top_type(const json_t *status, int64_t type, struct asym_top_type *ret);

/** Returns the lowest type of the report that is at least that; ASYM_MAX_CPUS: there is none. */
int64_t asym_top_type_from(const json_t *status, int64_t from);

/**
 * Returns how long top waits between two frames: the interval, or longer, so that frames that take that much CPU time take at
 * most 1 % of a CPU.
 */
asym_usec asym_top_pace(asym_usec interval, asym_usec cpu_time);

/* The choices of the user of asymctl top: order, filter, cursor. Keys change them. */

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

/** The applications that pass the filter, in order: indexes into those of the frame. An order of zeros is empty. */
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
int asym_top_order_make(struct asym_top_order *order, const json_t *frame, const struct asym_top_view *view);

void asym_top_order_done(struct asym_top_order *order);

/** Write the value of a column. Returns buf. */
const char *asym_top_value(const json_t *app, enum asym_top_column column, char *buf, size_t size);

/** Put the cursor on the line of its application, or, if it is gone, on the application of its line. */
void asym_top_follow(struct asym_top_view *view, const json_t *frame, const struct asym_top_order *order);

/** Act on a key. A change of the filter or of the order counts from the next asym_top_order_make on. */
enum asym_top_action asym_top_key(struct asym_top_view *view, const json_t *frame, const struct asym_top_order *order,
                                  uint32_t key);

/* The text of a screen: pieces, each with its place. A piece never reaches the place of the next one. */

enum asym_top_style {
    ASYM_TOP_PLAIN,
    ASYM_TOP_HEADING,  /**< of the table */
    ASYM_TOP_SELECTED, /**< the application under the cursor */
    ASYM_TOP_ALERT,    /**< paused; asymd does not answer */
    ASYM_TOP_FAST,     /**< a fast type of core */
    ASYM_TOP_BUSY,     /**< a bar */
    ASYM_TOP_N_STYLES,
};

struct asym_top_piece {
    unsigned row, column, columns; /**< from 0; the text takes at most that many columns */
    enum asym_top_style style;
    size_t text; /**< where it starts in the page's text. Ends in NUL; is valid UTF-8 without control characters. */
};

struct asym_top_page {
    unsigned width; /**< columns, 1 or more */
    unsigned row;   /**< the row that is written; at the end: the number of rows */
    int error;      /**< 0; -ENOMEM: some pieces are missing */
    struct asym_top_piece *pieces;
    size_t n_pieces, pieces_size;
    char *text;
    size_t used, text_size;
};

/** Start a page of that width. The memory of the page before is used again. A page of zeros is empty. */
void asym_top_page_start(struct asym_top_page *page, unsigned width);

/**
 * Write text into columns of the current row. Cuts it to them, and to the width of the page; makes it printable. Returns the
 * column after the text.
 */
unsigned asym_top_put(struct asym_top_page *page, unsigned column, unsigned columns, enum asym_top_style style,
                      const char *text);

/** Do the same with a formatted text of up to 511 bytes. */
unsigned asym_top_format(struct asym_top_page *page, unsigned column, unsigned columns, enum asym_top_style style,
                         const char *format, ...) __attribute__((format(printf, 5, 6)));

/** Print the page as text, without styles and without blanks at the ends of lines. Returns 0; -ENOMEM: page->error. */
int asym_top_print(const struct asym_top_page *page, FILE *out);

void asym_top_page_done(struct asym_top_page *page);

/*
 * The screen of asymctl top, from a frame, the view of the user and the order of the applications. A pure function.
 *
 * From the top: one line about asymd; the CPUs by type of core, with what runs there; the applications as a table; a line with
 * the keys. A screen without room for a line per three CPUs gets one line per type of core. A narrow screen gets fewer columns
 * of the table. Texts of the user's screen replace the table: the help, and why an application is treated as it is.
 */

/**
 * Lay out the page for view->columns and view->rows; with rows = 0 the page has as many rows as it needs. *page must be a page
 * of zeros, or an earlier page. Sets view->first and view->page_lines, for the next key. Returns 0; -ENOMEM.
 */
int asym_top_layout(const json_t *frame, struct asym_top_view *view, const struct asym_top_order *order,
                    struct asym_top_page *page);

/* The parts of the screen, for top-layout.c. Each starts at the current row of the page, and ends on a row of its own. */

/** Write the CPUs into that many rows at most. */
void asym_top_put_cpus(struct asym_top_page *page, const json_t *frame, size_t rows);

#endif
