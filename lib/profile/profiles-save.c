/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes profiles: the text stays as it is, except for one section. A file of its own, because asymd reads profiles only: what it
 * does not link it cannot call (tests/faults).
 */
#include "profile/profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/text.h"

static void print_section(FILE *out, const struct asym_profile_entry *p)
{
    char section[ASYM_PROFILE_SECTION_MAX];
    fprintf(out, "[%s]\n", asym_text_escape(p->path, strlen(p->path), section, sizeof section));
    if (*p->build_id)
        fprintf(out, "build_id = %s\n", p->build_id);
    for (unsigned t = 0; t < p->n_types; t++) {
        const struct asym_profile_type *type = &p->types[t];
        if (type->ips > 0)
            fprintf(out, "ips.%s = %.3f\n", type->name, type->ips);
        if (type->mpki >= 0)
            fprintf(out, "mpki.%s = %.4f\n", type->name, type->mpki);
    }
}

/*
 * Find the begin and the end of the section of that path; without one, both are the end of the text. Comments and empty
 * lines above the next section belong to the next section.
 */
static void find_section(const char *text, size_t len, const char *path, size_t *ret_from, size_t *ret_to)
{
    struct asym_lines lines = {.at = text, .end = text + len};
    const char *line, *from = NULL, *last = NULL;
    size_t n;
    char found[PATH_MAX];
    while (asym_lines_next(&lines, &line, &n)) {
        if (n > 0 && line[0] == '[') {
            if (from)
                break;
            if (asym_profile_parse_section(line, n, found) >= 0 && strcmp(found, path) == 0)
                from = lines.start;
        }
        if (n > 0 && line[0] != ';' && line[0] != '#')
            last = lines.at;
    }
    *ret_from = from ? (size_t)(from - text) : len;
    *ret_to = from ? (size_t)(last - text) : len;
}

static int compose(const char *old, size_t len, const struct asym_profile_entry *p, char **ret_text, size_t *ret_len)
{
    size_t from, to;
    FILE *out = open_memstream(ret_text, ret_len);
    if (!out)
        return -ENOMEM;
    find_section(old, len, p->path, &from, &to);
    fwrite(old, 1, from, out);
    if (from == len && len > 0)
        fputs(old[len - 1] == '\n' ? "\n" : "\n\n", out);
    print_section(out, p);
    fwrite(old + to, 1, len - to, out);
    bool failed = ferror(out) != 0;
    return asym_close_text(out, ret_text) < 0 || failed ? -ENOMEM : 0;
}

/* Check that the new text reads back as the same profile. This finds a name that would read back as another one. */
static int check_composed(const char *file, const char *text, size_t len, const struct asym_profile_entry *p,
                          struct asym_error *err)
{
    struct asym_profiles *all;
    struct asym_error why = {""};
    if (asym_profiles_parse(file, text, len, &all, &why) < 0)
        return asym_fail(err, -EINVAL, "%.200s: this profile has no valid text form: %.700s", file, why.text);
    const struct asym_profile_entry *back = asym_profiles_find(all, p->path, NULL);
    bool same = back && back->n_types == p->n_types;
    for (unsigned t = 0; same && t < p->n_types; t++)
        same = asym_profile_on(back, p->types[t].name) != NULL;
    asym_profiles_free(all);
    return same ? 0 : asym_fail(err, -EINVAL, "%.200s: this profile has no valid text form", file);
}

/* Write a new file beside the old one and rename it. It gets the old mode and, if the kernel permits it, the old owner. */
static int replace(const char *file, int dir_fd, const char *text, size_t len)
{
    char fresh[PATH_MAX + 16];
    struct stat st;
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", file);
    ASYM_AUTO_CLOSE int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    bool exists = stat(file, &st) == 0;
    int r = asym_write_synced(fd, text, len);
    if (r >= 0 && exists && fchown(fd, st.st_uid, st.st_gid) < 0 && errno != EPERM)
        r = -errno;
    if (r >= 0 && fchmod(fd, exists ? st.st_mode & 0777 : 0644) < 0)
        r = -errno;
    if (r >= 0 && rename(fresh, file) < 0)
        r = -errno;
    if (r < 0)
        unlink(fresh);
    else
        fsync(dir_fd);
    return r;
}

static int save_locked(const char *file, int dir_fd, const struct asym_profile_entry *profile, struct asym_error *err)
{
    ASYM_AUTO_FREE char *old = NULL, *text = NULL;
    struct asym_profiles *all = NULL;
    size_t old_len = 0, len = 0;
    int r = asym_profiles_read_file(file, &old, &old_len, err);
    if (r < 0 && r != -ENOENT)
        return r;
    /* Do not overwrite a file that asymd cannot parse: it may not be a file of profiles. */
    r = r == -ENOENT ? 0 : asym_profiles_parse(file, old, old_len, &all, err);
    asym_profiles_free(all);
    if (r < 0)
        return r;
    r = compose(old ? old : "", old_len, profile, &text, &len);
    if (r < 0)
        return asym_fail(err, r, "%.200s: no memory", file);
    r = check_composed(file, text, len, profile, err);
    if (r < 0)
        return r;
    r = replace(file, dir_fd, text, len);
    return r < 0 ? asym_fail(err, r, "%.200s: %s", file, strerror(-r)) : 0;
}

int asym_profiles_save(const char *file, const struct asym_profile_entry *profile, struct asym_error *err)
{
    char real[PATH_MAX], parent[PATH_MAX];
    /* A symbolic link stays: the rename replaces the file that it points to. */
    if (!realpath(file, real)) {
        if (errno != ENOENT || strlen(file) >= sizeof real - 16)
            return asym_fail(err, -errno, "%.200s: %s", file, strerror(errno));
        memcpy(real, file, strlen(file) + 1);
    }
    memcpy(parent, real, sizeof parent);
    const char *directory = dirname(parent);
    ASYM_AUTO_CLOSE int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0 || flock(dir_fd, LOCK_EX) < 0) {
        int error = -errno;
        return asym_fail(err, error, "%.200s: %s", directory, strerror(-error));
    }
    return save_locked(real, dir_fd, profile, err);
}
