/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reasons in words, and the names of phases, classes, pins and signals. */
#include <asym/plan.h>
#include <asym/snapshot.h>

#include <stdio.h>

#include "base/macro.h"

/* A format takes no, one or both figures, in order. */
static const struct {
    const char *format;
    unsigned n_figures;
} rows[ASYM_N_REASONS] = {
    [ASYM_WHY_NONE] = {"", 0},
    [ASYM_WHY_KERNEL] = {"kernel thread", 0},
    [ASYM_WHY_SELF] = {"asymd itself", 0},
    [ASYM_WHY_FOREIGN_NS] = {"in a PID namespace that cannot be mapped", 0},
    [ASYM_WHY_OUTSIDE] = {"not among the processes asked for with --pid", 0},
    [ASYM_WHY_RULE_IGNORE] = {"a rule says ignore", 0},
    [ASYM_WHY_REALTIME] = {"real-time scheduling policy", 0},
    [ASYM_WHY_NO_SETAFFINITY] = {"the kernel forbids changing its affinity", 0},
    [ASYM_WHY_OWN_MASK] = {"carries a mask of its own choice", 0},
    [ASYM_WHY_FOREIGN] = {"somebody else changed what asymd had set", 0},
    [ASYM_WHY_DENIED] = {"the kernel refused (errno %.0f)", 1},
    [ASYM_WHY_SETTLING] = {"started %.2f s ago, settles for %.2f s", 2},
    [ASYM_WHY_FORKED] = {"created a process: held off for %.1f s more", 1},
    [ASYM_WHY_UNKNOWN] = {"its memory map or command line is not known (yet)", 0},
    [ASYM_WHY_COUNTS_LATE] = {"no threads yet: its runtime will count CPUs by its mask", 0},
    [ASYM_WHY_HARDLY_RAN] = {"has hardly run: it may yet set a mask of its own", 0},
    [ASYM_WHY_IDLE] = {"its application is idle", 0},
    [ASYM_WHY_POLICY_NONE] = {"policy none steers nothing", 0},
    [ASYM_WHY_NEXT_SWAP] = {"waits for the next swap period", 0},
    [ASYM_WHY_NOTHING_FREE] = {"none of its CPUs is usable", 0},
    [ASYM_WHY_SP] = {"SP: %.2f s of %.2f s boost left", 2},
    [ASYM_WHY_MASTER] = {"SP: runs the serial phase, as its program says", 0},
    [ASYM_WHY_SP_NO_ROOM] = {"SP, but %.0f of them want %.0f fast CPUs", 2},
    [ASYM_WHY_MP] = {"MP: a fast CPU to itself", 0},
    [ASYM_WHY_MP_TURN] = {"MP: its turn, %.0f threads share the fast CPUs (%.0f)", 2},
    [ASYM_WHY_MP_WAITS] = {"MP: not its turn, %.0f threads share the fast CPUs (%.0f)", 2},
    [ASYM_WHY_HP] = {"HP: %.1f runnable, above %.0f", 2},
    [ASYM_WHY_HP_SPARE] = {"HP: fast CPU that SP and MP leave free", 0},
    [ASYM_WHY_LOW_TLP] = {"low parallelism: %.1f runnable", 1},
    [ASYM_WHY_HIGH_TLP] = {"fast CPUs are held by lower parallelism than %.1f", 1},
    [ASYM_WHY_LEAST_FAST_TIME] = {"had %.2f s of fast time, the mean is %.2f s", 2},
    [ASYM_WHY_HAD_FAST_TIME] = {"had its turn: %.2f s of fast time, the mean is %.2f s", 2},
    [ASYM_WHY_FAST_BUSY_FIRST] = {"fast CPUs are filled first", 0},
    [ASYM_WHY_FAST_ALL_BUSY] = {"every fast CPU is busy", 0},
    [ASYM_WHY_ALIKE] = {"all CPUs are alike: only spread", 0},
    [ASYM_WHY_SPINNING] = {"spins at a barrier: ranks last", 0},
    [ASYM_WHY_NO_FAST] = {"none of its CPUs is fast", 0},
    [ASYM_WHY_ONLY_FAST] = {"all of its CPUs are fast", 0},
    [ASYM_WHY_BEST_RESPONSE] = {"best response: 1 of %.0f threads at speed %.2f", 2},
    [ASYM_WHY_PULLED] = {"pulled: load %.2f here, %.2f had it stayed", 2},
    [ASYM_WHY_OWN_CPU] = {"a CPU to itself: none idles before another has two", 0},
    [ASYM_WHY_BY_SPEED] = {"every CPU is busy: 1 of %.0f threads, by speed it would be %.1f", 2},
    [ASYM_WHY_RANK] = {"priority %.0f of %.0f", 2},
    [ASYM_WHY_GAINS] = {"%.2f times as fast on a fast CPU: holds one", 1},
    [ASYM_WHY_GAINS_LESS] = {"%.2f times as fast on a fast CPU: others gain more", 1},
    [ASYM_WHY_NO_PROFILE] = {"no profile of its program: others go first", 0},
    [ASYM_WHY_NOT_MEASURED] = {"not measured yet: others go first", 0},
    [ASYM_WHY_MONITORED] = {"monitored for %.0f of %.0f ms", 2},
    [ASYM_WHY_ESTIMATED] = {"assigned once: %.2f times as fast on a fast CPU, %.0f threads here", 2},
    [ASYM_WHY_STALLS] = {"stalls %.3f ns per instruction: fast CPUs go to the least", 1},
    [ASYM_WHY_WAITS_TURN] = {"shares until its turn: %.0f threads want %.0f CPUs", 2},
    [ASYM_WHY_SERIAL] = {"serial: a CPU to itself", 0},
    [ASYM_WHY_SERIAL_SHARES] = {"serial, but %.0f of them share %.0f CPUs", 2},
    [ASYM_WHY_SERIAL_LITTLE] = {"serial, but runnable for only %.2f of the time: shares", 1},
    [ASYM_WHY_SENIOR] = {"parallel the longest: %.2f s of %.2f s boost left", 2},
    [ASYM_WHY_SMT_NO_SIBLING] = {"no other CPU of its core is usable: only spread", 0},
    [ASYM_WHY_SMT_OWN_CORE] = {"a core to itself, which others only visit", 0},
    [ASYM_WHY_SMT_SHARED] = {"shares its core: its share is %.0f %%, alone for %.0f %% of the time", 2},
    [ASYM_WHY_SMT_CROWDED] = {"its share of its core is %.0f %%, but not all there have another core to go to", 1},
    [ASYM_WHY_SMT_SOLO] = {"alone on its core for %.2f s more: its share is %.0f %%", 2},
    [ASYM_WHY_SMT_GUEST] = {"off its core for %.2f s more: another is alone there", 1},
    [ASYM_WHY_SMT_SAMPLE] = {"those of its core are measured one by one for %.2f s more", 1},
    [ASYM_WHY_SMT_MEASURED_ALONE] = {"alone on its core for %.2f s more: it is measured", 1},
    [ASYM_WHY_SMT_MEASURED] = {"measured beside the others of its core for %.2f s more", 1},
    [ASYM_WHY_SMT_PAIRING] = {"measured in pairing %.0f of %.0f with others on its core", 2},
    [ASYM_WHY_SMT_FETCH] = {"shares its core: fetched for a share of %.0f %%", 1},
};

