/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The executable's path gives the files of an installation. The test includes the source file, with directories of its own. */
#include <limits.h>
#include <sys/stat.h>

#define ASYM_BINDIR                "bin"
#define ASYM_SBINDIR               "sbin"
#define ASYM_LIBDIR                "lib/any-linux"
#define ASYM_LIBEXECDIR            "libexec"
#define ASYM_SYSCONFDIR            "etc"
#define ASYM_DATADIR               "share"
#define ASYM_CONFIGURED_DATADIR    "/configured/share"
#define ASYM_CONFIGURED_LIBDIR     "/configured/lib/any-linux"
#define ASYM_CONFIGURED_LIBEXECDIR "/configured/libexec"
#define ASYM_CONFIGURED_SYSCONFDIR "/configured/etc"
#include "app/settings-setup.c"
#include "support/test.h"

TEST(an_installed_program_finds_what_was_installed_with_it)
{
    static const struct {
        const char *executable, *config, *prefix;
    } rows[] = {
        {"/usr/sbin/asymd", "/etc/asymd/asymd.conf", "/usr"},
        {"/usr/bin/asymctl", "/etc/asymd/asymd.conf", "/usr"},
        {"/sbin/asymd", "/etc/asymd/asymd.conf", ""},
        {"/usr/local/sbin/asymd", "/usr/local/etc/asymd/asymd.conf", "/usr/local"},
        {"/opt/asymd/bin/asymctl", "/opt/asymd/etc/asymd/asymd.conf", "/opt/asymd"},
        {"/opt/usr/bin/asymctl", "/opt/usr/etc/asymd/asymd.conf", "/opt/usr"},
        {"/opt/bin/sbin/asymd", "/opt/bin/etc/asymd/asymd.conf", "/opt/bin"},
    };
    static const char *const below[ASYM_N_PATHS] = {[ASYM_PATH_OMPT] = "lib/any-linux/libasym-ompt.so",
                                                    [ASYM_PATH_HELPER] = "libexec/asymd/asymd-helper",
                                                    [ASYM_PATH_RULES] = "share/asymd/rules.d"};
    char buf[ASYM_PATH_SIZE], want[256];
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        assert_string_equal(asym_path_from(rows[i].executable, ASYM_PATH_CONFIG, buf), rows[i].config);
        for (int path = ASYM_PATH_OMPT; path < ASYM_N_PATHS; path++) {
            snprintf(want, sizeof want, "%s/%s", rows[i].prefix, below[path]);
            assert_string_equal(asym_path_from(rows[i].executable, (enum asym_path)path, buf), want);
        }
    }
}

TEST(any_other_program_has_the_configured_paths)
{
    static const char *const executables[] = {
        NULL,
        "",
        "/",
        "/asymd",
        "asymd",
        "bin/asymctl",
        "/home/u/asymd/daemon/asymd",
        "/opt/robin/asymctl",
        "/opt/xbin/asymd",
    };
    char buf[ASYM_PATH_SIZE];
    for (size_t i = 0; i < ASYM_LENGTH(executables); i++) {
        assert_string_equal(asym_path_from(executables[i], ASYM_PATH_CONFIG, buf), "/configured/etc/asymd/asymd.conf");
        assert_string_equal(asym_path_from(executables[i], ASYM_PATH_OMPT, buf),
                            "/configured/lib/any-linux/libasym-ompt.so");
        assert_string_equal(asym_path_from(executables[i], ASYM_PATH_HELPER, buf),
                            "/configured/libexec/asymd/asymd-helper");
        assert_string_equal(asym_path_from(executables[i], ASYM_PATH_RULES, buf), "/configured/share/asymd/rules.d");
    }
}

static void make(const char *top, const char *name, mode_t mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void remove_tree(const char *top)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    assert_int_equal(system(command), 0);
}

TEST(a_build_tree_has_what_was_built_there)
{
    static const char *const directories[] = {"daemon", "lib", "lib/rtx", "lib/rtx/ompt"};
    static const struct {
        enum asym_path path;
        const char *built, *configured;
    } rows[] = {
        {ASYM_PATH_OMPT, "lib/rtx/ompt/libasym-ompt.so", "/configured/lib/any-linux/libasym-ompt.so"},
        {ASYM_PATH_HELPER, "daemon/asymd-helper", "/configured/libexec/asymd/asymd-helper"},
    };
    char top[] = "/tmp/asym-paths-XXXXXX", executable[256], file[256], buf[ASYM_PATH_SIZE];
    assert_non_null(mkdtemp(top));
    for (size_t i = 0; i < ASYM_LENGTH(directories); i++)
        make(top, directories[i], 0755);
    snprintf(executable, sizeof executable, "%s/daemon/asymctl", top);
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        snprintf(file, sizeof file, "%s/%s", top, rows[i].built);
        assert_string_equal(asym_path_from(executable, rows[i].path, buf), rows[i].configured);
        file_write(file, "%s", "");
        assert_string_equal(asym_path_from(executable, rows[i].path, buf), file);
        assert_int_equal(chmod(top, 01777), 0);
        assert_string_equal(asym_path_from(executable, rows[i].path, buf), rows[i].configured);
        assert_int_equal(chmod(top, 0700), 0);
    }
    assert_string_equal(asym_path_from(executable, ASYM_PATH_CONFIG, buf), "/configured/etc/asymd/asymd.conf");
    remove_tree(top);
}

