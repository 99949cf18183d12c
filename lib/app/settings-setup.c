/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/settings-setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/install-paths.h"
#include "base/io.h"
#include "base/macro.h"

const char *asym_run_config_path(const struct asym_invocation *cli, char *buf)
{
    return cli->config ? cli->config : asym_path(ASYM_PATH_CONFIG, buf);
}

/* The name of the temporary file begins with a dot: asymd does not read it. */
static int replace_file(int dir, const char *name, const char *text)
{
    char temporary[256];
    if (snprintf(temporary, sizeof temporary, ".%s.new", name) >= (int)sizeof temporary)
        return -ENAMETOOLONG;
    unlinkat(dir, temporary, 0);
    ASYM_AUTO_CLOSE int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : asym_write_synced(fd, text, strlen(text));
    if (r >= 0 && renameat(dir, temporary, dir, name) < 0)
        r = -errno;
    if (r < 0 && fd >= 0)
        unlinkat(dir, temporary, 0);
    return r < 0 || fsync(dir) == 0 ? r : -errno;
}

/* ret_parent: of rules.d; ret_dir: rules.d itself. */
static int find_drop_in(const struct asym_invocation *cli, const char *name, char *ret_parent, char *ret_dir,
                        char *ret_path, struct asym_error *err)
{
    char buf[ASYM_PATH_SIZE];
    const char *config = asym_run_config_path(cli, buf), *slash = strrchr(config, '/');
    const int n = slash ? (int)(slash - config + 1) : 0;
    snprintf(ret_parent, ASYM_PATH_SIZE, "%.*s", n, config);
    if (snprintf(ret_dir, ASYM_PATH_SIZE, "%.*srules.d", n, config) >= ASYM_PATH_SIZE ||
        snprintf(ret_path, ASYM_PATH_SIZE, "%.*srules.d/%s", n, config, name) >= ASYM_PATH_SIZE)
        return asym_fail(err, -ENAMETOOLONG, "%.200s: the name is too long", config);
    return 0;
}

int asym_run_read_drop_in(const struct asym_invocation *cli, const char *name, char *buf, size_t size, char *ret_path,
                          struct asym_error *err)
{
    char parent[ASYM_PATH_SIZE], dir[ASYM_PATH_SIZE];
    int r = find_drop_in(cli, name, parent, dir, ret_path, err);
    if (r < 0)
        return r;
    *buf = '\0';
    ASYM_AUTO_CLOSE int fd = open(ret_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    const ssize_t n = fd < 0 ? -errno : asym_read_all(fd, buf, size);
    r = n < 0 ? (int)n : (size_t)n == size ? -EFBIG : 0;
    if (r < 0)
        return asym_fail(err, r, "cannot read %.300s: %s", ret_path, strerror(-r));
    buf[n] = '\0';
    return 0;
}

int asym_run_write_drop_in(const struct asym_invocation *cli, const char *name, const char *text, char *ret_path,
                           struct asym_error *err)
{
    char path[ASYM_PATH_SIZE], parent[ASYM_PATH_SIZE];
    const int found = find_drop_in(cli, name, parent, path, ret_path, err);
    if (found < 0)
        return found;
    /* asymd runs without a configuration, too: then its own directory may be missing. One that the user named must be there. */
    if (!cli->config && *parent)
        mkdir(parent, 0755);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return asym_fail(err, -errno, "cannot create %.300s: %s", path, strerror(errno));
    ASYM_AUTO_CLOSE int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int r = dir < 0 ? -errno : text ? replace_file(dir, name, text) : unlinkat(dir, name, 0) < 0 ? -errno : 0;
    return r < 0 ? asym_fail(err, r, "cannot %s %.300s/%.100s: %s", text ? "write" : "remove", path, name, strerror(-r))
                 : 0;
}

int asym_run_settings(const struct asym_invocation *cli, struct asym_settings **ret_settings, struct asym_error *err)
{
    struct asym_settings *s;
    char path[ASYM_PATH_SIZE];
    int r = asym_settings_new(&s);
    if (r < 0)
        return asym_fail(err, r, "no memory for the settings");
    r = asym_settings_load(s, asym_run_config_path(cli, path), cli->config != NULL, err);
    for (size_t i = 0; r >= 0 && i < cli->n_assignments; i++)
        r = asym_settings_set(s, cli->assignments[i].text, cli->assignments[i].origin, err);
    if (r >= 0)
        r = asym_settings_finish(s, asym_path(ASYM_PATH_RULES, path), err);
    if (r >= 0)
        r = asym_settings_check(s, err);
    if (r < 0) {
        asym_settings_free(s);
        return r;
    }
    *ret_settings = s;
    return 0;
}

int asym_run_load_lenient(const struct asym_invocation *cli, struct asym_settings **ret_settings,
                          struct asym_error *err)
{
    struct asym_settings *s;
    struct asym_error said = {""};
    char path[ASYM_PATH_SIZE];
    int r = asym_settings_new(&s);
    if (r < 0)
        return asym_fail(err, r, "no memory for the settings");
    asym_settings_load_lenient(s, asym_run_config_path(cli, path));
    for (size_t i = 0; i < cli->n_assignments; i++)
        asym_settings_set(s, cli->assignments[i].text, cli->assignments[i].origin, &said);
    *ret_settings = s;
    return 0;
}
