/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program whose exec never ends: exec closes a file on the attacker's own file system, which does not answer the flush.
 * Meanwhile the program holds exec_update_lock, and perf_event_open for its threads waits. The test needs FUSE and a user
 * namespace.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/syscall.h>

#include "linux/perf/counters.h"
#include "support/attack.h"
#include "support/fuse.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/service.h"
#include "support/test.h"

#define SECONDS 60

/* counters-live.c interrupts the call after 50 ms; a busy machine may need more. */
#define WATCH_SECONDS 5

static void attack(void *unused __attribute__((unused)), int ready)
{
    const char *dir = asym_service_dir();
    char path[160];
    const pid_t test = getppid();
    asym_attack_become_stranger(SECONDS);
    int device = asym_fuse_mount(dir);
    if (asym_process_fork_orphan(SECONDS) == 0)
        asym_fuse_serve(device, FUSE_FLUSH, test);
    snprintf(path, sizeof path, "%s/mount/file", dir);
    MUST(open(path, O_RDONLY | O_CLOEXEC) >= 0);
    MUST(write(ready, "", 1) == 1);
    execl("/bin/true", "true", NULL);
    perror("exec of /bin/true");
    _exit(1);
}

/* Calls perf_event_open without a time limit, and exits with its result. */
static pid_t start_counting(pid_t target)
{
    pid_t pid = asym_process_fork();
    if (pid > 0)
        return pid;
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1};
    _exit(syscall(SYS_perf_event_open, &attr, target, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0 ? 1 : 0);
}

static pid_t start_other(void)
{
    pid_t pid = asym_process_fork();
    if (pid > 0)
        return pid;
    alarm(SECONDS);
    for (;;)
        asym_attack_run(1000);
}

static struct asym_taskid id_of(pid_t pid)
{
    return (struct asym_taskid){.tid = pid, .tgid = pid, .start = 1};
}

TEST(an_exec_that_hangs_delays_no_counting_of_others)
{
    const struct asym_counters_config config = {.set = ASYM_COUNTERS_SOFTWARE, .max_fds = 100};
    struct asym_counters *c;
    struct asym_counts counts;
    int status;
    assert_int_equal(asym_counters_new(&config, &c, NULL), 0);
    asym_fuse_prepare(asym_service_dir());
    pid_t attacker = asym_attack_start(attack, NULL), other = start_other();
    pid_t unbounded = 0;
    int waits = 0;
    /* A call that comes before exec holds the lock ends at once. */
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE; !waits && asym_live_now() < end;) {
        unbounded = start_counting(attacker);
        waits = asym_process_wait(unbounded, 1, &status) == -ETIMEDOUT;
    }
    const struct asym_taskid hanging = id_of(attacker), next = id_of(other);
    const double begun = asym_live_now();
    const int refused = c->watch(c, &hanging);
    const double took = asym_live_now() - begun;
    const int watched = c->watch(c, &next);
    int counted = c->read(c, &next, &counts);
    for (double end = asym_live_now() + ASYM_LIVE_PATIENCE;
         counted == 0 && counts.on_cpu_ns == 0 && asym_live_now() < end; asym_live_sleep(0.01))
        counted = c->read(c, &next, &counts);
    printf("an unbounded call %s; watch: %s after %.3f s; another process: %d\n", waits ? "waits" : "ends",
           strerror(-refused), took, watched);
    c->close(c);
    assert_int_equal(asym_process_signal_group(attacker, SIGKILL), 0);
    asym_live_wait_for(attacker, SECONDS);
    if (waits)
        asym_live_wait_for(unbounded, SECONDS);
    asym_live_end(other, SIGKILL);
    assert_true(waits);
    assert_int_equal(refused, -EINTR);
    assert_true(took < WATCH_SECONDS);
    assert_int_equal(watched, 0);
    assert_int_equal(counted, 0);
    assert_true(counts.on_cpu_ns > 0);
}

TEST_MAIN_WITH(asym_service_set_up, asym_service_tear_down)
