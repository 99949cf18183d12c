/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/decision-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *asym_decision_cpus(int32_t from, int32_t to, char buf[ASYM_DECISION_CPUS])
{
    char before[12] = "-", after[12] = "-";
    if (from >= 0)
        snprintf(before, sizeof before, "%" PRId32, from);
    if (to >= 0)
        snprintf(after, sizeof after, "%" PRId32, to);
    snprintf(buf, ASYM_DECISION_CPUS, "%3s->%-3s", before, after);
    return buf;
}

const char *asym_decision_what(const char *what, const char *reason, char *buf, size_t size)
{
    char shown[64], why[512];
    asym_text_escape(what, strlen(what), shown, sizeof shown);
    asym_text_escape(reason, strlen(reason), why, sizeof why);
    snprintf(buf, size, *why ? "%s (%s)" : "%s", shown, why);
    return buf;
}
