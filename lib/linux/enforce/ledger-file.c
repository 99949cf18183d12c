/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of the ledger. It is text, one record a line:
 *
 *     asymd-ledger 1 BOOT_ID
 *     T tid tgid start since session  original_nice original_reset full_cpuset boosted set_nice before_nice
 *       original set before [via] [@code.stack]
 *     G tid tgid start
 *     C (the record of capped CPUs, linux/speed-cap/speed-cap.c)
 *
 * (A T record is one line.) A T record replaces what earlier records say of the thread. A G record says that the thread
 * needs nothing any more. Masks are CPU lists, "-" when empty. via is the transit CPU: a record has it while the thread
 * may have that mask, between before and set. code and stack are of the image, in base 16: they show an exec after a kill. The
 * file is not synced: it need not survive a reboot, because no mask and no cap does.
 */
#include "linux/enforce/ledger-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/grow.h"
#include "base/macro.h"
#include "base/mask.h"
#include "base/text.h"

#define MAGIC      "asymd-ledger 1 "
#define RECORD_MAX (4 * ASYM_MASK_LIST_MAX + 320)

/* Enough for 100,000 threads on a machine with 1,024 CPUs. */
#define SIZE_MAX_ (256u << 20)

/* Number of names that are tried for a file beside the ledger. */
#define NAMES 10

/* The file is rewritten when it has more than this many stale records, besides two for each valid one. */
#define STALE_MIN 64

/*
 * The numbers of a T record, in order. Four masks follow. The last one, the transit CPU, is only there if the thread is
 * under way to its new mask.
 */
enum { TID, TGID, START, SINCE, SESSION, NICE, RESET, WHOLE, BOOSTED, SET_NICE, BEFORE_NICE, N_NUMBERS };
#define N_FIELDS (N_NUMBERS + 4)

static const struct {
    int64_t min, max;
} ranges[N_NUMBERS] = {
    [TID] = {1, INT32_MAX},     [TGID] = {1, INT32_MAX}, [START] = {0, INT64_MAX},  [SINCE] = {0, INT64_MAX},
    [SESSION] = {0, INT32_MAX}, [NICE] = {-20, 19},      [RESET] = {0, 1},          [WHOLE] = {0, 1},
    [BOOSTED] = {0, 1},         [SET_NICE] = {-20, 19},  [BEFORE_NICE] = {-20, 19},
};

static void read_boot_id(char *buf, size_t size)
{
    ASYM_AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : -1;
    buf[n > 0 ? n : 0] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
}

static int append(struct asym_ledger *l, const char *text, size_t n)
{
    if (asym_reserve(&l->batch, l->batch_len + n, &l->batch_capacity, 1) < 0)
        return -ENOMEM;
    memcpy(l->batch + l->batch_len, text, n);
    l->batch_len += n;
    l->batch_records++;
    return 0;
}

static void drop_batch(struct asym_ledger *l)
{
    /* Do not keep the memory of one large batch for as long as asymd runs. */
    if (l->batch_capacity > 1u << 16) {
        free(l->batch);
        l->batch = NULL;
        l->batch_capacity = 0;
    }
    l->batch_len = l->batch_records = 0;
}

static const char *list_of(const struct asym_mask *m, char *buf)
{
    asym_mask_format_list(m, buf, ASYM_MASK_LIST_MAX);
    return *buf ? buf : "-";
}

int asym_ledger_note(struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    char a[ASYM_MASK_LIST_MAX], b[ASYM_MASK_LIST_MAX], c[ASYM_MASK_LIST_MAX], d[ASYM_MASK_LIST_MAX], line[RECORD_MAX];
    const struct asym_mask transit_cpu = asym_ledger_transit(e);
    const bool under_way = e->under_way;
    char image[48] = "";
    if (e->image.stack != 0)
        snprintf(image, sizeof image, " @%" PRIx64 ".%" PRIx64, e->image.code, e->image.stack);
    int n = snprintf(line, sizeof line, "T %d %d %llu %llu %d %d %d %d %d %d %d %s %s %s%s%s%s\n", (int)e->id.tid,
                     (int)e->id.tgid, (unsigned long long)e->id.start, (unsigned long long)e->since, (int)e->session,
                     e->original_nice, e->original_reset, e->full_cpuset, e->boosted, e->set_nice, e->before_nice,
                     list_of(&e->original, a), list_of(&e->set, b), list_of(&e->before, c), under_way ? " " : "",
                     under_way ? list_of(&transit_cpu, d) : "", image);
    return append(l, line, (size_t)n);
}

