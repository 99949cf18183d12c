/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reasons of the core, reasons as text, and the names of phases, classes, pins and signals. */
#include <asym/plan.h>
#include <asym/signal.h>

#include <errno.h>
#include <stdio.h>

#include "base/macro.h"

static const struct asym_reason rows[ASYM_N_EXCLUSIONS] = {
    [ASYM_WHY_KERNEL] = {.text = "kernel thread",
                         .sentence = "is a kernel thread: asymd steers none",
                         .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_SELF] = {.text = "asymd itself",
                       .sentence = "is asymd itself or one of its helpers",
                       .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_FOREIGN_NS] = {.text = "in a PID namespace that asymd cannot map",
                             .sentence = "is in a PID namespace whose numbers asymd cannot map",
                             .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_OUTSIDE] = {.text = "not named with --pid",
                          .sentence = "is not among the processes that --pid names",
                          .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_RULE_IGNORE] = {.text = "a rule says ignore",
                              .sentence = "is left alone, because a rule says ignore",
                              .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_UNLISTED] = {.text = "no rule names it, and asymd.default is ignore",
                           .sentence = "is left alone, because no rule names its program and asymd.default is ignore",
                           .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_REALTIME] = {.text = "real-time scheduling policy",
                           .sentence = "has a real-time scheduling policy, which asymd does not interfere with",
                           .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_NO_SETAFFINITY] = {.text = "the kernel forbids changing its affinity",
                                 .sentence = "has an affinity that the kernel does not let anyone change",
                                 .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_OWN_MASK] = {.text = "has an affinity of its own",
                           .sentence = "has an affinity of its own that leaves out CPUs, and asymd did not set it",
                           .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_FOREIGN] = {.text = "its affinity changed after asymd had set it",
                          .sentence = "is left alone, because its affinity was changed after asymd had set it",
                          .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_FOREIGN_NICE] = {.text = "its nice value changed after asymd had set it",
                               .sentence = "is left alone, because its nice value was changed after asymd had set it",
                               .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_DENIED] = {.text = "the kernel refused (errno %.0f)",
                         .sentence = "is left alone, because the kernel refused a change (errno %.0f)",
                         .several = "the kernel refused",
                         .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_PAUSED] = {.text = "asymd is paused",
                         .sentence = "is not steered, because asymd is paused",
                         .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_SETTLING] = {.text = "too new: waiting %g s",
                           .sentence = "belongs to a process that is too new: asymd waits %g s, so that the process "
                                       "can set its own affinity first",
                           .several = "too new",
                           .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_FORKED] = {.text = "created a process: waiting %.1f s",
                         .sentence = "belongs to a process that has created another one: asymd waits %.1f s more, so "
                                     "that the child inherits no mask",
                         .several = "created a process a moment ago",
                         .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_UNKNOWN] = {.text = "its memory map or command line is not known yet",
                          .sentence = "belongs to a process whose memory map or command line asymd does not know yet",
                          .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_COUNTS_LATE] = {.text = "its runtime has not counted the CPUs of its affinity yet",
                              .sentence =
                                  "has a runtime that has not yet sized its thread pool by the affinity of this thread",
                              .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_HARDLY_RAN] = {.text = "has hardly run: it may still set its own affinity",
                             .sentence = "has hardly run, so it may still set its own affinity",
                             .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_IDLE] = {.text = "idle", .sentence = "did not need a CPU", .kind = ASYM_REASON_IDLE},
    [ASYM_WHY_NEXT_SWAP] = {.text = "waits for the next swap period",
                            .sentence = "came after the last plan, so it waits for the next swap period",
                            .kind = ASYM_REASON_EXCLUDED},
    [ASYM_WHY_NOTHING_FREE] = {.text = "none of its CPUs is usable",
                               .sentence = "may run on no CPU that asymd may use",
                               .kind = ASYM_REASON_EXCLUDED},
};

const struct asym_reason asym_reason_rule = {
    .text = "the policy leaves it; its rule gives it CPUs or a nice value",
    .sentence = "is left alone by the policy, and a rule gives it CPUs or a nice value",
    .several = "the policy leaves them; their rules give them CPUs or nice values",
    .kind = ASYM_REASON_PLACED,
};

const struct asym_reason *asym_why(enum asym_exclusion exclusion)
{
    const bool is_one = exclusion > ASYM_WHY_NONE && exclusion < ASYM_N_EXCLUSIONS;
    return is_one ? &rows[exclusion] : NULL;
}

enum asym_exclusion asym_why_hands_off(int error)
{
    switch (error) {
    case -EBUSY:
        return ASYM_WHY_FOREIGN;
    case -ESTALE:
        return ASYM_WHY_FOREIGN_NICE;
    default:
        return ASYM_WHY_DENIED;
    }
}

/* A format may use fewer than two figures. */
const char *asym_reason_text(const struct asym_reason *reason, const double figure[2], char *buf, size_t size)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(buf, size, reason ? reason->text : "", figure[0], figure[1]);
#pragma GCC diagnostic pop
    return buf;
}

const char *asym_reason_several(const struct asym_reason *reason)
{
    return reason->several ? reason->several : reason->text;
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

const char *asym_action_name(enum asym_action_kind kind)
{
    static const char *const names[] = {"steer", "release", "repair", "forget"};
    return name_of(names, ASYM_LENGTH(names), (unsigned)kind);
}

const char *asym_pin_name(enum asym_pin pin)
{
    static const char *const names[] = {"cpu", "llc", "type", "all", "each"};
    return name_of(names, ASYM_LENGTH(names), (unsigned)pin);
}

const char *asym_signal_name(enum asym_signal signal)
{
    static const char *const names[ASYM_N_SIGNALS] = {"runnable", "ipc", "stall", "profile", "smt"};
    return name_of(names, ASYM_LENGTH(names), (unsigned)signal);
}