/* Any user could put a configuration or a helper there: for /tmp/sbin/asymd, another user creates /tmp/etc. */
TEST(a_prefix_that_any_user_may_write_to_counts_for_nothing)
{
    char top[] = "/tmp/asym-paths-XXXXXX", executable[256], config[256], buf[ASYM_PATH_SIZE];
    assert_non_null(mkdtemp(top));
    make(top, "sbin", 0755);
    snprintf(executable, sizeof executable, "%s/sbin/asymd", top);
    snprintf(config, sizeof config, "%s/etc/asymd/asymd.conf", top);
    assert_string_equal(asym_path_from(executable, ASYM_PATH_CONFIG, buf), config);
    assert_int_equal(chmod(top, 01777), 0);
    for (int path = 0; path < ASYM_N_PATHS; path++)
        assert_true(strncmp(asym_path_from(executable, (enum asym_path)path, buf), "/configured/", 12) == 0);
    remove_tree(top);
}

TEST(the_longest_path_fits)
{
    char executable[PATH_MAX], buf[ASYM_PATH_SIZE];
    memset(executable, 'x', sizeof executable);
    for (size_t i = 0; i < sizeof executable; i += 200)
        executable[i] = '/';
    memcpy(executable + sizeof executable - sizeof "/sbin/asymd", "/sbin/asymd", sizeof "/sbin/asymd");
    for (int path = 0; path < ASYM_N_PATHS; path++) {
        asym_path_from(executable, (enum asym_path)path, buf);
        assert_true(strlen(buf) < sizeof buf);
        assert_non_null(strstr(buf, paths[path].name));
    }
}

TEST(this_program_is_in_a_build_tree)
{
    char buf[ASYM_PATH_SIZE];
    assert_string_equal(asym_path(ASYM_PATH_CONFIG, buf), "/configured/etc/asymd/asymd.conf");
}

/*
 * One directory of PATH has the program "both", another has "both" and "second". A directory and a text file are no programs.
 */
TEST(a_program_is_found_as_execvp_finds_it)
{
    char top[] = "/tmp/asym-path-XXXXXX", search[64], want[64], path[PATH_MAX];
    assert_non_null(mkdtemp(top));
    assert_int_equal(chdir(top), 0);
    assert_int_equal(mkdir("a", 0700) | mkdir("b", 0700) | mkdir("a/second", 0700), 0);
    static const char *const files[] = {"a/both", "b/both", "b/second", "a/text", "here"};
    for (size_t i = 0; i < ASYM_LENGTH(files); i++) {
        file_write(files[i], "%s", "");
        assert_int_equal(chmod(files[i], i == 3 ? 0600 : 0700), 0);
    }
    snprintf(search, sizeof search, "%s/a::%s/b", top, top);
    const char *before = getenv("PATH");
    char *kept = before ? strdup(before) : NULL;
    setenv("PATH", search, 1);
    static const struct {
        const char *name, *found;
    } rows[] = {{"both", "/a/both"}, {"second", "/b/second"}, {"text", NULL},       {"none", NULL},
                {"here", "here"},    {"a/text", "a/text"},    {"./here", "./here"}, {"a/none", NULL}};
    for (size_t i = 0; i < ASYM_LENGTH(rows); i++) {
        const char *found = rows[i].found;
        assert_int_equal(asym_path_find_program(rows[i].name, path, sizeof path), found ? 0 : -ENOENT);
        snprintf(want, sizeof want, "%s%s", found && *found == '/' ? top : "", found ? found : "");
        assert_true(!found || strcmp(path, want) == 0);
    }
    assert_int_equal(asym_path_find_program("both", path, strlen(top) + sizeof "/a/both" - 1), -ENOENT);
    unsetenv("PATH");
    assert_int_equal(asym_path_find_program("sh", path, sizeof path), 0);
    assert_string_equal(path, "/bin/sh");
    if (kept)
        setenv("PATH", kept, 1);
    free(kept);
    for (size_t i = 0; i < ASYM_LENGTH(files); i++)
        unlink(files[i]);
    assert_int_equal(rmdir("a/second") | rmdir("a") | rmdir("b") | rmdir(top), 0);
}

TEST_MAIN
