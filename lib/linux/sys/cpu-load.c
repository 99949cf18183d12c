/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/cpu-load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"

/* A line of a CPU has less than 128 bytes; they come first in the file. */
#define SIZE ((size_t)ASYM_MAX_CPUS * 128)

/* The figures of a line: user, nice, system, idle, iowait, irq, softirq, steal. The guest's time is in user and nice. */
enum { IDLE = 3, IOWAIT = 4, N_FIGURES = 8 };

/* "cpu3 1 2 3 ...". Returns the CPU; -1: the line is none of a CPU. */
static int parse_line(const char *line, uint64_t *ret_busy, uint64_t *ret_idle)
{
    char *end;
    uint64_t busy = 0, idle = 0;
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9')
        return -1;
    const unsigned long cpu = strtoul(line + 3, &end, 10);
    for (int i = 0; i < N_FIGURES; i++) {
        const uint64_t figure = strtoull(end, &end, 10);
        *(i == IDLE || i == IOWAIT ? &idle : &busy) += figure;
    }
    *ret_busy = busy;
    *ret_idle = idle;
    return cpu < ASYM_MAX_CPUS ? (int)cpu : -1;
}

/* The kernel's figures of idle time can go back by a tick. */
static uint64_t grown(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

int asym_cpu_load_update(struct asym_cpu_load *load, const struct asym_root *root)
{
    ASYM_AUTO_FREE char *text = malloc(SIZE);
    const ssize_t n = text ? asym_root_read(root, "proc/stat", text, SIZE) : -ENOMEM;
    if (n < 0)
        return (int)n;
    memset(load->share, 0, sizeof load->share);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        uint64_t busy, idle;
        const int cpu = parse_line(line, &busy, &idle);
        if (cpu < 0)
            continue;
        const uint64_t worked = grown(busy, load->busy[cpu]), rested = grown(idle, load->idle[cpu]);
        load->share[cpu] = worked + rested > 0 ? (double)worked / (double)(worked + rested) : 0;
        load->busy[cpu] = busy;
        load->idle[cpu] = idle;
    }
    load->n++;
    return 0;
}
