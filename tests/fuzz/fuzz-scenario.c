/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libFuzzer target: any bytes as a scenario give an error with its position, or a scenario that runs for a while. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Most bytes make no valid machine. After this head they make programs. */
    static const char head[] =
        "[machine]\ncounts=3,1\nspeeds=1,2\nsmt=2\nllc_kib=64\n[memory m]\nmpki=1\nworking_set=50\n"
        "[program p]\nthreads=3\nstep=serial 5k\n";
    struct asym_scenario *s;
    struct asym_sim *sim;
    struct asym_error err = {""};
    char *text = malloc(sizeof head + size);
    if (!text)
        return 0;
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof head - 1, data, size);
    int r = asym_scenario_parse(text, sizeof head - 1 + size, "f", &s, &err);
    free(text);
    if (r < 0) {
        if (r != -EINVAL || strncmp(err.text, "f:", 2) != 0)
            abort();
        return 0;
    }
    /* Steps of one instruction make an event each nanosecond, so a short time suffices. */
    if (asym_scenario_threads(s) <= 64 && asym_sim_new(s, -1, 1, &sim) >= 0) {
        asym_sim_until(sim, 20000);
        asym_sim_free(sim);
    }
    asym_scenario_free(s);
    return 0;
}
