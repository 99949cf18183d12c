/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/long-verb.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/command-line.h"
#include "base/clock.h"
#include "base/macro.h"
#include "report/columns.h"

/* The signals that end a verb early, as a flag: the verb checks it, and prints or keeps the results so far. */

/* A signal handler can reach only a global. */
volatile sig_atomic_t asym_interrupted;
static void (*volatile while_unblocked)(void);

/* The signals that asym_interruption_block has blocked. */
static sigset_t blocked;

/* SIGHUP is the last, because only some verbs catch it: under nohup the others go on. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int signal)
{
    const int error = errno;
    asym_interrupted = 1;
    if (while_unblocked)
        while_unblocked();
    errno = error;
}

static void catch (size_t n, int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    /* The handler may change the terminal: in the background that would stop asymctl. */
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGTTOU);
    for (size_t i = 0; i < n; i++)
        sigaction(ends[i], &action, NULL);
}

void asym_interruption_catch(void)
{
    catch (ASYM_LENGTH(ends) - 1, (int)SA_RESETHAND);
}

void asym_interruption_block(bool hangup, sigset_t *ret_waiting)
{
    const size_t n = ASYM_LENGTH(ends) - !hangup;
    sigemptyset(&blocked);
    for (size_t i = 0; i < n; i++)
        sigaddset(&blocked, ends[i]);
    catch (n, 0);
    sigprocmask(SIG_BLOCK, &blocked, ret_waiting);
    for (size_t i = 0; i < n; i++)
        sigdelset(ret_waiting, ends[i]);
}

void asym_interruption_unblock(void (*also)(void))
{
    while_unblocked = also;
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
}

void asym_interruption_block_again(void)
{
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    while_unblocked = NULL;
}

/* The progress of a verb as a line on standard error, if that is a terminal. Shows nothing before ASYM_PROGRESS_AFTER. */

#define BAR_MOST 40

static const char *time_left(double seconds, char *buf, size_t size)
{
    if (seconds < 100)
        snprintf(buf, size, ", %.0f s left", seconds);
    else if (seconds < 6000)
        snprintf(buf, size, ", %.0f min left", seconds / 60);
    else
        snprintf(buf, size, ", %.0f h left", seconds / 3600);
    return buf;
}

const char *asym_progress_text(double elapsed, double done, double all, const char *unit, size_t columns, char *buf,
                               size_t size)
{
    char bar[BAR_MOST + 1], left[48] = "", text[160];
    if (done > 0)
        time_left(elapsed * (all - done) / done, left, sizeof left);
    snprintf(text, sizeof text, "%.0f of %.0f %s%s", floor(done), all, unit, left);
    const size_t used = strlen(text) + strlen("[] ") + 1;
    const size_t width = columns > used ? ASYM_MIN(columns - used, (size_t)BAR_MOST) : 0;
    const size_t full = (size_t)((double)width * done / all);
    memset(bar, '.', width);
    memset(bar, '#', full);
    bar[width] = '\0';
    snprintf(buf, ASYM_MIN(size, columns), "[%s] %s", bar, text);
    return buf;
}

struct asym_progress_line asym_progress_line_begin(void)
{
    return (struct asym_progress_line){
        .begun = asym_clock_now(), .columns = asym_terminal_of(stderr).columns, .wanted = isatty(STDERR_FILENO) == 1};
}

double asym_progress_line_elapsed(const struct asym_progress_line *p)
{
    return (double)(asym_clock_now() - p->begun) / ASYM_SEC;
}

static bool is_due(const struct asym_progress_line *p)
{
    return p->wanted && asym_progress_line_elapsed(p) >= ASYM_PROGRESS_AFTER;
}

static void put(struct asym_progress_line *p, const char *text)
{
    fprintf(stderr, "\r\033[K%s", text);
    p->shown = true;
}

void asym_progress_line_show(struct asym_progress_line *p, double done, double all, const char *unit)
{
    char text[200];
    if (is_due(p))
        put(p, asym_progress_text(asym_progress_line_elapsed(p), ASYM_MIN(done, all), all, unit, p->columns, text,
                                  sizeof text));
}

void asym_progress_line_say(struct asym_progress_line *p, const char *text)
{
    char cut[256];
    if (is_due(p))
        put(p, asym_columns_cut(text, p->columns - 1, cut, sizeof cut));
}

void asym_progress_line_end(struct asym_progress_line *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
