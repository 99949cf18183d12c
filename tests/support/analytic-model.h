/* SPDX-License-Identifier: GPL-2.0-or-later */
/**
 * The analytic model of Morad 2008, 5 and 6. Two applications A and B share n CPUs. One CPU has speed a (1 <= a < 2), the
 * others have speed 1. Each application is serial (one thread) or parallel (n threads). Every placement by count is equally
 * likely. The functions return the closed forms of Tables 1 to 3.
 *
 * The paper gives two probabilities that the serial thread shares its CPU: 2 (n - 1)^-1 in the text, 2 / (n + 1) in equation
 * 17. n + 1 threads on n CPUs give the second one, so the model uses the equation.
 */
#ifndef ASYM_TESTS_SUPPORT_ANALYTIC_MODEL_H
#define ASYM_TESTS_SUPPORT_ANALYTIC_MODEL_H

/** The phases of A and B, in this order: S is serial, P is parallel. */
enum asym_joint { ASYM_JOINT_SS, ASYM_JOINT_SP, ASYM_JOINT_PS, ASYM_JOINT_PP, ASYM_N_JOINTS };

enum asym_scheduler { ASYM_SCHEDULER_BASELINE, ASYM_SCHEDULER_PROPOSED, ASYM_N_SCHEDULERS };

/** Speedup of A beside B over A alone. */
struct asym_model_speedup {
    double min, avg, max;
    double spread; /**< max / min, the cause of the jitter */
};

/** Returns the speedups of Tables 1 and 3. n >= 2 and a >= 1; else all are NAN. */
struct asym_model_speedup asym_model_speedup(enum asym_scheduler scheduler, enum asym_joint joint, unsigned n,
                                             double a);

/**
 * Returns the fairness in the worst case. The baseline scheduler follows Table 2, in which SP and PS are one state with two
 * cases: SP returns case 1 (the serial application at its worst), PS returns case 2 (at its best). The proposed scheduler uses
 * the same quotients of Table 3.
 */
double asym_model_fairness(enum asym_scheduler scheduler, enum asym_joint joint, unsigned n, double a);

#endif
