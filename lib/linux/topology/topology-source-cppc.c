/* SPDX-License-Identifier: GPL-2.0-or-later */
/* highest_perf is CPPC's highest performance level: the firmware's figure for the work of the CPU at its highest frequency. */
#include "linux/topology/topology-source.h"
#include "linux/topology/topology-speed.h"

/*
 * AMD's firmware with preferred cores gives each core of one type its own highest_perf, up to a third apart. This is a ranking
 * for the scheduler, not a speed. If core types differ, too, their maximum frequencies show it. amd-pstate has a file that
 * shows the ranking; with acpi-cpufreq only the even steps show it.
 */
static const char *ranks(const struct asym_root *root, const struct asym_figures *f, const struct asym_machine *m)
{
    struct asym_figures ranking;
    asym_speed_read_file(root, "cpufreq/amd_pstate_prefcore_ranking", &m->usable, &ranking);
    if (asym_speed_differs(&ranking, &m->usable))
        return "amd_pstate_prefcore_ranking";
    return asym_speed_is_staircase(f, m, &m->usable) ? "its steps are even" : NULL;
}

const struct asym_speed_source asym_speed_source_cppc = {
    .path = "acpi_cppc/highest_perf",
    .name = "acpi_cppc highest_perf",
    .unit = "",
    .spread = ASYM_TURBO_SPREAD,
    .ranks = ranks,
};
