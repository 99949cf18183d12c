/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/asymctl/run-place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/machine-setup.h"
#include "base/macro.h"
#include "base/mask.h"
#include "daemon/asymctl/machine-run.h"
#include "linux/sys/thread.h"
#include "report/cpu-description.h"

static void run_done(struct asym_run *run)
{
    asym_settings_free(run->settings);
    free(run->machine);
    asym_root_done(&run->root);
}

/* A program that starts a thread for each CPU should not fill the second hardware threads of fast cores: slow cores add more. */
static struct asym_mask fast_cores(const struct asym_machine *m)
{
    struct asym_mask fast = m->fast, mine;
    if (asym_thread_get_mask(0, &mine) >= 0 && asym_mask_meets(&fast, &mine))
        fast = asym_mask_and(&fast, &mine);
    return asym_machine_cores(m, &fast);
}

int asym_run_place_cpus(enum asym_run_place place, const char *config, struct asym_mask *ret, struct asym_error *err)
{
    const struct asym_invocation cli = {.config = config};
    ASYM_CLEANUP(run_done) struct asym_run run = {.cli = &cli, .root = {.fd = -1}};
    int r = asym_machine_settings(&cli, ASYM_MACHINE_SAYS, &run.settings, err);
    if (r >= 0)
        r = asym_root_open(NULL, &run.root, err);
    if (r >= 0)
        r = asym_run_machine(&run, err);
    if (r < 0)
        return r;
    const struct asym_alike *alike = asym_describe_alike(run.machine, &run.notes);
    if (!asym_machine_is_asymmetric(run.machine))
        return asym_fail(err, -ENODATA, "%s", alike ? alike->why : ASYM_NO_SLOW_CPU);
    *ret = place == ASYM_RUN_FAST ? fast_cores(run.machine) : run.machine->slow;
    return 0;
}

int asym_run_place_here(const struct asym_mask *cpus, struct asym_error *err)
{
    struct asym_mask mask;
    char list[128];
    int r = asym_thread_get_mask(0, &mask);
    if (r >= 0) {
        mask = asym_mask_and(&mask, cpus);
        if (asym_mask_empty(&mask))
            return asym_fail(err, -ENODATA, "its affinity has none of the CPUs %s",
                             asym_mask_format_list(cpus, list, sizeof list));
        r = asym_thread_set_mask(0, &mask, false);
    }
    return r < 0 ? asym_fail(err, r, "the kernel refuses its affinity: %s", strerror(-r)) : 0;
}
