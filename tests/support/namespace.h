/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A mount namespace of a test's own, in which it puts files over those of this machine; what it starts shares it. Takes root. */
#ifndef ASYM_TESTS_NAMESPACE_H
#define ASYM_TESTS_NAMESPACE_H

/** Enter it. 0, or -1 after having said which call failed and why, as a cmocka set-up has to. */
int asym_namespace_enter(void);

/** Show source in the place of target, there only. 0, or -1 as above. */
int asym_namespace_cover(const char *source, const char *target);

#endif
