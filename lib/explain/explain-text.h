/* SPDX-License-Identifier: GPL-2.0-or-later */
/** An explanation (explain.h) in sentences, and the evidence for it. Names of programs come out printable. */
#ifndef ASYM_EXPLAIN_EXPLAIN_TEXT_H
#define ASYM_EXPLAIN_EXPLAIN_TEXT_H

#include "explain/explain.h"

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
