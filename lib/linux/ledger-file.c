/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "linux/ledger-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/mask.h"
#include "base/parse.h"

#define MAGIC      "asymd-ledger 1 "
#define FIELDS     13
#define RECORD_MAX (3 * ASYM_MASK_LIST_MAX + 160)
#define FILE_MAX_  (256u << 20)

/* Records that say nothing any more, beside n that do, before the file is written anew: that costs about one each. */
#define STALE_MAX(n) (2 * (n) + 64)

static void read_boot_id(char *buf, size_t size)
{
    ASYM_AUTO_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : -1;
    buf[n > 0 ? n : 0] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
}

static int append(struct asym_ledger *l, const char *text, size_t n)
{
    if (l->batch_len + n > l->batch_capacity) {
        size_t capacity = ASYM_MAX(l->batch_len + n, l->batch_capacity * 2);
        char *grown = realloc(l->batch, capacity);
        if (!grown)
            return -ENOMEM;
        l->batch = grown;
        l->batch_capacity = capacity;
    }
    memcpy(l->batch + l->batch_len, text, n);
    l->batch_len += n;
    return 0;
}

static const char *list_of(const struct asym_mask *m, char *buf)
{
    asym_mask_format_list(m, buf, ASYM_MASK_LIST_MAX);
    return *buf ? buf : "-";
}

int asym_ledger_note(struct asym_ledger *l, const struct asym_ledger_entry *e)
{
    char a[ASYM_MASK_LIST_MAX], b[ASYM_MASK_LIST_MAX], c[ASYM_MASK_LIST_MAX], line[RECORD_MAX];
    int n = snprintf(line, sizeof line, "T %d %d %llu %llu %d %d %d %d %d %d %s %s %s\n", (int)e->id.tid,
                     (int)e->id.tgid, (unsigned long long)e->id.start, (unsigned long long)e->since, e->original_nice,
                     e->original_reset, e->whole, e->boosted, e->set_nice, e->before_nice, list_of(&e->original, a),
                     list_of(&e->set, b), list_of(&e->before, c));
    l->n_records++;
    return append(l, line, (size_t)n);
}

int asym_ledger_note_gone(struct asym_ledger *l, const struct asym_taskid *id)
{
    char line[96];
    int n = snprintf(line, sizeof line, "G %d %d %llu\n", (int)id->tid, (int)id->tgid, (unsigned long long)id->start);
    l->n_records++;
    return append(l, line, (size_t)n);
}

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, text, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? -errno : -EIO;
        text += k;
        n -= (size_t)k;
    }
    return 0;
}

/* The batch becomes all that counts. */
static int note_all(struct asym_ledger *l)
{
    char boot[64], header[96];
    read_boot_id(boot, sizeof boot);
    int n = snprintf(header, sizeof header, MAGIC "%s\n", boot);
    l->batch_len = 0;
    int r = append(l, header, (size_t)n);
    for (size_t i = 0; r >= 0 && i < l->n; i++)
        r = asym_ledger_note(l, &l->entries[i]);
    return r;
}

static int put_in_place(struct asym_ledger *l, int fd)
{
    int r = write_all(fd, l->batch, l->batch_len);
    if (r >= 0 && renameat(l->dir_fd, "ledger.new", l->dir_fd, "ledger") < 0)
        r = -errno;
    if (r < 0)
        unlinkat(l->dir_fd, "ledger.new", 0);
    return r;
}

