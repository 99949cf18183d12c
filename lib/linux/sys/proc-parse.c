/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/sys/proc-parse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/text.h"

/* The fields of stat after the name, numbered as in proc(5). */
enum {
    STATE = 3,
    PPID = 4,
    PGRP = 5,
    SESSION = 6,
    TTY = 7,
    FLAGS = 9,
    UTIME = 14,
    STIME = 15,
    NICE = 19,
    START = 22,
    VSIZE = 23,
    CODE = 26,
    STACK = 28,
    PROCESSOR = 39,
    POLICY = 41,
    LAST = POLICY
};

/* The ranges of the fields that asymd uses. */
static const struct {
    int field;
    int64_t min, max;
} ranges[] = {
    {PPID, 0, INT32_MAX},       {PGRP, -1, INT32_MAX},  {SESSION, -1, INT32_MAX}, {TTY, INT32_MIN, INT32_MAX},
    {FLAGS, 0, UINT32_MAX},     {UTIME, 0, INT64_MAX},  {STIME, 0, INT64_MAX},    {NICE, -20, 19},
    {START, 0, INT64_MAX},      {VSIZE, 0, INT64_MAX},  {CODE, 0, INT64_MAX},     {STACK, 0, INT64_MAX},
    {PROCESSOR, -1, INT32_MAX}, {POLICY, 0, UINT8_MAX},
};

/*
 * Parse the next field. Among the fields that asymd uses, the process group, the session, the terminal, nice and
 * processor can be negative.
 */
static int number(const char **at, const char *end, int64_t *ret)
{
    const char *p = *at;
    while (p < end && *p == ' ')
        p++;
    const char *first = p;
    while (p < end && *p != ' ' && *p != '\n')
        p++;
    uint64_t large;
    *at = p;
    if (asym_parse_i64(first, (size_t)(p - first), ret) == 0)
        return 0;
    /* Some fields are unsigned 64-bit numbers. asymd does not need the exact values of those that an int64_t does not hold. */
    if (asym_parse_u64(first, (size_t)(p - first), &large) < 0)
        return -EINVAL;
    *ret = INT64_MAX;
    return 0;
}

int asym_parse_stat(const char *text, size_t len, struct asym_stat *ret)
{
    const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len), *end = text + len;
    int64_t field[LAST + 1] = {0};
    if (!open || !close || close < open || end - close < 4 || close[1] != ' ' || close[3] != ' ')
        return -EINVAL;
    struct asym_stat s = {.state = close[2]};
    if (s.state < '!' || s.state > '~')
        return -EINVAL;
    const char *at = close + 3;
    for (int i = STATE + 1; i <= LAST; i++)
        if (number(&at, end, &field[i]) < 0)
            return -EINVAL;
    for (size_t i = 0; i < ASYM_LENGTH(ranges); i++)
        if (field[ranges[i].field] < ranges[i].min || field[ranges[i].field] > ranges[i].max)
            return -EINVAL;
    memcpy(s.comm, open + 1, ASYM_MIN((size_t)(close - open - 1), sizeof s.comm - 1));
    s.ppid = (int32_t)field[PPID];
    s.pgrp = (int32_t)field[PGRP];
    s.session = (int32_t)field[SESSION];
    s.tty = (int32_t)field[TTY];
    s.flags = (uint32_t)field[FLAGS];
    s.nice = (int8_t)field[NICE];
    s.ran = (uint64_t)field[UTIME] + (uint64_t)field[STIME];
    s.start = (uint64_t)field[START];
    s.vsize = (uint64_t)field[VSIZE];
    s.image = (struct asym_image){.code = (uint64_t)field[CODE], .stack = (uint64_t)field[STACK]};
    s.cpu = (int32_t)field[PROCESSOR];
    s.sched = (uint8_t)field[POLICY];
    *ret = s;
    return 0;
}

int asym_read_stat(const struct asym_root *root, int32_t pid, int32_t tid, struct asym_stat *ret)
{
    char path[64], text[1024];
    if (tid)
        snprintf(path, sizeof path, "proc/%d/task/%d/stat", (int)pid, (int)tid);
    else
        snprintf(path, sizeof path, "proc/%d/stat", (int)pid);
    if (!root->live) {
        const ssize_t n = asym_root_read(root, path, text, sizeof text);
        return n < 0 ? (int)n : asym_parse_stat(text, (size_t)n, ret);
    }
    /* The kernel returns the whole file in one read: a second read to find the end is not needed. */
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_RDONLY);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
    return fd < 0 ? fd : n < 0 ? -errno : asym_parse_stat(text, (size_t)n, ret);
}

int asym_parse_schedstat(const char *text, size_t len, struct asym_schedstat *ret)
{
    const char *at = text, *end = text + len;
    int64_t n[3];
    for (size_t i = 0; i < ASYM_LENGTH(n); i++)
        if (number(&at, end, &n[i]) < 0 || n[i] < 0)
            return -EINVAL;
    *ret = (struct asym_schedstat){(uint64_t)n[0], (uint64_t)n[1], (uint64_t)n[2]};
    return 0;
}

