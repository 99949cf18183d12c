/* SPDX-License-Identifier: GPL-2.0-or-later */
/* INI files, through inih. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "settings/internal.h"
#include "settings/rows.h"

/* inih cuts lines of 200 bytes and names of 50 without a word; longer ones are refused here before it sees them. */
#define LINE_MAX_   190
#define SECTION_MAX 48
#define FILE_MAX_   (1024 * 1024)

struct load {
    struct asym_settings *s;
    const char *path, *at, *end; /* text that is left to read */
    unsigned line;
    unsigned *seen; /* by row: line that gave it in this file */
    bool failed;
    struct asym_error *err;
};

static int fail_at(struct load *l, const char *what)
{
    if (!l->failed)
        asym_fail(l->err, -EINVAL, "%s:%u: %.800s", l->path, l->line, what);
    l->failed = true;
    return 0;
}

static const char *line_fault(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ' && line[i] != '\t' && line[i] != '\r')
            return "binary data; accepted is text";
    if (n > LINE_MAX_)
        return "the line is longer than 190 bytes";
    if (n > 0 && line[0] == '[') {
        const char *close = memchr(line, ']', n);
        if (!close)
            return "the section has no ']'";
        if (close - line - 1 > SECTION_MAX)
            return "the section's name is longer than 48 bytes";
    }
    return NULL;
}

/* inih's reader: a line at a time. Indentation would mean a continued value to inih; here it means nothing. */
static char *read_line(char *buf, int size, void *stream)
{
    struct load *l = stream;
    if (l->at >= l->end || l->failed)
        return NULL;
    const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
    const char *next = stop ? stop + 1 : l->end;
    if (!stop)
        stop = l->end;
    l->line++;
    while (l->at < stop && (*l->at == ' ' || *l->at == '\t'))
        l->at++;
    size_t n = (size_t)(stop - l->at);
    const char *fault = line_fault(l->at, n);
    if (fault || (int)n + 2 > size) {
        fail_at(l, fault ? fault : "the line is too long");
        return NULL;
    }
    memcpy(buf, l->at, n);
    memcpy(buf + n, "\n", 2);
    l->at = next;
    return buf;
}

/* rule NAME or rule "NAME": the name; NULL: not a rule. */
static const char *rule_name(const char *section, char *buf, size_t size)
{
    if (strncmp(section, "rule", 4) != 0 || (section[4] != ' ' && section[4] != '\t'))
        return NULL;
    const char *name = section + 4 + strspn(section + 4, " \t\"");
    snprintf(buf, size, "%.*s", (int)strcspn(name, "\""), name);
    return buf;
}

static int take(void *user, const char *section, const char *name, const char *value)
{
    struct load *l = user;
    struct asym_error why = {""};
    char origin[512], rule[64], text[160];
    size_t row;
    if (l->failed)
        return 0;
    snprintf(origin, sizeof origin, "%s:%u", l->path, l->line);
    if (rule_name(section, rule, sizeof rule)) {
        if (!*rule)
            return fail_at(l, "a rule needs a name: [rule \"NAME\"]");
        return asym_rules_set(l->s->rules, rule, origin, name, value, &why) < 0 ? fail_at(l, why.text) : 1;
    }
    if (!*section)
        return fail_at(l, "a key before the first [section]");
    if (asym_settings_assign(l->s, section, name, value, origin, &row, &why) < 0)
        return fail_at(l, why.text);
    if (l->seen[row]) {
        snprintf(text, sizeof text, "%s.%s is given twice, first in line %u", section, name, l->seen[row]);
        return fail_at(l, text);
    }
    l->seen[row] = l->line;
    return 1;
}

static int parse(struct load *l)
{
    int r = ini_parse_stream(read_line, l, take, l);
    if (r < 0 && !l->failed)
        return asym_fail(l->err, -ENOMEM, "%s: no memory", l->path);
    if (r > 0 && !l->failed) {
        l->line = (unsigned)r;
        fail_at(l, "neither [section] nor KEY = VALUE");
    }
    return l->failed ? -EINVAL : 0;
}

static int read_file(const char *path, char **ret_text, size_t *ret_len, struct asym_error *err)
{
    struct stat st;
    ASYM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return asym_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return asym_fail(err, -EINVAL, "%s: not a regular file", path);
    if (st.st_size > FILE_MAX_)
        return asym_fail(err, -EINVAL, "%s: larger than 1 MiB, which no configuration is", path);
    ASYM_AUTO_FREE char *text = malloc(FILE_MAX_ + 1);
    size_t len = 0;
    ssize_t n = text ? 1 : -1;
    while (n > 0 && len <= FILE_MAX_) {
        n = read(fd, text + len, FILE_MAX_ + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0 || len > FILE_MAX_)
        return asym_fail(err, -EIO, "%s: cannot be read", path);
    *ret_text = ASYM_TAKE(text);
    *ret_len = len;
    return 0;
}

int asym_settings_load(struct asym_settings *s, const char *path, struct asym_error *err)
{
    ASYM_AUTO_FREE char *text = NULL;
    ASYM_AUTO_FREE unsigned *seen = calloc(s->priv->n_rows + 1, sizeof *seen);
    struct asym_settings *copy;
    size_t len = 0;
    int r = read_file(path, &text, &len, err);
    if (r < 0)
        return r;
    r = asym_settings_copy(s, &copy);
    if (r < 0 || !seen)
        return asym_fail(err, r < 0 ? r : -ENOMEM, "%s: no memory", path);
    struct load l = {.s = copy, .path = path, .at = text, .end = text + len, .seen = seen, .err = err};
    r = parse(&l);
    if (r >= 0)
        asym_settings_swap(s, copy);
    asym_settings_free(copy);
    return r;
}

static int is_conf(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".conf") == 0;
}

static int load_directory(struct asym_settings *s, const char *path, struct asym_error *err)
{
    char file[4096];
    struct dirent **list;
    int n = scandir(path, &list, is_conf, alphasort), r = 0;
    if (n < 0)
        return errno == ENOENT ? 0 : asym_fail(err, -errno, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (r >= 0 && snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name) < (int)sizeof file)
            r = asym_settings_load(s, file, err);
        free(list[i]);
    }
    free(list);
    return r;
}

int asym_settings_load_all(struct asym_settings *s, const char *path, bool required, struct asym_error *err)
{
    char directory[4096];
    const char *slash = strrchr(path, '/');
    int r = asym_settings_load(s, path, err);
    if (r == -ENOENT && !required) {
        asym_fail(err, 0, "%s", "");
        r = 0;
    }
    if (r < 0)
        return r;
    snprintf(directory, sizeof directory, "%.*srules.d", slash ? (int)(slash - path + 1) : 0, path);
    return load_directory(s, directory, err);
}
