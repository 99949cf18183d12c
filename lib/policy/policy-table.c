/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <asym/policy.h>

#include <string.h>

#define ASYM_POLICY(name) extern const struct asym_policy asym_policy_##name;
#include "policy/policies.def"
#undef ASYM_POLICY

static const struct asym_policy *const policies[] = {
#define ASYM_POLICY(name) &asym_policy_##name,
#include "policy/policies.def"
#undef ASYM_POLICY
    NULL,
};

const struct asym_policy *asym_policy_at(size_t i)
{
    return i < sizeof policies / sizeof policies[0] ? policies[i] : NULL;
}

const struct asym_policy *asym_policy_find(const char *name)
{
    for (size_t i = 0; policies[i]; i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    return NULL;
}
