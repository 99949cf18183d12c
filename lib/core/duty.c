/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/duty.h"

#include <math.h>

#include "base/macro.h"

/* The time constant of the means. Shorter ones cross the limit often, and each crossing changes the masks of many threads. */
#define TAU ((double)ASYM_SEC)

/* The time in which the thread did not wait is not known below this. */
#define LEAST 1e-6f

double asym_duty_decay(asym_usec time)
{
    return exp(-(double)time / TAU);
}

double asym_duty_share(const struct asym_duty *d)
{
    return d->ready > LEAST ? ASYM_MIN(1, (double)d->ran / (double)d->ready) : 1;
}

bool asym_duty_is_light(double duty, bool was, double from)
{
    return duty < (was ? from : from * ASYM_DUTY_STAYS);
}

static void add_time(struct asym_duty *d, double decay, double ran, double waited)
{
    d->ran = (float)(d->ran * decay + (1 - decay) * ran);
    d->ready = (float)(d->ready * decay + (1 - decay) * (1 - ASYM_MIN(1, waited)));
}

/* Most threads that sleep for longer than some samples wait at a barrier: others may have their seats. */
#define TAU_ASLEEP (0.3 * TAU)

double asym_duty_asleep(const struct asym_duty *d, asym_usec now)
{
    return asym_duty_share(d) * exp(-(double)(now - d->at) / TAU_ASLEEP);
}

void asym_duty_add(struct asym_duty *d, asym_usec now, asym_usec interval, double decay, double running,
                   double runnable, double from)
{
    const bool is_new = d->at == 0;
    if (d->at == now)
        return;
    if (!is_new && now - d->at > interval)
        add_time(d, asym_duty_decay(now - d->at - interval), 0, 0);
    add_time(d, decay, running, ASYM_MAX(0, runnable - running));
    d->at = now;
    d->light = asym_duty_is_light(asym_duty_share(d), is_new || d->light, from);
}
