/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/shell.h"

#include <sys/wait.h>

#include "support/test.h"

int shell_run(char *ret, size_t size, const char *format, ...)
{
    char command[2048];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    assert_in_range(n, 1, sizeof command - 1);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    ret[fread(ret, 1, size - 1, pipe)] = '\0';
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in:\n%s", part, text);
}
