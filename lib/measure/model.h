/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The analytic model of Morad 2008, 5 and 6: two applications A and B on n CPUs, one of which has speed a (1 <= a < 2)
 * and the others 1. Each is serial (one thread) or parallel (n threads); every placement by count is equally likely.
 * Closed forms, Tables 1 to 3.
 *
 * The source calls the probability that the serial thread shares its CPU 2 (n - 1)^-1 in the text and uses
 * 2 / (n + 1) in equation 17, which is what n + 1 threads on n CPUs give: the equation is followed.
 */
#ifndef ASYM_MEASURE_MODEL_H
#define ASYM_MEASURE_MODEL_H

/** Of A and B, in this order. */
enum asym_joint { ASYM_JOINT_SS, ASYM_JOINT_SP, ASYM_JOINT_PS, ASYM_JOINT_PP, ASYM_N_JOINTS };

enum asym_scheduler { ASYM_SCHEDULER_BASELINE, ASYM_SCHEDULER_PROPOSED, ASYM_N_SCHEDULERS };

/** Speedup of A beside B over A alone. */
struct asym_model_speedup {
    double min, avg, max;
    double spread; /**< max / min: what the jitter comes from */
};

/** Tables 1 and 3. n >= 2, a >= 1; else all NAN. */
struct asym_model_speedup asym_model_speedup(enum asym_scheduler scheduler, enum asym_joint joint, unsigned n,
                                             double a);

/**
 * Fairness in the worst case. Of the baseline Table 2; SP and PS are one state with two cases: SP gives case 1 (the serial
 * application at its worst), PS case 2 (at its best). Of the proposed scheduler the same quotients from Table 3.
 */
double asym_model_fairness(enum asym_scheduler scheduler, enum asym_joint joint, unsigned n, double a);

#endif
