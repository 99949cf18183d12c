/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option table: parsing, defaults, --help, --print-config and the manual come from these rows. */
#include "settings/internal.h"

#include <limits.h>
#include <stddef.h>

static const char *const groups[] = {"process", "cgroup", NULL};
static const char *const estimators[] = {"mean", "instant", NULL};
static const char *const pins[] = {"cpu", "llc", "type", NULL};
static const char *const methods[] = {"none", "cpufreq", "clockmod", NULL};

#define FIELD(part) offsetof(struct asym_settings, part)

const struct asym_option asym_options[] = {
    {"asymd", "policy", ASYM_OPTION_TEXT, FIELD(daemon.policy), "pa", 0, 0, 0, NULL,
     "The policy that maps threads to CPUs; auto: by what the machine is and what it can measure."},
    {"asymd", "interval", ASYM_OPTION_DURATION, FIELD(daemon.interval), "100ms", 1000, 60e6, 0, NULL,
     "Time between two looks at the machine."},
    {"asymd", "duration", ASYM_OPTION_DURATION, FIELD(daemon.duration), "500ms", 1000, 3600e6, 0, NULL,
     "How long a dry run or --once observes."},
    {"asymd", "cpu_budget", ASYM_OPTION_NUMBER, FIELD(daemon.cpu_budget), "1", 0.01, 100, 0, NULL,
     "Share of one CPU that asymd may use itself, in percent; past it, it looks less often."},
    {"asymd", "group", ASYM_OPTION_ENUM, FIELD(daemon.group), "process", 0, 0, 0, groups,
     "What counts as one application: a process, or a cgroup."},
    {"asymd", "state_dir", ASYM_OPTION_TEXT, FIELD(daemon.state_dir), "/run/asymd", 0, 0, 0, NULL,
     "Where the ledger of what to put back is kept."},
    {"classify", "estimator", ASYM_OPTION_ENUM, FIELD(classify.estimator), "mean", 0, 0, 0, estimators,
     "Runnable count: averaged over the interval, or the threads in state R at its end."},
    {"classify", "serial_max_threads", ASYM_OPTION_COUNT, FIELD(classify.serial_max_threads), "2", 1, 1024, 0, NULL,
     "An application with more runnable threads than this is parallel (Morad 2008, 6)."},
    {"classify", "hp_threshold", ASYM_OPTION_COUNT, FIELD(classify.hp_threshold), "auto", 1, 100000, 1, NULL,
     "An application with more runnable threads than this is HP; auto: fast CPUs + 1 (Saez 2010, 2.1)."},
    {"classify", "amp_boost", ASYM_OPTION_DURATION, FIELD(classify.amp_boost), "1s", 0, 3600e6, 0, NULL,
     "How long a thread stays SP (Saez 2010, 2.1)."},
    {"classify", "hysteresis", ASYM_OPTION_COUNT, FIELD(classify.hysteresis), "1", 1, 1000, 0, NULL,
     "Intervals that a phase or class must hold before it counts; 1: at once."},
    {"enforce", "pin", ASYM_OPTION_ENUM, FIELD(enforce.pin), "auto", 0, 0, 1, pins,
     "How wide a mask is set: the CPU, its LLC, its core type; auto: as the policy prefers."},
    {"enforce", "swap_period", ASYM_OPTION_DURATION, FIELD(enforce.swap_period), "100ms", 0, 3600e6, 0, NULL,
     "Mappings change no more often than this (Saez 2010, 2.1)."},
    {"enforce", "settle", ASYM_OPTION_DURATION, FIELD(enforce.settle), "500ms", 0, 3600e6, 0, NULL,
     "A process is not steered before it, and its program, is this old."},
    {"enforce", "fork_holdoff", ASYM_OPTION_DURATION, FIELD(enforce.fork_holdoff), "10s", 0, 3600e6, 0, NULL,
     "A process that has created another is released and not steered for this long."},
    {"enforce", "release", ASYM_OPTION_DURATION, FIELD(enforce.release), "5s", 0, 3600e6, 0, NULL,
     "A thread that has been idle for this long gets its own mask back."},
    {"counters", "profiles", ASYM_OPTION_TEXT, FIELD(counters.profiles), ASYM_PROFILES, 0, 0, 0, NULL,
     "The file that asymctl profile writes, and that policies with profiles read."},
    {"counters", "max_fds", ASYM_OPTION_COUNT, FIELD(counters.max_fds), "4096", 4, 1e6, 0, NULL,
     "Descriptors that counters may take; a thread that is counted takes up to four for each kind of core."},
    {"machine", "speeds", ASYM_OPTION_TEXT, FIELD(machine.speeds), "", 0, 0, 0, NULL,
     "Speeds of all CPUs where the machine's own figures mislead, such as 0-7:1.6 8-15:1; empty: as the machine says."},
    {"machine", "fast_from", ASYM_OPTION_SHARE, FIELD(machine.fast_from), "80%", 0.01, 1, 0, NULL,
     "A core type is fast that reaches this share of the fastest one's speed; 100%: the fastest alone."},
    {"rtx", "listen", ASYM_OPTION_BOOL, FIELD(rtx.listen), "yes", 0, 0, 0, NULL,
     "Let programs say what their threads do, through the socket rtx in asymd.state_dir; read at the start."},
    {"rtx", "realtime", ASYM_OPTION_BOOL, FIELD(rtx.realtime), "yes", 0, 0, 0, NULL,
     "Run with a real-time priority while a program speaks, so that asymd reacts when all CPUs are busy."},
    {"rtx", "spin_notify", ASYM_OPTION_DURATION, FIELD(rtx.spin_notify), "20us", 0, 3600e6, 0, NULL,
     "A thread that says that it waits counts as spinning after this long (Saez 2010, 2.2.1)."},
    {"asymmetry", "method", ASYM_OPTION_ENUM, FIELD(asymmetry.method), "none", 0, 0, 0, methods,
     "How the slow CPUs are made slow; none: they are taken for slow as configured, nothing is set."},
    {"asymmetry", "slow", ASYM_OPTION_TEXT, FIELD(asymmetry.slow), "", 0, 0, 0, NULL,
     "Slow CPUs: a number (asymd chooses which), or a list such as 4-7 (4-4 for one CPU); empty: as the machine is."},
    {"asymmetry", "slow_speed", ASYM_OPTION_TEXT, FIELD(asymmetry.slow_speed), "50%", 0, 0, 0, NULL,
     "Speed of the slow CPUs: a share of their own, or, with cpufreq, a frequency such as 1400MHz."},
    {.section = NULL},
};
