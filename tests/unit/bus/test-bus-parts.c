/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "bus/bus.h"

static void names_become_text_that_d_bus_carries(void **state)
{
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"a\tb\x7f", "a\tb\x7f"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xc3", "??"},
        {"\xc0\xaf", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xef\xbf\xbf", "???"},
        {"\xe2\x82", "??"},
    };
    char buf[32];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(asym_bus_text(rows[i][0], buf, sizeof buf), rows[i][1]);
    assert_string_equal(asym_bus_text("ab\xe2\x82\xac", buf, 5), "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_become_text_that_d_bus_carries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
