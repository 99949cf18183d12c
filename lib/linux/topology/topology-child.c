/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the machine in a child process: hwloc crashes without memory, and on some damaged files of XML. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macro.h"
#include "linux/topology/topology-internal.h"

/* A machine of 1024 CPUs takes a fraction of a second. */
#define LOAD_SECONDS 10

/* The memory that both processes see. Pointers in kinds are to constants, which both have at the same address. */
struct loaded {
    struct asym_machine machine;
    struct asym_figures kinds;
    struct asym_error err;
    int result;
};

/* The child may crash: it leaves no core file, and no sanitizer reports the crash. */
static _Noreturn void load_and_exit(const struct asym_root *root, const char *xml, struct loaded *l)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM};
    const struct rlimit no_core = {0, 0};
    sigset_t none;
    setrlimit(RLIMIT_CORE, &no_core);
    for (size_t i = 0; i < ASYM_LENGTH(fatal); i++)
        signal(fatal[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(LOAD_SECONDS);
    l->result = asym_topology_load(root, xml, &l->machine, &l->kinds, &l->err);
    _exit(0);
}

static int await(pid_t pid, const char *name, const char *remedy, struct asym_error *err)
{
    int status;
    pid_t r;
    do
        r = waitpid(pid, &status, 0);
    while (r < 0 && errno == EINTR);
    /* A child that nothing is known of (the calling program ignores SIGCHLD) has left its result, or none. */
    if (r < 0 || !WIFSIGNALED(status))
        return 0;
    const int signal = WTERMSIG(status);
    return asym_fail(err, -EINVAL, "%s: hwloc %s (%s)%s", name,
                     signal == SIGALRM ? "does not finish reading it" : "crashes when it reads it", strsignal(signal),
                     remedy);
}

static void unmap_p(struct loaded **l)
{
    if (*l != MAP_FAILED)
        munmap(*l, sizeof **l);
}

int asym_topology_load_apart(const struct asym_root *root, const char *xml, struct asym_machine *m,
                             struct asym_figures *ret_kinds, struct asym_error *err)
{
    const char *name = xml ? xml : root->path, *remedy = xml ? ": the XML is damaged or was changed by hand" : "";
    ASYM_CLEANUP(unmap_p)
    struct loaded *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l != MAP_FAILED)
        *l = (struct loaded){.machine = *m, .result = -EIO, .err = {"hwloc: its process has left no result"}};
    const pid_t pid = l != MAP_FAILED ? fork() : -1;
    if (pid < 0) {
        const int error = -errno;
        return asym_fail(err, error, "%s: cannot read it in a child process: %s", name, strerror(-error));
    }
    if (pid == 0)
        load_and_exit(root, xml, l);
    const int r = await(pid, name, remedy, err);
    if (r < 0)
        return r;
    if (l->result < 0)
        return asym_fail(err, l->result, "%s", l->err.text);
    *m = l->machine;
    *ret_kinds = l->kinds;
    return 0;
}
