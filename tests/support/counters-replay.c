/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters from a recording. */
#include "support/counters-replay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "base/parse.h"
#include "core/task-table.h"
#include "linux/perf/counters-internal.h"

#define FILE_MAX_ (16 * 1024 * 1024)

/* Figures of a row, in the order of enum asym_counter, then the time on a CPU. */
enum { FIGURES = 4, WORDS = 2 + FIGURES + 1 };

struct row {
    asym_usec time;
    int32_t tid;
    unsigned line, valid;
    unsigned life; /* a tid that occurs again after "gone" is another thread */
    bool gone;
    uint64_t figure[FIGURES], on_cpu;
};

struct watched {
    struct asym_taskid id; /* asym_table needs this member */
    struct row base;
};

struct replay {
    struct asym_counters port;
    struct asym_table table;
    struct row *rows; /* sorted by tid, then by time; owned */
    size_t n, capacity;
    unsigned max_fds;
    asym_usec now;
};

struct parse {
    struct replay *r;
    const char *name;
    unsigned line;
    asym_usec last;
    struct asym_error *err;
};

static int fail_at(const struct parse *p, unsigned line, const char *what)
{
    return asym_fail(p->err, -EINVAL, "%.200s:%u: %s", p->name, line, what);
}

struct word {
    const char *at;
    size_t len;
};

static bool is(const struct word *w, const char *text)
{
    return w->len == strlen(text) && memcmp(w->at, text, w->len) == 0;
}

/* Returns the number of words; WORDS + 1 if there are more than WORDS. */
static size_t split(const char *line, size_t len, struct word ret[WORDS])
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        size_t from = i;
        if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
            i++;
            continue;
        }
        while (i < len && line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            i++;
        if (n == WORDS)
            return WORDS + 1;
        ret[n++] = (struct word){line + from, i - from};
    }
    return n;
}

static int take_figures(const struct parse *p, const struct word *words, struct row *row)
{
    for (unsigned k = 0; k < FIGURES; k++) {
        if (is(&words[2 + k], "-"))
            continue;
        if (asym_parse_u64(words[2 + k].at, words[2 + k].len, &row->figure[k]) < 0)
            return fail_at(p, p->line, "a figure is no number; accepted are numbers from 0 and '-'");
        row->valid |= 1u << k;
    }
    if (asym_parse_u64(words[2 + FIGURES].at, words[2 + FIGURES].len, &row->on_cpu) < 0)
        return fail_at(p, p->line, "the time on a CPU is no number of nanoseconds");
    return 0;
}

static int add_row(struct parse *p, const struct row *row)
{
    struct replay *r = p->r;
    if (r->n == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        struct row *grown = reallocarray(r->rows, capacity, sizeof *grown);
        if (!grown)
            return asym_fail(p->err, -ENOMEM, "%.200s: no memory", p->name);
        r->rows = grown;
        r->capacity = capacity;
    }
    r->rows[r->n++] = *row;
    return 0;
}

static int take_line(struct parse *p, const char *line, size_t len)
{
    struct word words[WORDS];
    struct row row = {.line = p->line};
    uint64_t tid;
    const char *comment = memchr(line, '#', len);
    size_t n = split(line, comment ? (size_t)(comment - line) : len, words);
    if (n == 0)
        return 0;
    row.gone = n == 3 && is(&words[2], "gone");
    if (n != WORDS && !row.gone)
        return fail_at(p, p->line,
                       "accepted is TIME TID INSTRUCTIONS CYCLES LLC_MISSES REF_CYCLES ON_CPU_NS, or TIME TID gone");
    if (asym_parse_u64(words[0].at, words[0].len, &row.time) < 0)
        return fail_at(p, p->line, "the time is no number of microseconds");
    if (asym_parse_u64(words[1].at, words[1].len, &tid) < 0 || tid == 0 || tid > INT32_MAX)
        return fail_at(p, p->line, "that is no number of a thread");
    if (row.time < p->last)
        return fail_at(p, p->line, "the time goes back");
    row.tid = (int32_t)tid;
    p->last = row.time;
    int r = row.gone ? 0 : take_figures(p, words, &row);
    return r < 0 ? r : add_row(p, &row);
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Sort the rows by thread and time, and check each pair of neighbours. */
static int link_rows(const struct parse *p)
{
    struct replay *r = p->r;
    if (r->n > 0)
        qsort(r->rows, r->n, sizeof *r->rows, compare_rows);
    for (size_t i = 1; i < r->n; i++) {
        const struct row *before = &r->rows[i - 1];
        struct row *row = &r->rows[i];
        if (before->tid != row->tid)
            continue;
        row->life = before->life + before->gone;
        if (before->gone || row->gone)
            continue;
        bool back = row->on_cpu < before->on_cpu;
        for (unsigned k = 0; k < FIGURES; k++)
            back = back || ((row->valid & before->valid) >> k & 1 && row->figure[k] < before->figure[k]);
        if (back)
            return fail_at(p, row->line, "a figure is less than in this thread's line before");
    }
    return 0;
}

/* Returns the thread's newest row up to now; NULL if the thread has not begun or has ended. */
static const struct row *row_of(const struct replay *r, int32_t tid)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct row *row = &r->rows[middle];
        if (row->tid < tid || (row->tid == tid && row->time <= r->now))
            low = middle + 1;
        else
            high = middle;
    }
    const struct row *row = low > 0 ? &r->rows[low - 1] : NULL;
    return row && row->tid == tid && !row->gone ? row : NULL;
}

