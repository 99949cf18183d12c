/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/captured-log.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/mman.h>

static int saved, file;

void captured_log_begin(void)
{
    fflush(NULL);
    saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    file = memfd_create("log", MFD_CLOEXEC);
    assert_true(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
}

void captured_log_end(char *text, size_t size)
{
    fflush(NULL);
    dup2(saved, STDERR_FILENO);
    const ssize_t n = pread(file, text, size - 1, 0);
    close(saved);
    close(file);
    assert_true(n >= 0);
    text[n] = '\0';
}

unsigned captured_log_count(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}
