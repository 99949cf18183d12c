/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/shell.h"

#include <pty.h>
#include <sys/wait.h>

#include "report/columns.h"
#include "support/process.h"
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

void assert_fits_in(const char *text, size_t columns)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");
        ASYM_AUTO_FREE char *line = strndup(text, n);
        if (asym_columns_of(line) > columns)
            fail_msg("%zu columns: %s", asym_columns_of(line), line);
        assert_int_equal(text[n], '\n');
        text += n + 1;
    }
}

int shell_run_in_terminal(const char *verb, char *ret, size_t size)
{
    const struct winsize wide = {.ws_row = 24, .ws_col = 80};
    const pid_t parent = getpid();
    size_t used = 0;
    int terminal, status;
    const pid_t pid = forkpty(&terminal, NULL, NULL, &wide);
    assert_true(pid >= 0);
    if (pid == 0) {
        asym_process_end_with(parent);
        setenv("TZ", "UTC", 1);
        unsetenv("COLUMNS");
        execl(ASYM_LIVE_BIN "/daemon/asymctl", "asymctl", verb, NULL);
        _exit(127);
    }
    /* The read fails when asymctl has ended. */
    for (ssize_t n; used + 1 < size && (n = read(terminal, ret + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    ret[used] = '\0';
    close(terminal);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
