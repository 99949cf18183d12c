/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/log-limit.h"

#include "base/macro.h"

static bool is_over(const struct asym_log_kind *k, asym_usec now)
{
    return now >= k->since + ASYM_LOG_LIMIT_PERIOD;
}

static struct asym_log_kind *find(struct asym_log_limit *l, const void *kind)
{
    for (size_t i = 0; i < ASYM_LENGTH(l->kinds); i++)
        if (l->kinds[i].kind == kind || !l->kinds[i].kind)
            return &l->kinds[i];
    return &l->kinds[ASYM_LENGTH(l->kinds) - 1];
}

/* A period with messages left out lasts until the log reports their number. */
struct asym_log_kind *asym_log_limit_count(struct asym_log_limit *l, const void *kind, int priority, asym_usec now,
                                           bool *ret_write)
{
    struct asym_log_kind *k = find(l, kind);
    if (!k->kind || (is_over(k, now) && k->n <= ASYM_LOG_LIMIT_MESSAGES))
        *k = (struct asym_log_kind){.kind = kind, .since = now};
    k->n++;
    k->priority = priority;
    *ret_write = k->n <= ASYM_LOG_LIMIT_MESSAGES;
    return k;
}

const struct asym_log_kind *asym_log_limit_due(struct asym_log_limit *l, asym_usec now, bool final, unsigned *ret_n)
{
    for (size_t i = 0; i < ASYM_LENGTH(l->kinds); i++) {
        struct asym_log_kind *k = &l->kinds[i];
        if (!k->kind || k->n <= ASYM_LOG_LIMIT_MESSAGES || (!final && !is_over(k, now)))
            continue;
        *ret_n = k->n - ASYM_LOG_LIMIT_MESSAGES;
        k->n = 0;
        k->since = now;
        return k;
    }
    return NULL;
}