/* A fresh file with only what counts, put in the old one's place at once. On failure the old one stays. */
static int rewrite(struct asym_ledger *l)
{
    const size_t n_records = l->n_records;
    int r = note_all(l);
    ASYM_AUTO_CLOSE int fd = -1;
    if (r >= 0) {
        fd = openat(l->dir_fd, "ledger.new", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : put_in_place(l, fd);
    }
    l->batch_len = 0;
    if (r < 0) {
        l->n_records = n_records;
        return r;
    }
    if (l->fd >= 0)
        close(l->fd);
    l->fd = fd;
    fd = -1;
    l->n_records = l->n;
    l->torn = false;
    return 0;
}

int asym_ledger_flush(struct asym_ledger *l)
{
    if (l->batch_len == 0)
        return 0;
    if (l->torn)
        return rewrite(l);
    int r = write_all(l->fd, l->batch, l->batch_len);
    l->batch_len = 0;
    l->torn = r < 0;
    /* A file system too full for a second file still takes records: what is on record counts, and the next flush tries. */
    if (r >= 0 && l->n_records > l->n + STALE_MAX(l->n))
        rewrite(l);
    return r;
}

static int parse_mask(const char *text, struct asym_mask *ret)
{
    return strcmp(text, "-") == 0 ? (*ret = (struct asym_mask){0}, 0) : asym_mask_parse_list(text, strlen(text), ret);
}

static int parse_id(char *const *field, struct asym_taskid *ret)
{
    uint64_t tid, tgid, start;
    if (asym_parse_u64(field[0], strlen(field[0]), &tid) < 0 || asym_parse_u64(field[1], strlen(field[1]), &tgid) < 0 ||
        asym_parse_u64(field[2], strlen(field[2]), &start) < 0 || tid == 0 || tgid == 0 || tid > INT32_MAX ||
        tgid > INT32_MAX)
        return -EINVAL;
    *ret = (struct asym_taskid){(int32_t)tid, (int32_t)tgid, start};
    return 0;
}

static int parse_entry(char *const *field, struct asym_ledger_entry *ret)
{
    struct asym_ledger_entry e = {.boosted = false};
    int64_t n[6];
    if (parse_id(field, &e.id) < 0 || asym_parse_u64(field[3], strlen(field[3]), &e.since) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ASYM_LENGTH(n); i++)
        if (asym_parse_i64(field[4 + i], strlen(field[4 + i]), &n[i]) < 0 || n[i] < -20 || n[i] > 19)
            return -EINVAL;
    e.original_nice = (int8_t)n[0];
    e.original_reset = n[1] != 0;
    e.whole = n[2] != 0;
    e.boosted = n[3] != 0;
    e.set_nice = (int8_t)n[4];
    e.before_nice = (int8_t)n[5];
    if (parse_mask(field[10], &e.original) < 0 || parse_mask(field[11], &e.set) < 0 ||
        parse_mask(field[12], &e.before) < 0 || asym_mask_empty(&e.original))
        return -EINVAL;
    *ret = e;
    return 0;
}

static int take_line(struct asym_ledger *l, char *line)
{
    char *field[FIELDS + 1];
    size_t n = 0;
    char *kind = strsep(&line, " ");
    while (n < ASYM_LENGTH(field) && line)
        field[n++] = strsep(&line, " ");
    struct asym_ledger_entry e, *old;
    if (strcmp(kind, "G") == 0 && n == 3 && parse_id(field, &e.id) == 0) {
        old = asym_ledger_find(l, e.id.tid);
        if (old && old->id.start == e.id.start)
            asym_ledger_remove(l, old);
        return 0;
    }
    if (strcmp(kind, "T") != 0 || n != FIELDS || parse_entry(field, &e) < 0)
        return -EINVAL;
    old = asym_ledger_find(l, e.id.tid);
    if (!old)
        old = asym_ledger_add(l, &e.id);
    if (!old)
        return -ENOMEM;
    *old = e;
    return 0;
}

/* Returns how many lines were bad; -errno. text ends in NUL. */
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
            break; /* torn by a kill: its change was not made */
        *stop = '\0';
        int r = take_line(l, line);
        if (r == -ENOMEM)
            return r;
        bad += r < 0;
    }
    return bad;
}

static int read_text(int fd, char **ret_text, size_t *ret_len)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_MAX_)
        return -EINVAL;
    ASYM_AUTO_FREE char *text = malloc((size_t)st.st_size + 1);
    size_t len = 0;
    if (!text)
        return -ENOMEM;
    for (ssize_t n = 1; n > 0 && len<(size_t)st.st_size; len += n> 0 ? (size_t)n : 0) {
        n = pread(fd, text + len, (size_t)st.st_size - len, (off_t)len);
        if (n < 0)
            return -errno;
    }
    text[len] = '\0';
    *ret_text = ASYM_TAKE(text);
    *ret_len = len;
    return 0;
}

int asym_ledger_read_file(struct asym_ledger *l, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    size_t len = 0;
    int bad = 0, r = 0;
    ASYM_AUTO_CLOSE int fd = openat(l->dir_fd, "ledger", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        return asym_fail(err, -errno, "%s/ledger: %s", l->dir, strerror(errno));
    if (fd >= 0) {
        r = read_text(fd, &text, &len);
        bad = r < 0 ? 1 : take_text(l, text, len);
        if (bad < 0 || r == -ENOMEM)
            return asym_fail(err, -ENOMEM, "no memory for the ledger");
    }
    if (bad > 0) {
        /* As a second name, so that a kill before the fresh file is in place loses nothing. */
        unlinkat(l->dir_fd, "ledger.bad", 0);
        if (linkat(l->dir_fd, "ledger", l->dir_fd, "ledger.bad", 0) < 0)
            renameat(l->dir_fd, "ledger", l->dir_fd, "ledger.bad");
        asym_fail(err, 0,
                  "%s/ledger: %d lines are not a ledger's; it is kept as ledger.bad, and the %zu threads that could be "
                  "read will be put back",
                  l->dir, bad, l->n);
    }
    r = rewrite(l);
    return r < 0 ? asym_fail(err, r, "%s/ledger: %s", l->dir, strerror(-r)) : 0;
}