int asym_ledger_note_gone(struct asym_ledger *l, const struct asym_taskid *id)
{
    char line[96];
    int n = snprintf(line, sizeof line, "G %d %d %llu\n", (int)id->tid, (int)id->tgid, (unsigned long long)id->start);
    return append(l, line, (size_t)n);
}

void asym_ledger_forget(struct asym_ledger *l, struct asym_ledger_entry *e)
{
    if (asym_ledger_note_gone(l, &e->id) < 0)
        l->owed = true;
    asym_ledger_remove(l, e);
}

static int write_table(struct asym_ledger *l, int fd)
{
    char boot[64], header[96];
    read_boot_id(boot, sizeof boot);
    int n = snprintf(header, sizeof header, MAGIC "%s\n", boot);
    int r = append(l, header, (size_t)n);
    if (r >= 0)
        r = append(l, asym_ledger_caps(l), strlen(asym_ledger_caps(l)));
    for (size_t i = 0; r >= 0 && i < l->n; i++)
        r = asym_ledger_note(l, &l->entries[i]);
    return r < 0 ? r : asym_write_all(fd, l->batch, l->batch_len);
}

/* NAME, then NAME.1 to NAME.9: a directory may have the name, and unlink cannot remove a directory. */
static const char *numbered(const char *name, int k, char *buf, size_t size)
{
    snprintf(buf, size, k == 0 ? "%s" : "%s.%d", name, k);
    return buf;
}