static int replay_watch(struct asym_counters *c, const struct asym_taskid *id)
{
    struct replay *r = (struct replay *)c;
    if (asym_table_find(&r->table, id))
        return 0;
    const struct row *row = row_of(r, id->tid);
    if ((r->table.n + 1) * FIGURES > r->max_fds)
        return -EDQUOT;
    if (!row)
        return -ESRCH;
    struct watched *w = asym_table_get(&r->table, id);
    if (!w)
        return -ENOMEM;
    w->base = *row;
    return 0;
}

static int replay_unwatch(struct asym_counters *c, const struct asym_taskid *id)
{
    struct replay *r = (struct replay *)c;
    if (!asym_table_find(&r->table, id))
        return -ENOENT;
    asym_table_remove(&r->table, id);
    return 0;
}

static int replay_read(struct asym_counters *c, const struct asym_taskid *id, struct asym_counts *ret)
{
    struct replay *r = (struct replay *)c;
    const struct watched *w = asym_table_find(&r->table, id);
    const struct row *row = row_of(r, id->tid);
    if (!w)
        return -ENOENT;
    if (!row || row->life != w->base.life) {
        asym_table_remove(&r->table, id);
        return -ESRCH;
    }
    *ret = (struct asym_counts){
        .valid = row->valid & w->base.valid, .running_share = 1, .on_cpu_ns = row->on_cpu - w->base.on_cpu};
    for (unsigned k = 0; k < FIGURES; k++)
        if (ret->valid >> k & 1)
            ret->value[k] = row->figure[k] - w->base.figure[k];
    return 0;
}

static void replay_close(struct asym_counters *c)
{
    struct replay *r = (struct replay *)c;
    asym_table_done(&r->table);
    free(r->rows);
    free(r);
}

void asym_counters_replay_at(struct asym_counters *c, asym_usec now)
{
    struct replay *r = (struct replay *)c;
    r->now = ASYM_MAX(r->now, now);
}

int asym_counters_replay_new(const char *name, const char *text, size_t len, unsigned max_fds,
                             struct asym_counters **ret, struct asym_error *err)
{
    struct replay *r = malloc(sizeof *r);
    if (!r)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", name);
    *r = (struct replay){
        .port = {.watch = replay_watch, .unwatch = replay_unwatch, .read = replay_read, .close = replay_close},
        .max_fds = max_fds};
    asym_table_init(&r->table, sizeof(struct watched));
    struct parse p = {.r = r, .name = name, .err = err};
    int result = 0;
    for (size_t at = 0; result >= 0 && at < len;) {
        const char *line = text + at, *stop = memchr(line, '\n', len - at);
        size_t n = stop ? (size_t)(stop - line) : len - at;
        p.line++;
        result = take_line(&p, line, n);
        at += n + 1;
    }
    if (result >= 0)
        result = link_rows(&p);
    if (result < 0) {
        replay_close(&r->port);
        return result;
    }
    *ret = &r->port;
    return 0;
}

int asym_counters_replay_open(const char *path, unsigned max_fds, struct asym_counters **ret, struct asym_error *err)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s", path, strerror(-error));
    }
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX_)
        return asym_fail(err, -EINVAL, "%.200s: accepted is a regular file of at most 16 MiB", path);
    const size_t size = (size_t)st.st_size;
    ASYM_AUTO_FREE char *text = malloc(size + 1);
    size_t len = 0;
    ssize_t n = 1;
    if (!text)
        return asym_fail(err, -ENOMEM, "%.200s: no memory", path);
    while (len < size && (n = read(fd, text + len, size - len)) > 0)
        len += (size_t)n;
    if (n < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s", path, strerror(-error));
    }
    return asym_counters_replay_new(path, text, len, max_fds, ret, err);
}
