/* SPDX-License-Identifier: GPL-2.0-or-later */
/* asymctl top in a terminal that cannot show it, without any asymd: it says why, and how to see a frame nevertheless. */
#include <fcntl.h>
#include <sys/wait.h>

#include "support/process.h"
#include "support/test.h"

/* Runs asymctl top in a pseudo-terminal. term: the value of TERM; NULL: none. Returns its exit status; ret: the output. */
static int run_top(const char *term, char *ret, size_t size)
{
    int status;
    size_t used = 0;
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        const bool set = term ? setenv("TERM", term, 1) == 0 : unsetenv("TERM") == 0;
        if (set && dup2(slave, 0) == 0 && dup2(slave, 1) == 1 && dup2(slave, 2) == 2)
            execl(ASYM_TEST_BIN "/daemon/asymctl", "asymctl", "top", NULL);
        _exit(127);
    }
    close(slave);
    for (ssize_t n; used + 1 < size && (n = read(terminal, ret + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    ret[used] = '\0';
    close(terminal);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
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
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
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
    setenv("ASYMD_BUS", "/nonexistent/bus", 1);
    assert_int_equal(run_top("vt100", text, sizeof text), 5);
    unwrap(text);
    if (!strstr(text, "asymctl: asymd is not running."))
        fail_msg("asymctl top said: %s", text);
}

TEST_MAIN
