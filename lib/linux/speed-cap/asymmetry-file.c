/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DIR/cpus has a header with the boot id, then a line for each domain:
 *     METHOD CPU CPUS - LOW HIGH SET_LOW SET_HIGH pending|set
 * Earlier versions kept a governor in the fourth field. A boot removes all caps, so a file of another boot is stale.
 */
#include "linux/speed-cap/asymmetry-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"

#define FILE_NAME "cpus"
#define MAGIC     "asymd-cpus 1 "
#define FIELDS    9

static void header(char *buf, size_t size)
{
    char boot[64];
    ASYM_AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, boot, sizeof boot - 1) : 0;
    boot[n > 0 ? n : 0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(buf, size, MAGIC "%s", boot);
}

static void print_line(FILE *f, const struct asym_capped_unit *h)
{
    char cpus[ASYM_MASK_LIST_MAX];
    fprintf(f, "%s %d %s - %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", h->method->name, h->cpu,
            asym_mask_format_list(&h->cpus, cpus, sizeof cpus), h->original.low, h->original.high, h->set.low,
            h->set.high, h->state == ASYM_UNIT_SET ? "set" : "pending");
}

static int write_new(const struct asym_asymmetry *a)
{
    char text[128];
    /* asymd does not write to a file or through a link that has this name already. */
    unlinkat(a->dir_fd, FILE_NAME ".new", 0);
    int fd = openat(a->dir_fd, FILE_NAME ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        return -ENOMEM;
    }
    header(text, sizeof text);
    fprintf(f, "%s\n", text);
    for (size_t i = 0; i < a->n; i++)
        if (a->held[i].state != ASYM_UNIT_FOREIGN)
            print_line(f, &a->held[i]);
    bool failed = ferror(f) != 0;
    failed = fclose(f) != 0 || failed;
    return failed ? -EIO : 0;
}

static size_t count_owned(const struct asym_asymmetry *a)
{
    size_t owned = 0;
    for (size_t i = 0; i < a->n; i++)
        owned += a->held[i].state != ASYM_UNIT_FOREIGN;
    return owned;
}

void asym_asymmetry_save_again(struct asym_asymmetry *a)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/" FILE_NAME, a->dir);
    if (count_owned(a) == 0 || access(path, F_OK) == 0)
        return;
    int fd = open(a->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return; /* the ledger creates it again; the next check retries */
    close(a->dir_fd);
    a->dir_fd = fd;
    asym_asymmetry_save(a);
}

int asym_asymmetry_save(const struct asym_asymmetry *a)
{
    if (count_owned(a) == 0)
        return unlinkat(a->dir_fd, FILE_NAME, 0) == 0 || errno == ENOENT ? 0 : -errno;
    int r = write_new(a);
    if (r >= 0 && renameat(a->dir_fd, FILE_NAME ".new", a->dir_fd, FILE_NAME) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(a->dir_fd, FILE_NAME ".new", 0);
    return r;
}

static const struct asym_cap_method *find_method(const struct asym_asymmetry *a, const char *name)
{
    for (size_t i = 0; a->methods[i]; i++)
        if (strcmp(a->methods[i]->name, name) == 0)
            return a->methods[i];
    return NULL;
}

static bool take_numbers(char *const *field, struct asym_capped_unit *ret)
{
    uint64_t cpu, *const numbers[] = {&cpu, &ret->original.low, &ret->original.high, &ret->set.low, &ret->set.high};
    static const int at[] = {1, 4, 5, 6, 7};
    for (size_t i = 0; i < ASYM_LENGTH(at); i++)
        if (asym_parse_u64(field[at[i]], strlen(field[at[i]]), numbers[i]) < 0)
            return false;
    ret->cpu = (int)ASYM_MIN(cpu, (uint64_t)ASYM_MAX_CPUS);
    return asym_mask_parse_list(field[2], strlen(field[2]), &ret->cpus) == 0 && asym_mask_has(&ret->cpus, ret->cpu);
}

static int take_line(struct asym_asymmetry *a, char *line)
{
    char *field[FIELDS], *rest = line;
    size_t n = 0;
    for (char *word; (word = strsep(&rest, " ")); n++) {
        if (n == FIELDS)
            return -EBADMSG;
        field[n] = word;
    }
    struct asym_capped_unit h = {.method = n == FIELDS ? find_method(a, field[0]) : NULL};
    if (!h.method || !take_numbers(field, &h))
        return -EBADMSG;
    h.state = strcmp(field[8], "pending") == 0 ? ASYM_UNIT_PENDING : ASYM_UNIT_SET;
    struct asym_capped_unit *grown = reallocarray(a->held, a->n + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    a->held = grown;
    a->held[a->n++] = h;
    return 0;
}

int asym_asymmetry_load(struct asym_asymmetry *a)
{
    char boot[128];
    ASYM_AUTO_FREE char *line = NULL;
    size_t size = 0;
    int fd = openat(a->dir_fd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    ASYM_AUTO_FCLOSE FILE *f = fdopen(fd, "r");
    if (!f) {
        close(fd);
        return -ENOMEM;
    }
    header(boot, sizeof boot);
    int r = 0;
    for (bool first = true; getline(&line, &size, f) >= 0; first = false) {
        line[strcspn(line, "\n")] = '\0';
        if (first && strncmp(line, MAGIC, strlen(MAGIC)) != 0)
            return -EBADMSG;
        if (first && strcmp(line, boot) != 0)
            return 0;
        int taken = first ? 0 : take_line(a, line);
        if (taken == -ENOMEM)
            return taken;
        r = taken < 0 ? taken : r;
    }
    return r;
}

void asym_asymmetry_rename_bad_file(const struct asym_asymmetry *a)
{
    renameat(a->dir_fd, FILE_NAME, a->dir_fd, FILE_NAME ".bad");
}
