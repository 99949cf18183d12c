/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "support/attack.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/test.h"

#define STRANGER 2002

void asym_attack_become_stranger(unsigned seconds)
{
    if (geteuid() == 0)
        MUST(asym_process_become(STRANGER) == 0);
    alarm(seconds);
}

pid_t asym_attack_start(void (*attack)(void *arg, int ready), void *arg)
{
    char byte;
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        close(ready[0]);
        attack(arg, ready[1]);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        fail_msg("the attack cannot be made here: the line above names the call");
    close(ready[0]);
    return pid;
}

/* Returns the CPU time of children that have ended and were reaped, in ticks. */
static double cpu_of_ended(pid_t pid)
{
    char path[64], text[1024];
    unsigned long user, system;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file_read(path, text, sizeof text);
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double own_cpu(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9 + cpu_of_ended(pid);
}

double asym_attack_cpu(pid_t pid)
{
    pid_t children[64];
    double sum = own_cpu(pid);
    for (size_t n = asym_process_children(pid, children, 64); n > 0;)
        sum += own_cpu(children[--n]);
    return sum;
}

static double share(pid_t pid, double seconds)
{
    const double cpu = asym_attack_cpu(pid), begin = asym_live_now();
    assert_true(cpu > 0);
    asym_live_sleep_available(seconds);
    return (asym_attack_cpu(pid) - cpu) / (asym_live_now() - begin);
}

double asym_attack_share(pid_t pid, double seconds, double most)
{
    double least = share(pid, seconds);
    for (int i = 1; i < ASYM_ATTACK_PERIODS && least >= most; i++) {
        printf("%.1f %% of a CPU in %.0f s, at most %.1f %%: once more\n", 100 * least, seconds, 100 * most);
        const double next = share(pid, seconds);
        least = next < least ? next : least;
    }
    return least;
}

void asym_attack_settle(pid_t pid, double most, double seconds)
{
    const struct asym_live_stretch stretch = asym_live_begin();
    asym_live_sleep_available(1);
    while (share(pid, 1) >= most && asym_live_available(&stretch) < seconds)
        ;
}

double asym_attack_stop(pid_t pid, double most)
{
    const struct asym_live_stretch stretch = asym_live_begin();
    assert_true(pid > 1);
    assert_int_equal(asym_process_signal(pid, SIGTERM), 0);
    while (asym_live_available(&stretch) < most && asym_live_now() - stretch.begin < ASYM_LIVE_STRETCH_MOST * most) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return asym_live_available(&stretch);
        asym_live_sleep(0.01);
    }
    asym_process_signal(pid, SIGKILL);
    return -1;
}

void asym_attack_run(long us)
{
    struct timespec begin, t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while ((t.tv_sec - begin.tv_sec) * 1000000 + (t.tv_nsec - begin.tv_nsec) / 1000 < us);
}
