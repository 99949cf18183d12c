/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Patterns for whole lines of asymctl status and watch without a terminal, in 80 columns and LC_ALL=C. The unit test of the
 * verbs tries them on fixed answers, and the integration test of the bus on those of a running asymd.
 */
#ifndef ASYM_TESTS_SUPPORT_SCREEN_LINES_H
#define ASYM_TESTS_SUPPORT_SCREEN_LINES_H

#define SCREEN_HEAD                                                                                                    \
    "asymd [0-9][^ ]* has been running since [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} \\([^()]+\\)"
#define SCREEN_POLICY                                                                                                  \
    "Policy     [a-z][a-z-]* \\((auto chose it: [^()]+|the default|set by [^()]+|set by .+ over the bus)\\)"
/* The first core type, with a name or without one. */
#define SCREEN_MACHINE                                                                                                 \
    "Machine    ([^ ]+ +)?(1 (fast |slow )?CPU|([2-9]|[1-9][0-9]+) ((fast |slow )?CPUs|CPUs alike))( at "              \
    "[0-9]+\\.[0-9]{2}x)?  "                                                                                           \
    "[0-9]+([,-][0-9]+)*( on [0-9]+ cores?)? +[#-]{8,24} +[0-9]{1,3} % busy"
#define SCREEN_CLASS    "(serial|mildly parallel|highly parallel|serial phase|background|idle)"
#define SCREEN_CLASSES  "[0-9]+ " SCREEN_CLASS "(, [0-9]+ " SCREEN_CLASS ")*"
#define SCREEN_PROGRAMS "of (1 program|([2-9]|[1-9][0-9]+) programs)"
#define SCREEN_STEERING                                                                                                \
    "Steering   (1 thread|([2-9]|[1-9][0-9]+) threads)(: [0-9]+ " SCREEN_PROGRAMS " \\(" SCREEN_CLASSES                \
    "\\), [0-9]+ asleep| " SCREEN_PROGRAMS ": " SCREEN_CLASSES ")"
#define SCREEN_CHANGES "Changes    [0-9]+ to threads in the last minute, [0-9]+ since the start"
/* asymctl watch: time, TID, name of the thread, CPUs, what asymd does, and why. */
#define SCREEN_DECISION                                                                                                \
    "[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3} +[1-9][0-9]* [^ ].{14} +(-|[0-9]+)->(-|[0-9]+) +"                     \
    "(steer|release|repair|leave alone) \\(.+\\)"

/** Fails unless a line of text as a whole matches the extended regular expression. */
void screen_assert_line(const char *text, const char *pattern);

/** Returns 1 if a line of text as a whole matches, else 0. */
int screen_has_line(const char *text, const char *pattern);

#endif
