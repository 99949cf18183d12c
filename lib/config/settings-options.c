/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the table of all options of the sections from the rows of asym/settings-options.h. */
#include <stddef.h>

#include <asym/settings-options.h>

#include "config/config-internal.h"

#define IN(section_, part, type_, key_, ...)                                                                           \
    {.section = section_,                                                                                              \
     .key = #key_,                                                                                                     \
     .type = ASYM_OPTION_##type_,                                                                                      \
     .offset = offsetof(struct asym_settings, part.ASYM_FIELD_NAME(key_)),                                             \
     __VA_ARGS__},

#define IN_ASYMD(...)     IN("asymd", daemon, __VA_ARGS__)
#define IN_CLASSIFY(...)  IN("classify", classify, __VA_ARGS__)
#define IN_ENFORCE(...)   IN("enforce", enforce, __VA_ARGS__)
#define IN_COUNTERS(...)  IN("counters", counters, __VA_ARGS__)
#define IN_MACHINE(...)   IN("machine", machine, __VA_ARGS__)
#define IN_RTX(...)       IN("rtx", rtx, __VA_ARGS__)
#define IN_ASYMMETRY(...) IN("asymmetry", asymmetry, __VA_ARGS__)

/* --print-config prints them in this order. */
/* clang-format off */
const struct asym_option asym_options[] = {
    ASYM_OPTIONS_ASYMD(IN_ASYMD)
    ASYM_OPTIONS_CLASSIFY(IN_CLASSIFY)
    ASYM_OPTIONS_ENFORCE(IN_ENFORCE)
    ASYM_OPTIONS_COUNTERS(IN_COUNTERS)
    ASYM_OPTIONS_MACHINE(IN_MACHINE)
    ASYM_OPTIONS_RTX(IN_RTX)
    ASYM_OPTIONS_ASYMMETRY(IN_ASYMMETRY)
    {.section = NULL},
};
/* clang-format on */
