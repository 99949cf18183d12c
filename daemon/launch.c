/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/launch.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/parse.h"
#include "linux/elf.h"

/* LLVM's runtime, which has GCC's calls, too. */
#define RUNTIME "libomp.so.5"

/* Exit statuses, the same as those of env(1), timeout(1) and shells. */
enum { CANNOT_EXECUTE = 126, NOT_FOUND = 127 };

static const char *shown(const char *text, char *buf, size_t size)
{
    return asym_text_escape(text, strlen(text), buf, size);
}

/* Find the file that execvp will run, to look at it. 0; -ENOENT. */
static int find_program(const char *name, char *path, size_t size)
{
    const char *dirs = getenv("PATH");
    struct stat st;
    if (strchr(name, '/'))
        return snprintf(path, size, "%s", name) < (int)size && access(path, F_OK) == 0 ? 0 : -ENOENT;
    for (const char *dir = dirs ? dirs : "/usr/bin:/bin"; dir; dir = strchr(dir, ':') ? strchr(dir, ':') + 1 : NULL) {
        const int len = (int)strcspn(dir, ":");
        int n = snprintf(path, size, "%.*s%s%s", len, dir, len ? "/" : "", name);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return 0;
    }
    return -ENOENT;
}

/* value goes before what is there already. */
static int put_before(const char *name, const char *value)
{
    const char *old = getenv(name);
    ASYM_AUTO_FREE char *both = NULL;
    if (old && *old && asprintf(&both, "%s:%s", value, old) < 0)
        return -ENOMEM;
    return setenv(name, both ? both : value, 1) < 0 ? -errno : 0;
}

/* Why it will not speak, and runs all the same. */
static void warn(const char *path, const struct asym_launch *l)
{
    char name[256];
    struct asym_elf elf;
    const char *why = NULL, *remedy = "";
    if (asym_elf_read(path, &elf) < 0)
        return;
    if (elf.privileged)
        why = "is set-user-ID, set-group-ID or has capabilities: nothing can be loaded into it from outside";
    else if (elf.is_elf && elf.is_static)
        why = "is statically linked: nothing can be loaded into it";
    else if (elf.has_gomp && !elf.has_omp && !l->gcc) {
        why = "uses GCC's OpenMP runtime, which tells nobody what it does";
        remedy = " (--gcc puts LLVM's in its place)";
    }
    if (why)
        fprintf(stderr, "asymctl: %s %s; it runs without saying what its threads do%s\n",
                shown(path, name, sizeof name), why, remedy);
}

/* Is everything there that makes a program speak? Says what is missing. */
static bool can_speak(const struct asym_launch *l)
{
    char text[256];
    if (access(l->tool, R_OK) < 0) {
        fprintf(stderr,
                "asymctl: %s: %s (it comes with a build that has omp-tools.h, libomp-dev); the program runs without "
                "saying what its threads do\n",
                shown(l->tool, text, sizeof text), strerror(errno));
        return false;
    }
    /* The loader would complain once for each process, and go on. */
    void *runtime = l->gcc ? dlopen(RUNTIME, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (l->gcc && !runtime) {
        fputs("asymctl: --gcc needs LLVM's OpenMP runtime, " RUNTIME
              ", which is not installed (libomp5); the program runs without saying what its threads do\n",
              stderr);
        return false;
    }
    if (runtime)
        dlclose(runtime);
    return true;
}

static void make_it_speak(const struct asym_launch *l)
{
    if (put_before("OMP_TOOL_LIBRARIES", l->tool) < 0 || setenv("OMP_TOOL", "enabled", 1) < 0 ||
        (l->gcc && put_before("LD_PRELOAD", RUNTIME) < 0))
        fputs("asymctl: no memory for the environment; the program runs without saying what its threads do\n", stderr);
}

int asym_launch(const struct asym_launch *l)
{
    char path[4096], text[256];
    const bool is_found = find_program(l->argv[0], path, sizeof path) >= 0;
    if (is_found && can_speak(l)) {
        warn(path, l);
        make_it_speak(l);
    }
    /* It searches PATH by itself, and runs scripts without a first line. */
    execvp(l->argv[0], l->argv);
    const int error = errno;
    fprintf(stderr, "asymctl: %s: %s\n", shown(is_found ? path : l->argv[0], text, sizeof text),
            error != ENOENT ? strerror(error)
            : is_found      ? "the interpreter that it names is missing"
                            : "no such program");
    return error == ENOENT ? NOT_FOUND : CANNOT_EXECUTE;
}
