/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reasons of the core, reasons as text, and the names of phases, classes, pins and signals. */
#include <asym/plan.h>
#include <asym/signal.h>

#include <errno.h>
#include <stdio.h>

#include "base/macro.h"

#define EXCLUDED(...)                                                                                                  \
    {                                                                                                                  \
        __VA_ARGS__, .kind = ASYM_REASON_EXCLUDED                                                                      \
    }

static const struct asym_reason rows[ASYM_N_EXCLUSIONS] = {
    [ASYM_WHY_KERNEL] = EXCLUDED(.text = "kernel thread", .sentence = "is a kernel thread: asymd steers none"),
    [ASYM_WHY_SELF] = EXCLUDED(.text = "asymd itself", .sentence = "is asymd itself or one of its helpers"),
    [ASYM_WHY_FOREIGN_NS] = EXCLUDED(.text = "in a PID namespace that asymd cannot map",
                                     .sentence = "is in a PID namespace whose numbers asymd cannot map"),
    [ASYM_WHY_OUTSIDE] = EXCLUDED(.text = "not named with --pid",
                                  .sentence = "is not among the processes that --pid names"),
    [ASYM_WHY_RULE_IGNORE] = EXCLUDED(.text = "a rule says ignore",
                                      .sentence = "is left alone, because a rule says ignore"),
    [ASYM_WHY_UNLISTED] =
        EXCLUDED(.text = "no rule names it, and asymd.default is ignore",
                 .sentence = "is left alone, because no rule names its program and asymd.default is ignore"),
    [ASYM_WHY_REALTIME] =
        EXCLUDED(.text = "real-time scheduling policy",
                 .sentence = "has a real-time scheduling policy, which asymd does not interfere with"),
    [ASYM_WHY_NO_SETAFFINITY] = EXCLUDED(.text = "the kernel forbids changing its affinity",
                                         .sentence = "has an affinity that the kernel does not let anyone change"),
    [ASYM_WHY_OWN_MASK] =
        EXCLUDED(.text = "has an affinity of its own",
                 .sentence = "has an affinity of its own that leaves out CPUs, and asymd did not set it"),
    [ASYM_WHY_FOREIGN] = EXCLUDED(.text = "its affinity changed after asymd had set it",
                                  .sentence = "is left alone, because its affinity was changed after asymd had set it"),
    [ASYM_WHY_FOREIGN_NICE] =
        EXCLUDED(.text = "its nice value changed after asymd had set it",
                 .sentence = "is left alone, because its nice value was changed after asymd had set it"),
    [ASYM_WHY_DENIED] = EXCLUDED(.text = "the kernel refused (errno %.0f)",
                                 .sentence = "is left alone, because the kernel refused a change (errno %.0f)",
                                 .several = "the kernel refused"),
    [ASYM_WHY_PAUSED] = EXCLUDED(.text = "asymd is paused", .sentence = "is not steered, because asymd is paused"),
    [ASYM_WHY_SETTLING] = EXCLUDED(.text = "too new: waiting %g s",
                                   .sentence = "belongs to a process that is too new: asymd waits %g s, so that the "
                                               "process can set its own affinity first",
                                   .several = "too new"),
    [ASYM_WHY_FORKED] = EXCLUDED(
            .text = "created a process: waiting %.1f s",
            .sentence = "belongs to a process that has created another one: asymd waits %.1f s more, so that the child "
                        "inherits no mask",
            .several = "created a process a moment ago"),
    [ASYM_WHY_UNKNOWN] =
        EXCLUDED(.text = "its memory map or command line is not known yet",
                 .sentence = "belongs to a process whose memory map or command line asymd does not know yet"),
    [ASYM_WHY_COUNTS_LATE] =
        EXCLUDED(.text = "its runtime has not counted the CPUs of its affinity yet",
                 .sentence = "has a runtime that has not yet sized its thread pool by the affinity of this thread"),
    [ASYM_WHY_HARDLY_RAN] = EXCLUDED(.text = "has hardly run: it may still set its own affinity",
                                     .sentence = "has hardly run, so it may still set its own affinity"),
    [ASYM_WHY_IDLE] = {.text = "idle", .sentence = "did not need a CPU", .kind = ASYM_REASON_IDLE},
    [ASYM_WHY_NEXT_SWAP] = EXCLUDED(.text = "waits for the next swap period",
                                    .sentence = "came after the last plan, so it waits for the next swap period"),
    [ASYM_WHY_NOTHING_FREE] = EXCLUDED(.text = "none of its CPUs is usable",
                                       .sentence = "may run on no CPU that asymd may use"),
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
