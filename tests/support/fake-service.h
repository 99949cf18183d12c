/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A service of org.asymd.Manager with fixed answers, on a socket of its own, for tests of what asymctl prints. */
#ifndef ASYM_TESTS_SUPPORT_FAKE_SERVICE_H
#define ASYM_TESTS_SUPPORT_FAKE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>

enum fake_service_kind {
    FAKE_SERVICE_PLAIN,   /**< a machine of 4 fast and 4 slow CPUs, with three programs */
    FAKE_SERVICE_PAUSED,  /**< the same, paused until a time */
    FAKE_SERVICE_ALIKE,   /**< as PLAIN, and no CPU counts as slow */
    FAKE_SERVICE_HOSTILE, /**< programs whose names try to write to the terminal or to pass for a user, and a thousand */
    FAKE_SERVICE_DENIED,  /**< every call that changes something is denied */
    FAKE_SERVICE_REFUSES, /**< such calls are not possible, for a reason */
    FAKE_SERVICE_FULL,    /**< refuses all calls, as if too many waited */
    FAKE_SERVICE_OTHER,   /**< reports of another version of the interface */
    FAKE_SERVICE_SILENT,  /**< accepts connections, and says nothing */
    FAKE_SERVICE_ENDS,    /**< ends after the second decision, when it is asked for more */
    FAKE_SERVICE_NO_NAME, /**< a system bus on which no program has the name of asymd; every user may connect */
    FAKE_SERVICE_AGAIN,   /**< another asymd answers after the second decision, which has made more of them */
    FAKE_SERVICE_STUCK,   /**< answers no question for decisions after the second one */
    FAKE_SERVICE_MACHINE, /**< a machine of that many CPUs and programs: fake_service_run */
    FAKE_SERVICE_BEHIND,  /**< has two decisions in two reports, and does not remember two before them */
};

/**
 * Start it in a child, which ends with the test. Sets the environment variable of asymctl to its socket. Asserts. Only one at
 * a time.
 */
void fake_service_start(enum fake_service_kind kind);

/** A machine with so many CPUs and programs, whose counters come after so many milliseconds. */
struct fake_machine {
    unsigned cpus, apps, delay;
};

/** Serve on a socket, in this process, one client after the other. Prints a line for each call. Does not return. */
void fake_service_run(const char *path, const struct fake_machine *of) __attribute__((noreturn));

/** End it, and unset the variable. */
void fake_service_stop(void);

/** The changing calls that it got since its start, each as "Pause 90;". Static. */
const char *fake_service_calls(void);

#endif
