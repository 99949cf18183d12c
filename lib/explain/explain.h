/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * Explains to a user how a thread or a program stands: facts from the monitor, and sentences made of them. Pure. Names of
 * programs and threads come out printable: their bytes are escaped.
 */
#ifndef ASYM_EXPLAIN_EXPLAIN_H
#define ASYM_EXPLAIN_EXPLAIN_H

#include <asym/engine.h>
#include <asym/machine.h>

#include <stdbool.h>
#include <stddef.h>

#include "core/overrides.h"
#include "explain/monitor.h"

/** The facts that the caller adds. All borrowed. */
struct asym_explain_context {
    const struct asym_machine *machine;
    const struct asym_engine_config *config; /**< the policy and the thresholds in force */
    bool paused;
    const struct asym_proc *proc; /**< its process now: id, flags, rule and orders; NULL: not known, or it has ended */
    bool rule_pending;            /**< the rules were not matched with the program yet */
    const struct asym_override *order; /**< the orders of users for its process; NULL: none, or not known */
    /** The masks of the thread that is explained; NULL: not known. */
    const struct asym_mask *mask, *own_mask;
    int nice, own_nice; /**< of the same thread, and without asymd; valid with mask */
};

/** The kinds of answer on a thread. */
enum asym_standing {
    ASYM_STANDING_STEERED_FAST, /**< its target is a fast CPU */
    ASYM_STANDING_STEERED_SLOW, /**< its target is a slow CPU */
    ASYM_STANDING_STEERED,      /**< it has a target, and all CPUs are alike */
    ASYM_STANDING_IDLE,         /**< it did not need a CPU */
    ASYM_STANDING_WAITS,        /**< asymd steers it later: too new, or the next swap period */
    ASYM_STANDING_LEFT_ALONE,   /**< asymd does not steer it */
    ASYM_STANDING_UNSTEERED,    /**< the policy steers nothing */
};

enum { ASYM_EXPLAIN_HOLDERS = 3 };

struct asym_explanation {
    struct asym_explain_context context;
    const struct asym_monitor_thread *thread; /**< the thread; of a program, the one that ran most */
    const struct asym_monitor_app *app;       /**< its application; NULL: not known */
    bool of_program;                          /**< the question was about a program */
    enum asym_standing standing;
    /** The reason for that: as the monitor remembers it, or as it follows from rule and orders since it sleeps. NULL: not known. */
    const struct asym_reason *reason;
    double figure[2];
    asym_usec reason_since;            /**< 0: not known */
    unsigned n_fast_cpus, n_free_fast; /**< fast CPUs; those of them that no thread has as its target */
    unsigned n_own_fast, n_held_fast;  /**< targets of threads of this application, and of others */
    /** Other applications with threads on fast CPUs, most of them first. */
    const struct asym_monitor_app *holders[ASYM_EXPLAIN_HOLDERS];
    /**
     * Other threads of the program that asymd leaves alone until it is told to adopt them: their number, and the first one. The
     * main thread comes last, because its number is also that of the program.
     */
    unsigned n_left_alone;
    const struct asym_monitor_thread *left_alone;
    size_t n_holders;   /**< of all, also beyond the array */
    bool hides_holders; /**< the caller has taken some of them out */
    asym_usec now;      /**< time of the last snapshot */
};

/**
 * Explain a PID or a TID. A number that is both (a process and its first thread) is the program. The result borrows from the
 * monitor and the context. Returns 0; -ESRCH: asymd does not know it (it has ended, or did not run since asymd started).
 */
int asym_explain(const struct asym_monitor *m, const struct asym_explain_context *context, int32_t id,
                 struct asym_explanation *ret);

/**
 * Returns the reason of a thread or program that the monitor remembers with the reason old. No snapshot lists a process that
 * sleeps, but its rule and orders may have changed: then the reason is the exclusion that follows from them, or idle where one has
 * ended. is_current: the last snapshot lists it. proc: as in the context.
 */
const struct asym_reason *asym_explain_reason_now(const struct asym_reason *old, bool is_current,
                                                  const struct asym_proc *proc);

/**
 * Write the sentence on the rule, with a full stop: its name, or the user who has set it, the CPUs that it leaves, and how to
 * undo that. Returns buf; NULL: the rule is not known.
 */
const char *asym_explain_rule(const struct asym_explanation *e, char *buf, size_t size);

/** Returns the name of the rule with its action, for the evidence. Returns buf. */
const char *asym_explain_rule_evidence(const struct asym_explanation *e, char *buf, size_t size);

/** Returns true if a user has set the rule "ignore" (asymctl set PID ignore): asym_explain_rule says all about that. */
bool asym_explain_user_ignores(const struct asym_explanation *e);

/** Returns true if its rule, and its own affinity as far as that is known, leave it a fast CPU. */
bool asym_explain_may_be_fast(const struct asym_explanation *e);

/* An explanation in sentences, and the evidence for it. Names of programs come out printable. */

/** Call say for each sentence, the most important first, each with a full stop. */
void asym_explain_sentences(const struct asym_explanation *e, void (*say)(void *ctx, const char *sentence), void *ctx);

/** Call show for each piece of evidence: a name and a value, for people. */
void asym_explain_evidence(const struct asym_explanation *e,
                           void (*show)(void *ctx, const char *name, const char *value), void *ctx);

/**
 * Write the first sentences: what the program is, and why the thread has its CPU. The journal has them for a change of class.
 * Returns buf.
 */
const char *asym_explain_summary(const struct asym_explanation *e, char *buf, size_t size);

/**
 * Returns the number by which users know an application: of its process, of the process group for a job of several processes; 0: it
 * is a control group. The leader of a process group may have ended.
 */
int32_t asym_explain_number(const struct asym_monitor_app *app);

/** Returns what an application counts as (asym_classify_word). */
const char *asym_explain_class_name(const struct asym_monitor_app *app);

/** Write the sentence of a reason, with a full stop. subject: such as "gzip (4712)". Returns buf. */
const char *asym_explain_reason(const struct asym_reason *reason, const double figure[2], const char *subject,
                                char *buf, size_t size);

#endif
