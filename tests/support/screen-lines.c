/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/screen-lines.h"
#include "support/test.h"

#include <regex.h>

int screen_has_line(const char *text, const char *pattern)
{
    char whole[1024];
    regex_t regex;
    assert_true(snprintf(whole, sizeof whole, "^(%s)$", pattern) < (int)sizeof whole);
    assert_int_equal(regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0);
    const int found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

void screen_assert_line(const char *text, const char *pattern)
{
    if (!screen_has_line(text, pattern))
        fail_msg("no line matches '%s' in:\n%s", pattern, text);
}
