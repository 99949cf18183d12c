/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cost of a sample of the machine: CPU time of the procfs source at N threads, of which four spin, beside the CPU time of a
 * refresh of top -H on the same machine in the same run. It prints a table and asserts nothing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/observe/procfs.h"
#include "linux/topology/topology.h"
#include "support/process.h"
#include "times.h"

#define SCANS 51

static void pause_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static pid_t start(char *const argv[])
{
    fflush(stdout);
    pid_t pid = asym_process_fork();
    if (pid == 0 && freopen("/dev/null", "w", stdout))
        execvp(argv[0], argv);
    if (pid == 0)
        _exit(127);
    return pid;
}

/* Returns the CPU time of top for n refreshes, in ms. */
static double top_ms(char *n)
{
    struct rusage use;
    const pid_t pid = start((char *const[]){"top", "-b", "-H", "-d", "0.1", "-n", n, NULL});
    if (wait4(pid, NULL, 0, &use) < 0)
        return 0;
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

static double median_scan(bool with_process_events, double *ret_max, unsigned *ret_threads)
{
    struct asym_root root;
    struct asym_error err = {""};
    struct asym_process_events *process_events = NULL;
    struct asym_source *source;
    struct asym_snapshot s;
    double ms[SCANS];
    struct asym_machine *machine = calloc(1, sizeof *machine);
    if (!machine || asym_root_open(NULL, &root, &err) < 0 || asym_topology_read(&root, NULL, machine, NULL, &err) < 0 ||
        (with_process_events && asym_process_events_open(&process_events, &err) < 0)) {
        fprintf(stderr, "bench-scan: %s\n", err.text);
        exit(1);
    }
    const struct asym_procfs_config config = {.root = &root, .machine = machine, .process_events = process_events};
    if (asym_procfs_new(&config, &source, &err) < 0 || source->next(source, &s) < 0) {
        fprintf(stderr, "bench-scan: %s\n", err.text);
        exit(1);
    }
    for (size_t i = 0; i < SCANS; i++) {
        pause_ms(100);
        double before = read_ns(CLOCK_THREAD_CPUTIME_ID);
        source->next(source, &s);
        ms[i] = (read_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e6;
    }
    *ret_threads = s.coverage.n_threads;
    source->close(source);
    asym_process_events_close(process_events);
    asym_root_done(&root);
    free(machine);
    qsort(ms, SCANS, sizeof *ms, by_value);
    *ret_max = ms[SCANS - 1];
    return ms[SCANS / 2];
}

/* The threads are in processes of 50 each, as on a machine with many programs; four more spin. */
static void measure(unsigned threads)
{
    char count[16], processes[16];
    snprintf(count, sizeof count, "%u", threads);
    snprintf(processes, sizeof processes, "%u", threads / 50);
    const pid_t loads[] = {
        start((char *const[]){(ASYM_BENCH_BIN "/tests/load-sleepers"), count, processes, "600", NULL}),
        start((char *const[]){(ASYM_BENCH_BIN "/tests/load-spin"), "4", "600", NULL})};
    pause_ms(1500);
    double top = (top_ms("12") - top_ms("2")) / 10;
    for (int process_events = 1; process_events >= 0; process_events--) {
        double max;
        unsigned seen;
        double ms = median_scan(process_events, &max, &seen);
        printf("%8u  %-14s %8.3f %8.3f %10.1f %8.0f\n", seen, process_events ? "events" : "readdir", ms, max, top,
               top / ms);
    }
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        asym_process_signal(loads[i], SIGKILL);
        waitpid(loads[i], NULL, 0);
    }
}

int main(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    printf("CPU ms of one scan, median of %d paced at 100 ms; top: top -b -H, per refresh\n", SCANS);
    printf("%8s  %-14s %8s %8s %10s %8s\n", "threads", "found by", "scan", "max", "top", "ratio");
    measure(1000);
    measure(5000);
    return 0;
}
