/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymd itself runs where it is in nobody's way: not on CPUs that are claimed, not on fast ones where there are slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "base/mask.h"
#include "daemon/aside.h"

static struct asym_mask cpus(unsigned bits)
{
    struct asym_mask m = {0};
    for (unsigned c = 0; c < 32; c++)
        if (bits & 1u << c)
            asym_mask_set(&m, c);
    return m;
}

static unsigned bits(struct asym_mask m)
{
    unsigned n = 0;
    ASYM_MASK_FOREACH (c, &m)
        n |= 1u << c;
    return n;
}

/* Masks as bits of CPUs. claimed: a task with a claim on each; held: one without a claim on each. */
static const struct row {
    const char *what;
    unsigned online, slow, own, claimed, held, expect;
} rows[] = {
    {"alike, nothing claimed: as started", 0xff, 0, 0xff, 0, 0, 0xff},
    {"alike, CPU 3 claimed", 0xff, 0, 0xff, 0x08, 0, 0xf7},
    {"a thread without a claim may have company", 0xff, 0, 0xff, 0, 0x0f, 0xff},
    {"alike, all claimed: as started", 0xff, 0, 0xff, 0xff, 0, 0xff},
    {"slow CPUs", 0xff, 0x0f, 0xff, 0x80, 0, 0x0f},
    {"slow CPUs that nobody claims", 0xff, 0x0f, 0xff, 0x83, 0, 0x0c},
    {"all slow CPUs claimed: a fast one that nobody claims", 0xff, 0x0f, 0xff, 0x8f, 0, 0x70},
    {"everything claimed: slow CPUs", 0xff, 0x0f, 0xff, 0xff, 0, 0x0f},
    {"never beyond what it was started with", 0xff, 0x0f, 0xf1, 0x01, 0, 0xf0},
    {"started on fast CPUs only", 0xff, 0x0f, 0xf0, 0x10, 0, 0xe0},
    {"offline CPUs are no choice", 0xfc, 0x0f, 0xff, 0x0c, 0, 0xf0},
    {"started where nothing is online any more: as started", 0xf0, 0, 0x03, 0, 0, 0x03},
};

static void asymd_keeps_out_of_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        static struct asym_machine m;
        struct asym_plan_task tasks[16] = {{0}};
        struct asym_plan plan = {.tasks = tasks};
        m = (struct asym_machine){.online = cpus(rows[i].online), .slow = cpus(rows[i].slow)};
        m.usable = m.online;
        m.fast = asym_mask_minus(&m.online, &m.slow);
        m.n_types = rows[i].slow ? 2 : 1;
        for (unsigned c = 0; c < 8; c++)
            if ((rows[i].claimed | rows[i].held) & 1u << c)
                tasks[plan.n_tasks++] = (struct asym_plan_task){.target = (int32_t)c,
                                                                .claim = (rows[i].claimed & 1u << c) != 0};
        tasks[plan.n_tasks++] = (struct asym_plan_task){.target = -1, .claim = true};
        const struct asym_mask own = cpus(rows[i].own);
        const unsigned found = bits(asym_aside_choose(&own, &m, &plan));
        if (found != rows[i].expect)
            fail_msg("%s: %#x, not %#x", rows[i].what, found, rows[i].expect);
    }
}

static void before_the_first_plan_it_is_on_slow_cpus(void **state)
{
    (void)state;
    static struct asym_machine m;
    m = (struct asym_machine){.online = cpus(0xff), .slow = cpus(0x0f), .fast = cpus(0xf0), .n_types = 2};
    const struct asym_mask own = cpus(0xff);
    assert_int_equal(bits(asym_aside_choose(&own, &m, NULL)), 0x0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asymd_keeps_out_of_the_way),
        cmocka_unit_test(before_the_first_plan_it_is_on_slow_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
