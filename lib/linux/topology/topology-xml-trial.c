/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads a file of hwloc XML in a child process first. */
#include <errno.h>
#include <hwloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/topology/topology-internal.h"

/* A machine of 1024 CPUs takes a fraction of a second. */
#define LOAD_SECONDS 10

/*
 * Loads the file as asymd will, in a child process that may crash: it leaves no core file, and no sanitizer reports the crash.
 * The parent only uses how the child ends.
 */
static _Noreturn void load_and_exit(const char *path)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM};
    const struct rlimit no_core = {0, 0};
    struct asym_machine *m = calloc(1, sizeof *m);
    struct asym_figures *kinds = calloc(1, sizeof *kinds);
    setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; i < ASYM_LENGTH(fatal); i++)
        signal(fatal[i], SIG_DFL);
    alarm(LOAD_SECONDS);
    /* The parent gets the same error from hwloc, so this one is ignored. */
    if (m && kinds)
        asym_topology_load(NULL, path, m, kinds, NULL);
    _exit(0);
}

int asym_topology_try_xml(const char *path, struct asym_error *err)
{
    int status;
    pid_t r, pid = fork();
    if (pid == 0)
        load_and_exit(path);
    do
        r = pid < 0 ? -1 : waitpid(pid, &status, 0);
    while (r < 0 && pid > 0 && errno == EINTR);
    if (r < 0) {
        int error = -errno;
        return asym_fail(err, error, "%s: cannot check it in a child process: %s", path, strerror(-error));
    }
    if (!WIFSIGNALED(status))
        return 0;
    return asym_fail(err, -EINVAL, "%s: hwloc %s (%s): the XML is damaged or was changed by hand", path,
                     WTERMSIG(status) == SIGALRM ? "does not finish reading it" : "crashes when it reads it",
                     strsignal(WTERMSIG(status)));
}
