/* SPDX-License-Identifier: GPL-2.0-or-later */
/** Selects the policies for the tests of all policies: the one that ASYM_TEST_POLICY names, or every one. */
#ifndef ASYM_TESTS_SUPPORT_WANTED_H
#define ASYM_TESTS_SUPPORT_WANTED_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <asym/policy.h>

#include "support/test.h"

static inline bool policy_is_wanted(const struct asym_policy *policy)
{
    const char *only = getenv("ASYM_TEST_POLICY");
    if (only && !asym_policy_find(only))
        fail_msg("ASYM_TEST_POLICY names no policy: %s", only);
    return !only || strcmp(policy->name, only) == 0;
}

#endif
