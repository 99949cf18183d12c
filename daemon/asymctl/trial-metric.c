/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/trial-metric.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"

#define MOST_READS 16

static int spawn(struct asym_trial_metric *m, const char *command, int out)
{
    char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawnattr_init(&attributes);
    if (r == 0) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        /* It is in the background: a read of the terminal would stop it. */
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
            r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (r == 0)
            r = posix_spawn(&m->pid, "/bin/sh", &actions, &attributes, argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

int asym_trial_metric_begin(struct asym_trial_metric *m, const char *command, asym_usec time)
{
    char seconds[32];
    int ends[2];
    *m = (struct asym_trial_metric){.out = -1};
    snprintf(seconds, sizeof seconds, "%.3g", (double)time / ASYM_SEC);
    if (setenv(ASYM_TRIAL_SECONDS, seconds, 1) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const int r = spawn(m, command, ends[1]);
    close(ends[1]);
    m->out = ends[0];
    if (r < 0) {
        close(ends[0]);
        *m = (struct asym_trial_metric){.out = -1};
    }
    return r;
}

/* Keeps the last bytes. */
static void keep(struct asym_trial_metric *m, const char *bytes, size_t n)
{
    const size_t of_new = ASYM_MIN(n, sizeof m->last), of_old = ASYM_MIN(m->n, sizeof m->last - of_new);
    memmove(m->last, m->last + m->n - of_old, of_old);
    memcpy(m->last + of_old, bytes + n - of_new, of_new);
    m->n = of_old + of_new;
}

void asym_trial_metric_read(struct asym_trial_metric *m)
{
    char buf[4096];
    ssize_t n = 1;
    /* A command that prints without end must not keep the trial here. */
    for (int i = 0; m->pid > 0 && n > 0 && i < MOST_READS; i++) {
        n = read(m->out, buf, sizeof buf);
        if (n > 0)
            keep(m, buf, (size_t)n);
    }
}

static double last_number(const struct asym_trial_metric *m)
{
    char text[sizeof m->last + 1], *end;
    double last = (double)NAN;
    memcpy(text, m->last, m->n);
    text[m->n] = '\0';
    for (char *word = strtok(text, " \t\r\n,;:="); word; word = strtok(NULL, " \t\r\n,;:=")) {
        const double number = strtod(word, &end);
        if (end != word && *end == '\0' && isfinite(number))
            last = number;
    }
    return last;
}

double asym_trial_metric_end(struct asym_trial_metric *m)
{
    if (m->pid <= 0)
        return (double)NAN;
    asym_trial_metric_read(m);
    const double number = last_number(m);
    kill(-m->pid, SIGKILL);
    while (waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(m->out);
    *m = (struct asym_trial_metric){.out = -1};
    return number;
}
