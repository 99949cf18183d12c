/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The options of the configuration, one row each; asym/option.h has the type of a row. The row makes the field of the section's
 * struct, the row of the parser, the default, and the text of --help-config, of the sample configuration and of the manual.
 * Policies have their own tables. Add an option of a section here, and nowhere else.
 *
 * ROW(TYPE, key, designated initialisers of struct asym_option). Times are in microseconds.
 */
#ifndef ASYM_SETTINGS_OPTIONS_H
#define ASYM_SETTINGS_OPTIONS_H

/* clang-format off */

/** struct asym_daemon_settings. */
#define ASYM_OPTIONS_ASYMD(ROW)                                                                                        \
    ROW(TEXT, policy, .def = "auto",                                                                                   \
        .help = "The policy that maps threads to CPUs; auto: asym where CPUs differ in speed, none where not.")        \
    ROW(DURATION, interval, .def = "100ms", .min = 1000, .max = 60e6,                                                  \
        .help = "Time between two samples; at least a second while no program runs (observer bpf).")                       \
    ROW(DURATION, duration, .def = "500ms", .min = 1000, .max = 3600e6,                                                \
        .help = "Time for which a dry run or --once observes.")                                                        \
    ROW(NUMBER, cpu_budget, .def = "1", .min = 0.01, .max = 100,                                                       \
        .help = "CPU time that asymd may use, in percent of one CPU; above that it samples less often.")               \
    ROW(ENUM, observer, .def = "auto", .values = ASYM_OPTION_VALUES("auto", "bpf", "procfs"), /* asym_observer_choice */ \
        .help = "How asymd sees what threads do. bpf: the kernel counts it at each switch of the threads of programs "  \
                "that have several; procfs: samples of /proc; auto: bpf where the kernel allows it; read at the start.") \
    ROW(DURATION, phase_gap, .def = "20ms", .min = 0, .max = 60e6,                                                      \
        .help = "bpf: if the last serial phase of a program began longer ago than this, asymd reacts to a new one at once; " \
                "else it waits for phase_settle.") \
    ROW(DURATION, phase_settle, .def = "1ms", .min = 0, .max = 60e6,                                                 \
        .help = "bpf: in a program that flickers, a thread counts as alone when it has been so for this time.")         \
    ROW(COUNT, phase_rate, .def = "100", .min = 1, .max = 100000,                                                      \
        .help = "bpf: most events of a program to which asymd reacts in a second; a serial phase has two, its begin and end.") \
    ROW(ENUM, group, .def = "job", .values = ASYM_OPTION_VALUES("process", "cgroup", "job"), /* enum asym_grouping */  \
        .help = "The unit that asymd treats as one application: a process; a cgroup; a job, that is what one command " \
                "line of a shell started, or a service, container or application scope.")                              \
    ROW(ENUM, default, .def = "steer", .values = ASYM_OPTION_VALUES("steer", "ignore"),                                \
        .help = "What asymd does with a program that no rule names; ignore: asymd steers only programs with a rule.")  \
    ROW(TEXT, include, .def = "",                                                                                      \
        .help = "Groups of the library of rules to use behind your own rules, such as games builds; empty: none.")     \
    ROW(ENUM, log_level, .def = "info",                                                                                \
        .values = ASYM_OPTION_VALUES("error", "warning", "notice", "info", "debug"),                                   \
        .help = "The least urgent messages that asymd writes to the journal or to standard error.")                    \
    ROW(TEXT, state_dir, .def = "/run/asymd",                                                                          \
        .help = "Directory of the ledger: original masks and nice values, for restore after a crash.")

/** struct asym_classify_settings. */
#define ASYM_OPTIONS_CLASSIFY(ROW)                                                                                     \
    ROW(ENUM, estimator, .def = "mean", .values = ASYM_OPTION_VALUES("mean", "instant"), /* enum asym_estimator */     \
        .help = "Runnable count: the mean over the interval, or the threads in state R at its end.")                   \
    ROW(COUNT, serial_max_threads, .def = "2", .min = 1, .max = 1024,                                                  \
        .help = "An application with more runnable threads than this is parallel (Morad 2008, 6).")                    \
    ROW(COUNT, hp_threshold, .def = "auto", .min = 1, .max = 100000, .keyword = "auto",                                \
        .help = "Above this runnable count an application is highly parallel; auto: fast cores + 1 (Saez 2010, 2.1).") \
    ROW(DURATION, amp_boost, .def = "1s", .min = 0, .max = 3600e6,                                                     \
        .help = "Time for which a serial phase counts as one (Saez 2010, 2.1).")                           \
    ROW(COUNT, hysteresis, .def = "1", .min = 1, .max = 1000,                                                          \
        .help = "Intervals for which a phase or class must hold before asymd uses it; 1: at once.")                    \
    ROW(COUNT, background_nice, .def = "10", .min = 0, .max = 19,                                                      \
        .help = "A program whose runnable threads all have at least this nice value counts as highly parallel: "       \
                "under pa it gets the fast CPUs that others leave; 0: asymd ignores nice values here.")

