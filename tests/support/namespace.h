/* SPDX-License-Identifier: GPL-2.0-or-later */
/** A mount namespace for one test, which replaces files of this machine for itself and its children. It needs root. */
#ifndef ASYM_TESTS_SUPPORT_NAMESPACE_H
#define ASYM_TESTS_SUPPORT_NAMESPACE_H

/** Enter the namespace. Returns 0; or -1, after it has printed the call that failed and why, as a cmocka set-up must. */
int asym_namespace_enter(void);

/** Replace target by source in this namespace only. Returns 0; or -1 as above. */
int asym_namespace_cover(const char *source, const char *target);

#endif
