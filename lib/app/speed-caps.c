/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/speed-caps.h"

#include <errno.h>

#include "base/mask.h"

/* Indexed by the setting asymmetry.method without NONE, which slows no CPU. */
const struct asym_cap_method *const asym_speed_methods[] = {
#define METHOD_ROW(constant, symbol) [ASYM_METHOD_##constant - 1] = &asym_cap_##symbol,
    ASYM_CAP_METHODS(METHOD_ROW) NULL,
};

const struct asym_cap_method *asym_speed_method(const struct asym_settings *s)
{
    return s->asymmetry.method == ASYM_METHOD_NONE ? NULL : asym_speed_methods[s->asymmetry.method - 1];
}

/* Reads the limits that the CPU has now, and computes those that asymd would set. Returns 0; -errno. */
static int predict(const struct asym_run *run, int cpu, struct asym_cap_state *ret_now, struct asym_cap_state *ret_then)
{
    const struct asym_cap_method *method = asym_speed_method(run->settings);
    struct asym_slow_speeds speeds;
    int r = method ? asym_slow_speeds_parse(run->settings->asymmetry.slow_speed, &speeds) : -EOPNOTSUPP;
    const struct asym_slow_speed *speed = r < 0 ? NULL : asym_slow_speed_of(&speeds, cpu);
    if (r >= 0 && !speed)
        r = -EINVAL;
    if (r >= 0)
        r = method->read(method->ctx, cpu, ret_now);
    return r < 0 ? r : method->choose(method->ctx, cpu, speed, ret_now, ret_then);
}

bool asym_speeds_are_in_force(const struct asym_run *run, const struct asym_mask *slow)
{
    struct asym_cap_state now, then;
    ASYM_MASK_FOREACH (c, slow)
        if (predict(run, c, &now, &then) < 0 || now.low != then.low || now.high != then.high)
            return false;
    return true;
}

int asym_speeds_predict(const struct asym_run *run, const struct asym_mask *slow, struct asym_caps *ret_caps)
{
    const struct asym_cap_method *method = asym_speed_method(run->settings);
    struct asym_caps caps = {.cpus = *slow};
    if (!method)
        return -EOPNOTSUPP;
    ASYM_MASK_FOREACH (c, slow) {
        struct asym_cap_state now, then;
        int r = predict(run, c, &now, &then);
        if (r < 0)
            return r;
        caps.share[c] = method->share(method->ctx, c, &then);
    }
    *ret_caps = caps;
    return 0;
}