int asym_parse_status_line(const char *text, size_t len, const char *key, const char **ret_value, size_t *ret_len)
{
    size_t n = strlen(key);
    const char *end = text + len;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        if ((size_t)(stop - line) > n && memcmp(line, key, n) == 0 && line[n] == ':') {
            const char *value = line + n + 1;
            while (value < stop && (*value == ' ' || *value == '\t'))
                value++;
            *ret_value = value;
            *ret_len = (size_t)(stop - value);
            return 0;
        }
        line = stop + 1;
    }
    return -ENOENT;
}

static bool lists(const char *names, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++)
        if ((i == 0 || names[i - 1] == ',') && memcmp(names + i, word, n) == 0 && (i + n == len || names[i + n] == ','))
            return true;
    return false;
}

struct piece {
    const char *path; /* NULL: no such line */
    size_t len;
};

/* The three hierarchies that asymd uses, of the lines "N:CONTROLLERS:PATH". */
struct hierarchies {
    struct piece unified, cpuset, named;
};

static void find_hierarchies(const char *text, size_t len, struct hierarchies *h)
{
    const char *end = text + len;
    *h = (struct hierarchies){0};
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        const char *a = memchr(line, ':', (size_t)(stop - line));
        const char *b = a ? memchr(a + 1, ':', (size_t)(stop - a - 1)) : NULL;
        if (b && b + 1 < stop && b[1] == '/') {
            const struct piece piece = {b + 1, (size_t)(stop - b - 1)};
            if (b == a + 1)
                h->unified = piece;
            else if (lists(a + 1, (size_t)(b - a - 1), "cpuset"))
                h->cpuset = piece;
            else if (lists(a + 1, (size_t)(b - a - 1), "name=systemd"))
                h->named = piece;
        }
        line = stop + 1;
    }
}

int asym_parse_cgroup(const char *text, size_t len, const char **ret_path, size_t *ret_len, int *ret_v1)
{
    struct hierarchies h;
    find_hierarchies(text, len, &h);
    const struct piece *found = h.cpuset.path ? &h.cpuset : &h.unified;
    if (!found->path)
        return -ENOENT;
    *ret_path = found->path;
    *ret_len = found->len;
    *ret_v1 = found == &h.cpuset;
    return 0;
}

int asym_parse_cgroup_name(const char *text, size_t len, const char **ret_path, size_t *ret_len)
{
    struct hierarchies h;
    find_hierarchies(text, len, &h);
    const struct piece *const order[] = {&h.unified, &h.named, &h.cpuset}, *found = NULL;
    for (size_t i = 0; i < ASYM_LENGTH(order); i++)
        if (order[i]->path && (!found || (found->len == 1 && order[i]->len > 1)))
            found = order[i];
    if (!found)
        return -ENOENT;
    *ret_path = found->path;
    *ret_len = found->len;
    return 0;
}

unsigned asym_maps_scan(const char *text, size_t len)
{
    static const struct {
        const char *part;
        unsigned bits;
    } rows[] = {
        {"/memfd:asym-rtx", ASYM_MAPS_PAGE},
        {"/asym-rtx.", ASYM_MAPS_PAGE},
        {"/libomp.so", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libomp-", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libomp5.so", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libiomp5.so", ASYM_MAPS_OPENMP | ASYM_MAPS_COUNTS_LATE},
        {"/libgomp.so", ASYM_MAPS_OPENMP},
        {"/libgomp-", ASYM_MAPS_OPENMP},
        {"/libtbb.so", ASYM_MAPS_COUNTS_LATE},
        {"/libtbb_debug.so", ASYM_MAPS_COUNTS_LATE},
    };
    unsigned bits = 0;
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++)
        bits |= memmem(text, len, rows[i].part, strlen(rows[i].part)) ? rows[i].bits : 0;
    return bits;
}

/* The part after the last newline is kept and completed by the next read. */
unsigned asym_maps_read(const struct asym_root *root, pid_t pid, size_t most, bool *ret_cut)
{
    char path[64], text[16384];
    size_t kept = 0, total = 0;
    unsigned bits = 0;
    snprintf(path, sizeof path, "proc/%d/maps", (int)pid);
    *ret_cut = false;
    ASYM_AUTO_CLOSE int fd = asym_root_openat(root, path, O_RDONLY | O_NONBLOCK);
    while (fd >= 0 && !*ret_cut) {
        ssize_t n = read(fd, text + kept, sizeof text - kept);
        if (n <= 0)
            break;
        const size_t len = kept + (size_t)n;
        const char *end = memrchr(text, '\n', len);
        const size_t whole = end ? (size_t)(end - text) + 1 : len;
        bits |= asym_maps_scan(text, whole);
        kept = len - whole;
        memmove(text, text + whole, kept);
        total += (size_t)n;
        *ret_cut = total >= most;
    }
    return bits;
}

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