const char *asym_reason_text(enum asym_reason reason, const double figure[2], char *buf, size_t size)
{
    if ((unsigned)reason >= ASYM_N_REASONS) {
        snprintf(buf, size, "reason %d", (int)reason);
        return buf;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    switch (rows[reason].n_figures) {
    case 0:
        snprintf(buf, size, "%s", rows[reason].format);
        break;
    case 1:
        snprintf(buf, size, rows[reason].format, figure[0]);
        break;
    default:
        snprintf(buf, size, rows[reason].format, figure[0], figure[1]);
        break;
    }
#pragma GCC diagnostic pop
    return buf;
}

static const char *name_of(const char *const *names, size_t n, unsigned i)
{
    return i < n ? names[i] : "unknown";
}

const char *asym_phase_name(enum asym_phase phase)
{
    static const char *const names[] = {"idle", "serial", "parallel"};
    return name_of(names, ASYM_LENGTH(names), (unsigned)phase);
}

const char *asym_class_name(enum asym_class class)
{
    static const char *const names[] = {"none", "MP", "HP", "SP"};
    return name_of(names, ASYM_LENGTH(names), (unsigned)class);
}

const char *asym_pin_name(enum asym_pin pin)
{
    static const char *const names[] = {"cpu", "llc", "type"};
    return name_of(names, ASYM_LENGTH(names), (unsigned)pin);
}

const char *asym_signal_name(enum asym_signal signal)
{
    static const char *const names[ASYM_N_SIGNALS] = {"runnable", "ipc", "stall", "profile", "smt"};
    return name_of(names, ASYM_LENGTH(names), (unsigned)signal);
}
