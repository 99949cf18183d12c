/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ASYM_BASE_SPEEDUP_H
#define ASYM_BASE_SPEEDUP_H

/**
 * Returns how many times as fast a thread is on the fast type as on the slow one, by its stall time, which is the same on both
 * (Nie & Duan 2012, equation 6, for one instruction). astpi: its stall time per instruction, seconds. mips_fast, mips_slow: the
 * most instructions per second of each type: above 0.
 */
static inline double asym_speedup_by_stall(double astpi, double mips_fast, double mips_slow)
{
    return (1 / mips_slow + astpi) / (1 / mips_fast + astpi);
}

#endif
