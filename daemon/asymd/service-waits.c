/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF program of waits-kernel.h measures who waits for whom while users ask. It stays loaded after the first question, because
 * a load takes much longer than to attach it.
 */
#include "daemon/asymd/service-internal.h"

#include <errno.h>
#include <string.h>

#include "linux/observe/bpf.h"
#include "linux/observe/waits-kernel.h"

/* A client asks twice: asymctl lets 2 s pass in between. */
#define UNASKED_MOST (5 * ASYM_SEC)

/* A longer measurement would say what was long ago. */
#define WINDOW_MOST (10 * ASYM_SEC)

int asym_service_waits_ask(struct asym_service *s, const struct asym_taskid *app, asym_usec now, struct asym_error *err)
{
    struct asym_service_waits *w = &s->waits;
    const uint32_t number = s->phases.bpf ? asym_bpf_number(s->phases.bpf, app) : 0;
    if (!s->phases.bpf)
        return asym_fail(err, -EOPNOTSUPP, "asymd observes without BPF programs (asymd --check says why)");
    if (number == 0)
        return asym_fail(err, -ESRCH,
                         "the BPF programs of asymd do not follow this program now, because it has not run for a "
                         "while, changes its state too often, is not steered, or found no place");
    if (w->refused < 0)
        return asym_fail(err, w->refused, "the kernel does not load the BPF program for that (%s)",
                         strerror(-w->refused));
    int r = w->kernel ? 0 : asym_waits_open(asym_bpf_kernel(s->phases.bpf), &w->kernel, err);
    if (r >= 0 && (w->begun == 0 || now - w->begun > WINDOW_MOST)) {
        r = asym_waits_start(w->kernel, err);
        w->begun = now;
    }
    if (r < 0) {
        asym_service_waits_close(s);
        w->refused = r == -ENOMEM || r == -EMFILE ? 0 : r;
        return r;
    }
    w->asked = now;
    return (int)number;
}

void asym_service_waits_housekeeping(struct asym_service *s, asym_usec now)
{
    if (s->waits.begun == 0 || now - s->waits.asked <= UNASKED_MOST)
        return;
    asym_waits_stop(s->waits.kernel);
    s->waits.begun = 0;
}

void asym_service_waits_close(struct asym_service *s)
{
    asym_waits_close(s->waits.kernel);
    s->waits = (struct asym_service_waits){.kernel = NULL};
}
