/* SPDX-License-Identifier: GPL-2.0-or-later */
/** The answer of asymctl why: asymd's sentences on a process or a thread, their evidence, and the last decisions. */
#ifndef ASYM_DAEMON_ASYMCTL_WHY_H
#define ASYM_DAEMON_ASYMCTL_WHY_H

#include <jansson.h>

#include "client/client.h"
#include "report/columns.h"

/** The most decisions that are printed. */
#define ASYM_WHY_DECISIONS 10

struct asym_why_decision {
    uint32_t tid;
    const struct asym_client_decision *decision; /**< borrowed from the threads below */
};

struct asym_why {
    uint32_t id; /**< of the process or the thread */
    struct asym_client_explanation explanation;
    struct asym_client_thread *threads; /**< owned: those whose decisions were asked for */
    size_t n_threads;
    struct asym_why_decision last[ASYM_WHY_DECISIONS]; /**< the newest first */
    size_t n_last;
};

/** Ask asymd. Returns 0; an error of client.h with err. */
int asym_why_ask(struct asym_client *client, uint32_t id, struct asym_why *ret, struct asym_error *err);

void asym_why_done(struct asym_why *why);

/** Print the sentences, then the evidence, then the decisions. Returns 0; -EIO. */
int asym_why_text(const struct asym_why *why, const struct asym_terminal *terminal);

/** { "id", "sentences", "evidence": [ { "name", "value" } ], "decisions" }. A new reference; NULL: no memory. */
json_t *asym_why_json(const struct asym_why *why);

#endif
