/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fake-asymd SOCKET CPUS APPLICATIONS [DELAY]: an asymd that steers nothing, on a socket without a bus daemon. Prints a line for
 * each call. The report on counters comes after DELAY milliseconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/fake-service.h"

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: fake-asymd SOCKET CPUS APPLICATIONS [DELAY]\n");
        return 2;
    }
    fake_service_run(argv[1], &(struct fake_machine){.cpus = (unsigned)atoi(argv[2]),
                                                     .apps = (unsigned)atoi(argv[3]),
                                                     .delay = argc > 4 ? (unsigned)atoi(argv[4]) : 0});
}