/** struct asym_enforce_settings. */
#define ASYM_OPTIONS_ENFORCE(ROW)                                                                                      \
    ROW(ENUM, pin, .def = "auto", .keyword = "auto", .values = ASYM_OPTION_VALUES("cpu", "llc", "type"), /* asym_pin */ \
        .help = "Width of the affinity mask: the CPU, its LLC, its core type; auto: the policy's default.")            \
    ROW(DURATION, swap_period, .def = "100ms", .min = 0, .max = 3600e6,                                                \
        .help = "Least time between two changes of the mapping (Saez 2010, 2.1).")                                     \
    ROW(SHARE, exclusive_from, .def = "70%", .min = 0, .max = 1,                                                       \
        .help = "A thread has a CPU to itself only if it ran for this share of the last second; 0%: asymd does not ask.") \
    ROW(DURATION, settle, .def = "500ms", .min = 0, .max = 3600e6,                                                     \
        .help = "asymd steers a process only when the process and its program are this old; where a job of several "   \
                "processes has n runnable threads, n seconds if that is more, but at most fork_holdoff.")              \
    ROW(DURATION, fork_holdoff, .def = "10s", .min = 0, .max = 3600e6,                                                 \
        .help = "asymd releases a process that forks, and does not steer it for this long.")                           \
    ROW(DURATION, release, .def = "5s", .min = 0, .max = 3600e6,                                                       \
        .help = "asymd restores the mask of a thread that has been idle for this long.")                               \
    ROW(BOOL, realtime, .def = "yes",                                                                                  \
        .help = "Carry out plans with real-time priority, for 5 ms at most, so that asymd does not wait for a CPU "     \
                "between two changes.")

/** struct asym_counters_settings. The build sets ASYM_PROFILES to the installed file. */
#define ASYM_OPTIONS_COUNTERS(ROW)                                                                                     \
    ROW(TEXT, profiles, .def = ASYM_PROFILES,                                                                          \
        .help = "Absolute path of the file that asymctl profile writes and policies with profiles read; it may be "    \
                "missing.")                             \
    ROW(COUNT, max_fds, .def = "4096", .min = 4, .max = 1e6,                                                           \
        .help = "Most descriptors for counters; each counted thread needs up to three for each kind of core; if they are "   \
                "too few, asymd counts threads in turns.")

/** struct asym_machine_settings. */
#define ASYM_OPTIONS_MACHINE(ROW)                                                                                      \
    ROW(TEXT, speeds, .def = "",                                                                                       \
        .help = "Speeds of all CPUs, for a machine whose own figures mislead, such as 0-7:1.6 8-15:1; empty: use the " \
                "machine's figures.")                                                                                  \
    ROW(SHARE, fast_from, .def = "80%", .min = 0.01, .max = 1,                                                         \
        .help = "A core type is fast if it reaches this share of the fastest one's speed; 100%: the fastest alone.")   \
    ROW(SHARE, smt_gain, .def = "25%", .min = 0, .max = 1,                                                             \
        .help = "What a second thread on a core adds to the core's speed; measured: up to 30% on Intel, 18% on Zen 5.")

/** struct asym_rtx_settings. */
#define ASYM_OPTIONS_RTX(ROW)                                                                                          \
    ROW(BOOL, listen, .def = "yes",                                                                                    \
        .help = "Let programs report what their threads do, by files in asymd.state_dir/rtx; read at the start.") \
    ROW(BOOL, realtime, .def = "yes",                                                                                  \
        .help = "Run with real-time priority while a program uses RTX, so that asymd reacts when all CPUs are busy.")  \
    ROW(DURATION, spin_notify, .def = "20us", .min = 0, .max = 3600e6,                                                 \
        .help = "A thread that reports that it waits counts as spinning after this time (Saez 2010, 2.2.1).")

/** struct asym_asymmetry_settings. */
#define ASYM_OPTIONS_ASYMMETRY(ROW)                                                                                    \
    /* enum asym_method */                                                                                             \
    ROW(ENUM, method, .def = "none", .values = ASYM_OPTION_VALUES("none" ASYM_CAP_METHODS(ASYM_CAP_METHOD_WORD)),      \
        .help = "How asymd makes the slow CPUs slow; none: it sets nothing and assumes that they are slow.")           \
    ROW(TEXT, slow, .def = "",                                                                                         \
        .help = "Slow CPUs: a number (asymd chooses them), or a list such as 4-7 (4-4 for one CPU); empty: as the "    \
                "machine has them.")                                                                                   \
    ROW(TEXT, slow_speed, .def = "50%",                                                                                \
        .help = "Speed of the slow CPUs: a share of their full speed, or, with cpufreq, a frequency such as 1400MHz; or "  \
                "several, each with its CPUs, such as 2-3:75% 4-5:50%.")

/* clang-format on */

/** Makes a row the field of a struct. */
#define ASYM_OPTION_FIELD(type, key, ...) ASYM_FIELD_##type ASYM_FIELD_NAME(key);

/** The name of a key's field: the key itself. A key that is a word of C has another one, in a row here: two words. */
#define ASYM_FIELD_NAME(key)            ASYM_FIELD_SECOND(ASYM_FIELD_NAME_##key, key, )
#define ASYM_FIELD_SECOND(...)          ASYM_FIELD_SECOND_OF(__VA_ARGS__)
#define ASYM_FIELD_SECOND_OF(a, b, ...) b
#define ASYM_FIELD_NAME_default         , unlisted
#define ASYM_FIELD_BOOL                 bool
#define ASYM_FIELD_COUNT                unsigned
#define ASYM_FIELD_NUMBER               double
#define ASYM_FIELD_SHARE                double
#define ASYM_FIELD_DURATION             asym_usec
#define ASYM_FIELD_ENUM                 int
#define ASYM_FIELD_TEXT                 char *

#endif
