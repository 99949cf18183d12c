/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reason for the policy, and the sentence on a rule, name the user who has set it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"
#include "daemon/asymctl/user-name.h"

static void a_user_has_a_name_where_the_machine_knows_it(void **state)
{
    static const struct {
        const char *sentence, *shown;
    } rows[] = {
        {"set by uid 0 over the bus", "set by root (uid 0) over the bus"},
        {"set by uid 4294967294 over the bus", "set by uid 4294967294 over the bus"},
        {"set by uid x", "set by uid x"},
        {"A rule that uid 0 has set (asymctl set 3 slow)", "A rule that root (uid 0) has set (asymctl set 3 slow)"},
        {"A rule that a user has set", "A rule that a user has set"},
        {"spin (3): set by uid 0 over", "spin (3): set by uid 0 over"},
        {"the default", "the default"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[64];
        assert_string_equal(asym_name_user(rows[i].sentence, text, sizeof text), rows[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_has_a_name_where_the_machine_knows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
