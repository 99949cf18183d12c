/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The methods by which asymd makes a CPU slower. Each has one row: ROW(constant ASYM_METHOD_X, symbol and name in the
 * configuration). A method is one file, lib/linux/speed-cap/cap-X.c, that ends in struct asym_cap_method asym_cap_X, and one row
 * here.
 */
#ifndef ASYM_CAP_METHODS_H
#define ASYM_CAP_METHODS_H

/** cpufreq sets both limits of the frequency. clockmod sets the duty cycle in IA32_CLOCK_MODULATION. */
#define ASYM_CAP_METHODS(ROW)                                                                                          \
    ROW(CPUFREQ, cpufreq)                                                                                              \
    ROW(CLOCKMOD, clockmod)

/** A comma and the name, for the list of values of the option. */
#define ASYM_CAP_METHOD_WORD(constant, symbol) , #symbol

#endif