/* O_EXCL: asymd does not write through a link, or into a file that it did not create. */
static int open_fresh(const struct asym_ledger *l, char *name, size_t size)
{
    int fd = -1;
    for (int k = 0; fd < 0 && k < NAMES; k++) {
        unlinkat(l->dir_fd, numbered("ledger.new", k, name, size), 0);
        fd = openat(l->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd < 0 ? -errno : fd;
}

/* Writes a new file with only the valid entries, and renames it over the old one. On failure the old file stays. */
static int rewrite(struct asym_ledger *l)
{
    char name[32];
    drop_batch(l);
    l->owed = true;
    int r = asym_ledger_attach(l, NULL);
    if (r < 0)
        return r;
    ASYM_AUTO_CLOSE int fd = open_fresh(l, name, sizeof name);
    if (fd < 0)
        return fd;
    r = write_table(l, fd);
    size_t size = l->batch_len;
    drop_batch(l);
    if (r >= 0 && renameat(l->dir_fd, name, l->dir_fd, "ledger") < 0)
        r = -errno;
    if (r < 0) {
        unlinkat(l->dir_fd, name, 0);
        return r;
    }
    asym_close_p(&l->fd);
    l->fd = fd;
    fd = -1;
    l->size = size;
    l->n_records = l->n;
    l->owed = false;
    return 0;
}

const char *asym_ledger_caps(const struct asym_ledger *l)
{
    return l->caps ? l->caps : "";
}

int asym_ledger_set_caps(struct asym_ledger *l, const char *lines)
{
    char *copy = strdup(lines);
    if (!copy)
        return -ENOMEM;
    pthread_mutex_lock(&l->lock);
    const bool differs = strcmp(asym_ledger_caps(l), copy) != 0;
    free(l->caps);
    l->caps = copy;
    const int r = differs || l->owed ? rewrite(l) : 0;
    pthread_mutex_unlock(&l->lock);
    return r;
}

/* False if another program has removed, replaced, truncated or written the file. */
static bool is_as_written(const struct asym_ledger *l)
{
    struct stat named, ours;
    return l->fd >= 0 && fstat(l->fd, &ours) == 0 && (size_t)ours.st_size == l->size &&
           fstatat(l->dir_fd, "ledger", &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_ino == ours.st_ino &&
           named.st_dev == ours.st_dev && asym_ledger_is_attached(l);
}

static void check_file(struct asym_ledger *l)
{
    if (l->owed || is_as_written(l))
        return;
    l->owed = l->was_lost = true;
}

int asym_ledger_housekeeping(struct asym_ledger *l)
{
    pthread_mutex_lock(&l->lock);
    check_file(l);
    int r = l->owed ? rewrite(l) : 0;
    const bool lost = r >= 0 && l->was_lost;
    l->was_lost = l->was_lost && !lost;
    pthread_mutex_unlock(&l->lock);
    return r < 0 ? r : lost;
}

int asym_ledger_write(struct asym_ledger *l)
{
    if (l->batch_len == 0 && !l->owed)
        return 0;
    check_file(l);
    if (l->owed)
        return rewrite(l);
    int r = asym_write_all(l->fd, l->batch, l->batch_len);
    if (r >= 0) {
        l->size += l->batch_len;
        l->n_records += l->batch_records;
    } else {
        /*
         * Half a record must not stand before the next one, and entries that were to be removed must not stay. So cut the
         * file back now, and rewrite it with the next write.
         */
        l->owed = true;
        if (ftruncate(l->fd, (off_t)l->size) == 0 && lseek(l->fd, 0, SEEK_END) < 0)
            r = -errno;
    }
    drop_batch(l);
    return r;
}

int asym_ledger_flush(struct asym_ledger *l)
{
    int r = asym_ledger_write(l);
    /*
     * A failed rewrite is no error: a file system that is too full for a second file still takes records, and the records
     * are written. The next flush tries again.
     */
    if (r >= 0 && l->n_records > 3 * l->n + STALE_MIN)
        rewrite(l);
    return r;
}

static int parse_mask(const char *text, struct asym_mask *ret)
{
    if (strcmp(text, "-") != 0)
        return asym_mask_parse_list(text, strlen(text), ret);
    *ret = (struct asym_mask){0};
    return 0;
}

/* The transit CPU is one CPU. A record has it only while the thread is under way to its new mask. */
static int parse_transit(const char *text, struct asym_ledger_entry *e)
{
    struct asym_mask transit_cpu;
    if (parse_mask(text, &transit_cpu) < 0 || asym_mask_count(&transit_cpu) != 1)
        return -EINVAL;
    e->transit_cpu = (uint32_t)asym_mask_next(&transit_cpu, 0) + 1;
    e->under_way = true;
    return 0;
}

/* The first n numbers of a record. */
static int parse_numbers(char *const *field, size_t n, int64_t *ret)
{
    for (size_t i = 0; i < n; i++)
        if (asym_parse_i64(field[i], strlen(field[i]), &ret[i]) < 0 || ret[i] < ranges[i].min || ret[i] > ranges[i].max)
            return -EINVAL;
    return 0;
}

static int parse_entry(char *const *field, size_t n_fields, struct asym_ledger_entry *ret)
{
    int64_t n[N_NUMBERS];
    struct asym_ledger_entry e = {.in_force = true};
    if (parse_numbers(field, N_NUMBERS, n) < 0 || parse_mask(field[N_NUMBERS], &e.original) < 0 ||
        parse_mask(field[N_NUMBERS + 1], &e.set) < 0 || parse_mask(field[N_NUMBERS + 2], &e.before) < 0 ||
        (n_fields == N_FIELDS && parse_transit(field[N_NUMBERS + 3], &e) < 0) || asym_mask_empty(&e.original))
        return -EINVAL;
    e.id = (struct asym_taskid){(int32_t)n[TID], (int32_t)n[TGID], (uint64_t)n[START]};
    e.since = (uint64_t)n[SINCE];
    e.session = (int32_t)n[SESSION];
    e.original_nice = (int8_t)n[NICE];
    e.original_reset = n[RESET] != 0;
    e.full_cpuset = n[WHOLE] != 0;
    e.boosted = n[BOOSTED] != 0;
    e.set_nice = (int8_t)n[SET_NICE];
    e.before_nice = (int8_t)n[BEFORE_NICE];
    *ret = e;
    return 0;
}

static int take_gone(struct asym_ledger *l, char *const *field)
{
    int64_t n[START + 1];
    if (parse_numbers(field, ASYM_LENGTH(n), n) < 0)
        return -EINVAL;
    struct asym_ledger_entry *old = asym_ledger_find(l, (int32_t)n[TID]);
    if (old && old->id.start == (uint64_t)n[START])
        asym_ledger_remove(l, old);
    return 0;
}

static int take_cap(struct asym_ledger *l, const char *record)
{
    char *both = NULL;
    if (asprintf(&both, "%s" ASYM_LEDGER_CAP "%s\n", asym_ledger_caps(l), record) < 0)
        return -ENOMEM;
    free(l->caps);
    l->caps = both;
    return 0;
}

static int take_line(struct asym_ledger *l, char *line)
{
    char *field[N_FIELDS + 2], more;
    struct asym_ledger_entry e;
    struct asym_image image = {0};
    size_t n = 0;
    const char *kind = strsep(&line, " ");
    if (strcmp(kind, "C") == 0 && line)
        return take_cap(l, line);
    while (n < ASYM_LENGTH(field) && line)
        field[n++] = strsep(&line, " ");
    if (strcmp(kind, "G") == 0 && n == START + 1)
        return take_gone(l, field);
    n -= n > 0 && sscanf(field[n - 1], "@%" SCNx64 ".%" SCNx64 "%c", &image.code, &image.stack, &more) == 2;
    if (strcmp(kind, "T") != 0 || n < N_FIELDS - 1 || n > N_FIELDS || parse_entry(field, n, &e) < 0)
        return -EINVAL;
    struct asym_ledger_entry *old = asym_ledger_find(l, e.id.tid);
    if (old)
        asym_ledger_remove(l, old);
    old = asym_ledger_add(l, &e.id);
    if (!old)
        return -ENOMEM;
    *old = e;
    old->image = image;
    return 0;
}

/* Returns the number of bad lines; -errno. text ends in NUL. */
static int take_text(struct asym_ledger *l, char *text, size_t len)
{
    char boot[64];
    int bad = 0;
    read_boot_id(boot, sizeof boot);
    char *stop = memchr(text, '\n', len);
    if (!stop || strncmp(text, MAGIC, strlen(MAGIC)) != 0)
        return len > 0;
    *stop = '\0';
    if (strcmp(text + strlen(MAGIC), boot) != 0)
        return 0;
    for (char *line = stop + 1, *end = text + len; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            break; /* a kill tore the line: asymd did not make its change */
        *stop = '\0';
        int r = strlen(line) == (size_t)(stop - line) ? take_line(l, line) : -EINVAL;
        if (r == -ENOMEM)
            return r;
        bad += r < 0;
    }
    return bad;
}

/* Returns the number of lines that are not a ledger's, 1 if it is no ledger at all; -ENOENT: no file; -errno. */
static int read_old(struct asym_ledger *l)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t len = 0;
    const int r = asym_read_file(l->dir_fd, "ledger", O_NOFOLLOW, SIZE_MAX_, &text, &len);
    if (r == -EINVAL || r == -EFBIG || r == -ELOOP)
        return 1;
    return r < 0 ? r : take_text(l, text, len);
}

/* Gives the old file a second name: a kill before the new file is in place loses nothing. */
static int keep_bad_file(const struct asym_ledger *l, char *name, size_t size)
{
    for (int k = 0; k < NAMES; k++) {
        unlinkat(l->dir_fd, numbered("ledger.bad", k, name, size), 0);
        if (linkat(l->dir_fd, "ledger", l->dir_fd, name, 0) == 0 || renameat(l->dir_fd, "ledger", l->dir_fd, name) == 0)
            return 0;
    }
    return -errno;
}

int asym_ledger_read_file(struct asym_ledger *l, struct asym_error *err)
{
    char copy[32] = "";
    int bad = read_old(l);
    if (bad == -ENOENT)
        bad = 0;
    if (bad < 0)
        return asym_fail(err, bad, "%s/ledger: %s", l->dir, strerror(-bad));
    const int kept = bad > 0 ? keep_bad_file(l, copy, sizeof copy) : 0;
    const int r = rewrite(l);
    if (bad > 0)
        asym_fail(err, 0,
                  "%s/ledger: asymd cannot parse %d line%s; the file %s%s; asymd read the records of %zu threads",
                  l->dir, bad, bad == 1 ? "" : "s", kept < 0 ? "cannot be kept: " : "is kept as ",
                  kept < 0 ? strerror(-kept) : copy, l->n);
    else if (r < 0)
        asym_fail(err, 0, "%s/ledger: cannot write: %s; asymd restores threads, but steers none until it can write",
                  l->dir, strerror(-r));
    return 0;
}

int asym_ledger_peek_file(struct asym_ledger *l, struct asym_error *err)
{
    int bad = read_old(l);
    if (bad < 0)
        return bad == -ENOENT ? bad
                              : asym_fail(err, bad, "%s/ledger: %s%s", l->dir, strerror(-bad),
                                          bad == -EACCES ? " (run as root)" : "");
    if (bad > 0)
        asym_fail(err, 0, "%s/ledger: asymd cannot parse %d line%s", l->dir, bad, bad == 1 ? "" : "s");
    return 0;
}
