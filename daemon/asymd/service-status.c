/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state that the service tells systemd and the bus. */
#include "daemon/asymd/service-internal.h"

#include "base/clock.h"
#include "base/macro.h"
#include "base/mask.h"

asym_usec asym_service_interval(const struct asym_service *s)
{
    return ASYM_MAX(s->run->settings->daemon.interval, s->budget.least);
}

asym_usec asym_service_cpu_time(const struct asym_service *s)
{
    return asym_clock_process_cpu() + asym_proc_reader_spent(s->observer.reader);
}

void asym_service_status(struct asym_service *s)
{
    const struct asym_machine *m = s->run->machine;
    asym_notify_status(&s->notify,
                       "%spolicy %s on %u fast and %u slow CPUs%s; %zu threads steered, %zu changes, %zu program%s; "
                       "%.2f %% CPU every %.0f ms%s%s",
                       asym_overrides_is_paused(s->control.overrides) ? "paused; " : "", s->run->policy->name,
                       asym_mask_count(&m->fast), asym_mask_count(&m->slow),
                       s->run->assumed_slow ? " (no CPU was slowed)" : "", asym_ledger_count(s->ledger), s->n_changes,
                       asym_rtxd_count(s->rtx), asym_rtxd_count(s->rtx) == 1 ? " reports" : "s report",
                       s->budget.percent, (double)asym_service_interval(s) / 1000,
                       *s->reload_error ? "; the new configuration is bad: " : "", s->reload_error);
}

void asym_service_listen(struct asym_service *s, void (*changed)(struct asym_service *s))
{
    s->control.changed = changed;
}

void asym_service_changed(struct asym_service *s)
{
    if (s->control.changed)
        s->control.changed(s);
}
