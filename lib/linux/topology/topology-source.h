/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * A source of speeds says where its figures are and when they are no speeds. A source is one file, topology-source-X.c, that
 * ends in one struct asym_speed_source, and one row in <asym/speed-sources.def>. topology-speed.c decides by the same rules
 * for all sources whether to use one.
 */
#ifndef ASYM_LINUX_TOPOLOGY_SOURCE_H
#define ASYM_LINUX_TOPOLOGY_SOURCE_H

#include <stdbool.h>

#include "linux/sys/root.h"
#include "linux/topology/topology-internal.h"

struct asym_speed_source {
    const char *path; /* a file under sys/devices/system/cpu/cpuN with an integer; NULL: hwloc's CPU kinds */
    const char *name; /* its name in notes; static. NULL: the CPU kinds, which have their own */
    /* "": a measure of work. Any other text is that of a frequency: asymd weighs it by the work per cycle of the CPU's kind. */
    const char *unit;
    double spread; /* CPUs count as equal below this ratio of the largest figure to the smallest; above 1 */
    /* Returns why these figures only rank favoured cores, a static string; NULL: they are speeds. The pointer may be NULL. */
    const char *(*ranks)(const struct asym_root *root, const struct asym_figures *f, const struct asym_machine *m);
};

#define ASYM_SPEED_SOURCE(origin, symbol, name) extern const struct asym_speed_source asym_speed_source_##symbol;
#include <asym/speed-sources.def>
#undef ASYM_SPEED_SOURCE

#endif
