/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/interruption.h"

#include <errno.h>
#include <stddef.h>

#include "base/macro.h"

/* A signal handler can reach only a global. */
static volatile sig_atomic_t interrupted;
static void (*volatile admitted)(void);

/* The signals that asym_interruption_hold has blocked. */
static sigset_t held;

/* SIGHUP is the last, because only some verbs catch it: under nohup the others go on. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int signal)
{
    const int error = errno;
    (void)signal;
    interrupted = 1;
    if (admitted)
        admitted();
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

void asym_interruption_hold(bool hangup, sigset_t *ret_waiting)
{
    const size_t n = ASYM_LENGTH(ends) - !hangup;
    sigemptyset(&held);
    for (size_t i = 0; i < n; i++)
        sigaddset(&held, ends[i]);
    catch (n, 0);
    sigprocmask(SIG_BLOCK, &held, ret_waiting);
    for (size_t i = 0; i < n; i++)
        sigdelset(ret_waiting, ends[i]);
}

void asym_interruption_admit(void (*also)(void))
{
    admitted = also;
    sigprocmask(SIG_UNBLOCK, &held, NULL);
}

void asym_interruption_hold_again(void)
{
    sigprocmask(SIG_BLOCK, &held, NULL);
    admitted = NULL;
}

bool asym_interrupted(void)
{
    return interrupted != 0;
}

const volatile sig_atomic_t *asym_interruption_flag(void)
{
    return &interrupted;
}
