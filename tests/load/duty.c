/* SPDX-License-Identifier: GPL-2.0-or-later */
/* load-duty BUSY_MS PERIOD_MS SECONDS: one thread works for the first BUSY_MS of every period, by the clock. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "now.h"

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: load-duty BUSY_MS PERIOD_MS SECONDS\n", stderr);
        return 2;
    }
    const int64_t busy = atoll(argv[1]) * 1000000, period = atoll(argv[2]) * 1000000;
    alarm((unsigned)atoi(argv[3]));
    for (int64_t start = now_ns();; start += period) {
        while (now_ns() < start + busy)
            ;
        sleep_until_ns(start + period);
    }
}
