/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-answer PROGRAM ARGUMENT...: the least time of an answer to a serial phase on this machine. It runs the program, which
 * uses RTX. At each wakeup, in real time like asymd, it sets the masks of the program's threads, and does nothing else: in a
 * serial phase the master gets the last CPU and the others get the rest; otherwise all get all CPUs. The time that asymd takes
 * beyond this is asymd's own cost.
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asym/rtx.h>

#include "support/listener.h"
#include "support/process.h"
#include "support/test.h"

static const struct asym_rtx_slot *slot_at(const struct asym_handed *h, uint32_t i)
{
    return (const void *)((const char *)h->page + h->page->header_size + (size_t)i * h->page->slot_size);
}

static uint64_t word_of(const struct asym_rtx_slot *slot)
{
    return __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE);
}

static void answer(const struct asym_handed *h, const cpu_set_t *all)
{
    const uint32_t n = __atomic_load_n(&h->page->n_used, __ATOMIC_ACQUIRE);
    cpu_set_t one, rest = *all;
    int last = CPU_SETSIZE - 1;
    bool serial = false;
    for (uint32_t i = 0; i < n; i++)
        serial |= (word_of(slot_at(h, i)) & ASYM_RTX_SERIAL) != 0;
    while (!CPU_ISSET((unsigned)last, all))
        last--;
    CPU_ZERO(&one);
    CPU_SET((unsigned)last, &one);
    CPU_CLR((unsigned)last, &rest);
    for (uint32_t i = 0; i < n; i++) {
        const struct asym_rtx_slot *slot = slot_at(h, i);
        const bool master = (word_of(slot) & ASYM_RTX_MASTER) != 0;
        if (slot->tid > 0)
            sched_setaffinity(slot->tid, sizeof one, !serial ? all : master ? &one : &rest);
    }
}

/* Answers until the program ends. */
static void listen_to(const struct asym_handed *h, int ended)
{
    cpu_set_t all;
    char path[32];
    const int events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    struct pollfd fds[] = {{.fd = events, .events = POLLIN}, {.fd = ended, .events = POLLIN}};
    snprintf(path, sizeof path, "/proc/self/fd/%d", h->file);
    inotify_add_watch(events, path, IN_MODIFY);
    if (sched_getaffinity(0, sizeof all, &all) < 0 || CPU_COUNT(&all) < 2)
        return;
    while (poll(fds, 2, -1) > 0 && !fds[1].revents)
        if (read(events, (char[4096]){0}, 4096) > 0)
            answer(h, &all);
}

int main(int argc, char **argv)
{
    struct asym_listener l;
    struct asym_handed h;
    sigset_t child;
    int status = 1;
    if (argc < 2)
        return 2;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    const int ended = signalfd(-1, &child, SFD_CLOEXEC);
    asym_listener_open(&l);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        sigprocmask(SIG_UNBLOCK, &child, NULL);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &(struct sched_param){1}) < 0 ||
        mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
        perror("bench-answer: real time");
    if (asym_listener_take(&l, 10, &h))
        listen_to(&h, ended);
    asym_process_signal(pid, SIGTERM);
    waitpid(pid, &status, 0);
    asym_listener_done(&l);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
