/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mask.h"
#include "base/text.h"
#include "report/columns.h"

const struct asym_alike *asym_describe_alike(const struct asym_machine *m, const struct asym_topology_notes *notes)
{
    const struct asym_situation_facts facts = {
        .machine = m,
        .hidden = notes && notes->hidden,
        .unordered = notes && notes->unordered,
        .unknown = notes && notes->unknown,
    };
    return asym_situation_alike(&facts);
}

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
    char line[256];
    struct asym_text text = asym_text_in(line, sizeof line);
    unsigned groups = 0;
    for (; !asym_mask_empty(&left); groups++) {
        const uint32_t kib = m->cpus[asym_mask_next(&left, 0)].l3_kib;
        struct asym_mask alike = {0};
        char cpus[96], amount[32];
        ASYM_MASK_FOREACH (c, &left)
            if (m->cpus[c].l3_kib == kib)
                asym_mask_set(&alike, (unsigned)c);
        left = asym_mask_minus(&left, &alike);
        format_size(kib, amount, sizeof amount);
        asym_text_add(&text, "%s %s on %s", groups ? "," : "L3:", amount,
                      asym_mask_format_list(&alike, cpus, sizeof cpus));
    }
    if (groups < 2)
        return false;
    snprintf(buf, size, "%s", line);
    return true;
}
