/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs that change their state, their threads or their number all the time, or fill the kernel's places: asymd, which observes
 * by BPF, keeps its budget, and gives back what it has set. And machines on which it cannot observe by BPF.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "support/attack.h"
#include "support/live.h"
#include "support/must.h"
#include "support/process.h"
#include "support/rounds.h"
#include "support/service.h"
#include "support/talker.h"
#include "support/test.h"

/* Samples may take the budget of 1 %, answers as much, and the fork guard twice that. */
#define PROMISED 0.04
#define SETTLE   4
/* asymd takes samples of many threads each 2 s. */
#define PERIOD      2
#define LONG_PERIOD 4
#define SECONDS     ASYM_ATTACK_LIFETIME(SETTLE, LONG_PERIOD)

enum { COPIES_MAX = 2, THREADS_MAX = 8, CHILDREN_MAX = 1000 };

/*
 * Two threads get another mask with each answer. A second has so many answers, to the begins and the ends of serial phases, and 20
 * samples. Threads that are alone in turn for 1.5 ms have some 600 phases a second.
 */
#define CHANGES_MOST(rate) (2 * ((rate) + 20))

/* --- loads --- */

#define WAITS    ASYM_TEST_BIN "/tests/load-waits"
#define SLEEPERS ASYM_TEST_BIN "/tests/load-sleepers"

/* Where the 20,000 threads wake once in 5 s, asymd takes 7 to 10 % of a CPU: docs/known-limits.md has that. */
static const struct load {
    const char *name, *program, *first, *second; /* its arguments; then comes the time */
    const char *period;                          /* of load-sleepers: asymd follows those that run; s */
    int copies;
    const char *group;
    int rate; /* asymd.phase_rate; 0: its threads do not last, so their masks are not looked at */
    bool nightly;
} loads[] = {
    {"flicker, so often that it is not followed", WAITS, "pingpong", NULL, NULL, 1, "process", 100, true},
    {"flicker in one job", WAITS, "handover", NULL, NULL, COPIES_MAX, "job", 100, false},
    {"flicker in a cgroup", WAITS, "handover", NULL, NULL, 1, "cgroup", 100, true},
    {"a storm of threads", WAITS, "churn", NULL, NULL, 1, "process", 0, false},
    {"turns", WAITS, "turns", NULL, NULL, 1, "process", 100, true},
    {"turns, of which few are answered", WAITS, "turns", NULL, NULL, 1, "process", 10, false},
    {"1,000 programs of two threads", SLEEPERS, "2000", "1000", "5", 1, "process", 0, true},
    {"20,000 threads, more than places", SLEEPERS, "20000", "40", "20", 1, "process", 0, false},
};

/* A stranger may not look into the directory of the build, as that of root, but may run a program that is open. */
struct opened {
    char path[32];
};

static struct opened open_program(const char *program)
{
    struct opened ret;
    const int fd = open(program, O_RDONLY);
    MUST(fd >= 0);
    snprintf(ret.path, sizeof ret.path, "/proc/self/fd/%d", fd);
    return ret;
}

/* It leads a process group: all copies of a load are one job. It ends with the first of them. */
static pid_t start(const struct load *load)
{
    int says[2];
    char word[6] = "";
    assert_int_equal(pipe(says), 0);
    const pid_t leader = asym_process_fork();
    if (leader > 0) {
        close(says[1]);
        /* Else the user may not have so many threads. */
        assert_int_equal(read(says[0], word, sizeof word), sizeof word);
        assert_memory_equal(word, "ready\n", sizeof word);
        close(says[0]);
        return leader;
    }
    MUST(dup2(says[1], STDOUT_FILENO) >= 0);
    char seconds[16];
    snprintf(seconds, sizeof seconds, "%d", (int)SECONDS);
    const struct opened program = open_program(load->program);
    asym_attack_become_stranger(SECONDS);
    for (int i = 0; i < load->copies; i++) {
        const pid_t pid = vfork();
        if (pid != 0)
            continue;
        execl(program.path, load->program, load->first, load->second ? load->second : seconds,
              load->second ? seconds : (char *)NULL, load->period, (char *)NULL);
        _exit(1);
    }
    wait(NULL);
    _exit(1);
}

/* Returns how often a second the threads of the process are seen with another mask than half a millisecond before. */
static double count_changes(pid_t pid)
{
    cpu_set_t was[THREADS_MAX], is;
    pid_t tids[THREADS_MAX];
    char path[64];
    int n = 0, changes = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && n < THREADS_MAX && (e = readdir(d));)
        if ((tids[n] = (pid_t)atoi(e->d_name)) > 0 && sched_getaffinity(tids[n], sizeof *was, &was[n]) == 0)
            n++;
    if (d)
        closedir(d);
    assert_true(n > 1);
    const double begin = asym_live_now();
    for (; asym_live_now() < begin + 1; asym_live_sleep(0.0005))
        for (int i = 0; i < n; i++) {
            if (sched_getaffinity(tids[i], sizeof is, &is) != 0 || CPU_EQUAL(&is, &was[i]))
                continue;
            was[i] = is;
            changes++;
        }
    return changes / (asym_live_now() - begin);
}

/* Returns how many threads of the process and of its children may not use all CPUs. */
static int count_narrow(pid_t pid)
{
    static pid_t children[CHILDREN_MAX];
    const size_t n = asym_process_children(pid, children, CHILDREN_MAX);
    int narrow = asym_live_narrow_threads(pid, asym_live_cpus());
    for (size_t i = 0; i < n; i++)
        narrow += asym_live_narrow_threads(children[i], asym_live_cpus());
    return narrow;
}

