/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl top in a terminal that cannot show it, without any asymd: it says why, and how to see a frame nevertheless. */
#include "support/shell.h"
#include "support/test.h"

/* Runs asymctl top without asymd. term: the value of TERM; NULL: none. Returns its exit status; ret: the output. */
static int run_top(const char *term, char *ret, size_t size)
{
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    assert_int_equal(term ? setenv("TERM", term, 1) : unsetenv("TERM"), 0);
    return shell_run_in_terminal("top", ret, size);
}

/* Puts one space in place of each line break and indentation. */
static void unwrap(char *text)
{
    char *out = text;
    for (const char *at = text; *at; at++)
        if (!strchr(" \r\n", *at))
            *out++ = *at;
        else if (out > text && out[-1] != ' ')
            *out++ = ' ';
    *out = '\0';
}

TEST(a_terminal_that_cannot_is_told_why_before_asymd_is_asked)
{
#define ONCE "; asymctl top --once prints one frame as text"
    static const struct {
        const char *term, *says;
    } rows[] = {
        {"dumb", "asymctl: a terminal with TERM=dumb cannot move its cursor" ONCE},
        {"no-such-terminal", "asymctl: no terminal TERM=no-such-terminal is known here" ONCE},
        {"\033[2J", "asymctl: no terminal TERM=\\x1b[2J is known here" ONCE},
        {"", "asymctl: TERM does not say which terminal this is" ONCE},
        {NULL, "asymctl: TERM does not say which terminal this is" ONCE},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        char text[1024];
        const int status = run_top(rows[i].term, text, sizeof text);
        unwrap(text);
        if (status != 2 || strncmp(text, rows[i].says, strlen(rows[i].says)) != 0)
            fail_msg("with TERM=%s asymctl top ended in %d and said: %s", rows[i].term, status, text);
    }
}

/* In a terminal that can, it goes on to ask asymd, which does not run here. */
TEST(a_terminal_that_can_is_accepted)
{
    char text[1024];
    assert_int_equal(run_top("vt100", text, sizeof text), 5);
    unwrap(text);
    if (!strstr(text, "asymctl: asymd is not running."))
        fail_msg("asymctl top said: %s", text);
}

TEST_MAIN
