/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/attributes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mask.h"
#include "daemon/columns.h"

static void format_size(uint32_t kib, char *buf, size_t size)
{
    if (kib == 0)
        snprintf(buf, size, "none");
    else if (kib % 1024 == 0)
        snprintf(buf, size, "%" PRIu32 " MiB", kib / 1024);
    else
        snprintf(buf, size, "%" PRIu32 " KiB", kib);
}

bool asym_describe_favoured(const struct asym_machine *m, unsigned type, char *buf, size_t size)
{
    struct asym_mask favoured;
    if (!asym_machine_favoured(m, type, &favoured))
        return false;
    asym_columns_cpus(&favoured, 64, buf, size);
    return true;
}

bool asym_describe_l3(const struct asym_machine *m, char *buf, size_t size)
{
    struct asym_mask left = m->usable;
    char text[256] = "L3:";
    unsigned groups = 0;
    for (; !asym_mask_empty(&left); groups++) {
        const uint32_t kib = m->cpus[asym_mask_next(&left, 0)].l3_kib;
        struct asym_mask alike = {0};
        char cpus[96], amount[32];
        const size_t used = strlen(text);
        ASYM_MASK_FOREACH (c, &left)
            if (m->cpus[c].l3_kib == kib)
                asym_mask_set(&alike, (unsigned)c);
        left = asym_mask_minus(&left, &alike);
        format_size(kib, amount, sizeof amount);
        snprintf(text + used, sizeof text - used, "%s %s on %s", groups ? "," : "", amount,
                 asym_mask_format_list(&alike, cpus, sizeof cpus));
    }
    if (groups < 2)
        return false;
    snprintf(buf, size, "%s", text);
    return true;
}