static void endure(const struct load *load)
{
    char group[32], rate[40];
    snprintf(group, sizeof group, "--set=asymd.group=%s", load->group);
    snprintf(rate, sizeof rate, "--set=asymd.phase_rate=%d", load->rate > 0 ? load->rate : 100);
    const char *const argv[] = {"--set=asymd.observer=bpf", group, rate, NULL};
    const pid_t attacker = start(load), asymd = asym_service_start(getpid(), argv);
    asym_attack_settle(asymd, PROMISED, SETTLE);
    const double share = asym_attack_share(asymd, load->period ? LONG_PERIOD : PERIOD, 2 * PROMISED);
    pid_t children[COPIES_MAX];
    const size_t n = asym_process_children(attacker, children, COPIES_MAX);
    const double changes = n > 0 && load->rate > 0 ? count_changes(children[0]) : 0;
    printf("%s: %.1f %% of a CPU; %.1f changes of masks a second\n", load->name, 100 * share, changes);
    asym_live_signal(asymd, SIGTERM);
    assert_int_equal(asym_live_wait(asymd), 0);
    int narrow = 0;
    for (size_t i = 0; i < n; i++)
        narrow += count_narrow(children[i]);
    assert_int_equal(asym_process_signal_group(attacker, SIGKILL), 0);
    assert_int_equal(asym_live_wait(attacker), 128 + SIGKILL);
    assert_int_equal(n, load->copies);
    assert_true(share < 2 * PROMISED);
    if (load->rate > 0)
        assert_true(changes < CHANGES_MOST(load->rate));
    assert_int_equal(narrow, 0);
}

TEST(no_load_costs_more_than_the_budget_and_each_has_its_cpus_back)
{
    for (size_t i = 0; i < ASYM_LENGTH(loads); i++)
        if (asym_rounds_are_all() || !loads[i].nightly)
            endure(&loads[i]);
}

/* --- machines without BPF --- */

/* A drop-in for the unit may do this. */
static void drop_capabilities(void)
{
    static const int dropped[] = {CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN};
    for (size_t i = 0; i < ASYM_LENGTH(dropped); i++)
        MUST(prctl(PR_CAPBSET_DROP, dropped[i], 0, 0, 0) == 0);
}

/* Root inside, and without any right outside, as in a container of an ordinary user. */
static void enter_a_container(void)
{
    MUST(unshare(CLONE_NEWUSER) == 0);
}

/* The kernel looks like one whose verifier finds fault with each program. */
static void refuse_programs(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_PROG_LOAD, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ASYM_LENGTH(code), .filter = code};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Says by what asymd observes there, in its --check. */
static void check(void (*hinder)(void), const char *says)
{
    const pid_t pid = asym_process_fork();
    if (pid == 0) {
        static char text[65536];
        MUST(setenv("COLUMNS", "1000", 1) == 0);
        hinder();
        const char *const argv[] = {ASYM_SERVICE, "--check", NULL};
        asym_live_run(argv, text, sizeof text);
        const char *found = strstr(text, says);
        if (!found)
            fprintf(stderr, "%s\n", text);
        MUST(found && !strstr(found + 1, says));
        _exit(0);
    }
    assert_int_equal(asym_live_wait(pid), 0);
}

TEST(without_bpf_it_observes_by_procfs_and_says_why_once)
{
    static const struct {
        void (*hinder)(void);
        const char *says;
    } rows[] = {
        {drop_capabilities, "not bpf: BPF programs need CAP_BPF and CAP_PERFMON"},
        {enter_a_container, "not bpf: BPF programs need CAP_BPF and CAP_PERFMON"},
        {refuse_programs, "not bpf: the kernel does not load the BPF programs"},
    };
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        check(rows[i].hinder, rows[i].says);
}

/* Wakes as often as asymd samples, and works as long, without a real-time priority. */
static pid_t start_witness(void)
{
    const pid_t pid = asym_process_fork();
    if (pid > 0)
        return pid;
    for (;;) {
        asym_attack_run(200);
        asym_live_sleep(0.1);
    }
}

/* Returns for how long the first thread of the process has waited for a CPU, s. */
static double waited(pid_t pid)
{
    unsigned long long ran, waits = 0;
    ASYM_AUTO_FCLOSE FILE *f = fopen(asym_live_text("/proc/%d/schedstat", (int)pid), "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llu %llu", &ran, &waits), 2);
    return (double)waits / 1e9;
}

/*
 * A phase that begins while asymd waits for a CPU without its priority wakes no one: asymd runs already, as the kernel sees it.
 * Under sanitizers a sample takes longer than it may keep the priority.
 */
TEST(samples_do_not_wait_for_a_cpu)
{
    static const char *const silent[] = {"tests/load-silent", NULL};
    const pid_t spin = asym_service_spin(asym_live_text("%d", 3 * asym_live_cpus())), witness = start_witness();
    struct asym_talker talker = asym_talker_start_with(silent, "1", "20", "40");
    const char *const argv[] = {"--policy=pa", "--set=asymd.cpu_budget=50", "--set=asymd.observer=bpf", NULL};
    const pid_t asymd = asym_service_start_alike(talker.pid, argv);
    ASYM_LIVE_AWAIT((sched_getscheduler(asymd) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO);
    const double asymd_before = waited(asymd), witness_before = waited(witness);
    asym_live_sleep(3);
    const double of_asymd = waited(asymd) - asymd_before, of_witness = waited(witness) - witness_before;
    print_message("asymd has waited for %.1f ms of 3 s, a program that wakes as often %.1f\n", 1e3 * of_asymd,
                  1e3 * of_witness);
    asym_talker_stop(&talker, asymd);
    asym_live_end(witness, SIGKILL);
    asym_live_end(spin, SIGKILL);
    assert_true(of_asymd < of_witness / 2);
}

TEST_MAIN_WITH(asym_service_set_up, asym_service_tear_down)
