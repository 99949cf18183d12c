/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "app/install-paths.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Cuts the directory of a program to the prefix of its installation. */
static bool cut_to_prefix(char *dir)
{
    return cut_tail(dir, ASYM_SBINDIR) || cut_tail(dir, ASYM_BINDIR);
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
        if (cut_to_prefix(dir) ? find_installed(dir, path, buf) : find_built(dir, path, buf))
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
