/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/settings-setup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/macro.h"
#include "base/text.h"

/*
 * The paths of this installation. Only `cmake --install` knows the prefix, so the running program derives it from its own path:
 * an installed program reads the configuration that was installed with it.
 */

/* A file: its directory below the prefix, its name, its directory for the configured prefix. */
static const struct {
    const char *dir, *name, *configured;
    bool is_config;         /* the prefix /usr has it in /etc */
    const char *from_build; /* its path below the top of the build tree; NULL: the build does not make it */
} paths[ASYM_N_PATHS] = {
    [ASYM_PATH_CONFIG] = {ASYM_SYSCONFDIR, "asymd/asymd.conf", ASYM_CONFIGURED_SYSCONFDIR, .is_config = true},
    [ASYM_PATH_OMPT] = {ASYM_LIBDIR, "libasym-ompt.so", ASYM_CONFIGURED_LIBDIR,
                        .from_build = "lib/rtx/ompt/libasym-ompt.so"},
    [ASYM_PATH_HELPER] = {ASYM_LIBEXECDIR, "asymd/asymd-helper", ASYM_CONFIGURED_LIBEXECDIR,
                          .from_build = "daemon/asymd-helper"},
    [ASYM_PATH_RULES] = {ASYM_DATADIR, "asymd/rules.d", ASYM_CONFIGURED_DATADIR, .from_build = "conf/library"},
};

/* Returns true unless every user may write to dir: another user could have put a file there. */
static bool is_safe(const char *dir)
{
    struct stat st;
    return stat(*dir ? dir : "/", &st) < 0 || !(st.st_mode & S_IWOTH);
}

/* Removes /name from the end of dir. Returns false if dir does not end in it. */
static bool cut_tail(char *dir, const char *name)
{
    const size_t n = strlen(dir), m = strlen(name);
    if (m == 0 || n <= m || dir[n - m - 1] != '/' || strcmp(dir + n - m, name) != 0)
        return false;
    dir[n - m - 1] = '\0';
    return true;
}

static bool find_installed(const char *prefix, enum asym_path path, char *buf)
{
    const char *dir = paths[path].dir, *root = paths[path].is_config && strcmp(prefix, "/usr") == 0 ? "" : prefix;
    if (!is_safe(prefix))
        return false;
    if (*dir == '/')
        root = "";
    return snprintf(buf, ASYM_PATH_SIZE, "%s%s%s/%s", root, *dir == '/' ? "" : "/", dir, paths[path].name) <
           ASYM_PATH_SIZE;
}

static bool find_built(char *dir, enum asym_path path, char *buf)
{
    return paths[path].from_build && (cut_tail(dir, "daemon") || cut_tail(dir, "tests")) && is_safe(dir) &&
           snprintf(buf, ASYM_PATH_SIZE, "%s/%s", dir, paths[path].from_build) < ASYM_PATH_SIZE &&
           access(buf, R_OK) == 0;
}

const char *asym_path_from(const char *executable, enum asym_path path, char *buf)
{
    char dir[PATH_MAX];
    const char *slash = executable && *executable == '/' ? strrchr(executable, '/') : NULL;
    if (slash && (size_t)(slash - executable) < sizeof dir) {
        memcpy(dir, executable, (size_t)(slash - executable));
        dir[slash - executable] = '\0';
        const bool is_installed = cut_tail(dir, ASYM_SBINDIR) || cut_tail(dir, ASYM_BINDIR);
        if (is_installed ? find_installed(dir, path, buf) : find_built(dir, path, buf))
            return buf;
    }
    snprintf(buf, ASYM_PATH_SIZE, "%s/%s", paths[path].configured, paths[path].name);
    return buf;
}

const char *asym_path(enum asym_path path, char *buf)
{
    char executable[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", executable, sizeof executable - 1);
    executable[n < 0 ? 0 : n] = '\0';
    return asym_path_from(executable, path, buf);
}

int asym_path_find_program(const char *name, char *path, size_t size)
{
    const char *dirs = getenv("PATH");
    struct stat st;
    if (strchr(name, '/'))
        return snprintf(path, size, "%s", name) < (int)size && access(path, F_OK) == 0 ? 0 : -ENOENT;
    for (const char *dir = dirs ? dirs : "/bin:/usr/bin"; dir; dir = strchr(dir, ':') ? strchr(dir, ':') + 1 : NULL) {
        const int len = (int)strcspn(dir, ":");
        int n = snprintf(path, size, "%.*s%s%s", len, dir, len ? "/" : "", name);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return 0;
    }
    return -ENOENT;
}

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

int asym_run_add_pid(struct asym_invocation *cli, const char *text)
{
    uint64_t pid;
    if (asym_parse_u64(text, strlen(text), &pid) < 0 || pid == 0 || pid > INT32_MAX)
        return -EINVAL;
    int32_t *grown = reallocarray(cli->pids, cli->n_pids + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    cli->pids = grown;
    cli->pids[cli->n_pids++] = (int32_t)pid;
    return 0;
}

int asym_run_settings(const struct asym_invocation *cli, bool lenient, struct asym_settings **ret_settings,
                      struct asym_error *err)
{
    struct asym_settings *s;
    char path[ASYM_PATH_SIZE];
    int r = asym_settings_new(&s);
    if (r < 0)
        return asym_fail(err, r, "no memory for the settings");
    const char *config = asym_run_config_path(cli, path);
    if (lenient)
        asym_settings_load_lenient(s, config);
    else
        r = asym_settings_load(s, config, cli->config != NULL, err);
    for (size_t i = 0; r >= 0 && i < cli->n_assignments; i++) {
        struct asym_error said = {""};
        r = asym_settings_set(s, cli->assignments[i].text, cli->assignments[i].origin, lenient ? &said : err);
        r = lenient ? 0 : r;
    }
    if (r >= 0 && !lenient)
        r = asym_settings_finish(s, asym_path(ASYM_PATH_RULES, path), err);
    if (r >= 0 && !lenient)
        r = asym_settings_check(s, err);
    if (r < 0)
        asym_settings_free(s);
    else
        *ret_settings = s;
    return r;
}
